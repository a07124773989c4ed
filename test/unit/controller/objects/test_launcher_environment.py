"""What makes each library's `mpirun` find its hosts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from example_jobs import PI, template, with_launcher, with_worker
from mpiop.api.types import MPIJob
from mpiop.controller.objects.launcher_environment import launcher_environment

ENVIRONMENTS = """
OpenMPI:
  OMPI_MCA_orte_default_hostfile: /etc/mpi/hostfile
  OMPI_MCA_orte_keep_fqdn_hostnames: "true"
  OMPI_MCA_orte_set_default_slots: "3"
  OMPI_MCA_plm_rsh_agent: /etc/mpi-hosts/ssh:ssh
  OMPI_MCA_plm_rsh_args: -o ConnectionAttempts=10
  PRTE_MCA_prte_default_hostfile: /etc/mpi/hostfile
  PRTE_MCA_prte_keep_fqdn_hostnames: "true"
  PRTE_MCA_prte_set_default_slots: "3"
  PRTE_MCA_odls_base_max_threads: "0"
  PRTE_MCA_plm_ssh_agent: /etc/mpi-hosts/ssh:ssh
  PRTE_MCA_plm_ssh_args: -F /etc/mpi-hosts/ssh_config
Intel:
  I_MPI_HYDRA_HOST_FILE: /etc/mpi/hostfile
  I_MPI_HYDRA_BOOTSTRAP: ssh
  I_MPI_HYDRA_BOOTSTRAP_EXEC: /etc/mpi-hosts/ssh
  I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS: -o ConnectionAttempts=10
  I_MPI_PERHOST: "3"
  I_MPI_HYDRA_IFACE: eth0
MPICH:
  HYDRA_HOST_FILE: /etc/mpi/hostfile
  HYDRA_LAUNCHER: ssh
  HYDRA_LAUNCHER_EXEC: /etc/mpi-hosts/ssh
  HYDRA_LAUNCHER_EXTRA_ARGS: -o ConnectionAttempts=10
  HYDRA_LAUNCH_EXTRA_ARGS: -o ConnectionAttempts=10
  HYDRA_IFACE: eth0
"""


def all_variables(job: MPIJob) -> dict[str, str]:
    environment, additions = launcher_environment(job)
    return {**environment, **additions}


@pytest.mark.parametrize(("implementation", "variables"), yaml.safe_load(ENVIRONMENTS).items())
def test_variables_of_the_launcher(implementation: str, variables: dict[str, str]) -> None:
    assert all_variables(replace(PI, mpi_implementation=implementation, slots_per_worker=3)) == variables


@pytest.mark.parametrize(("implementation", "variable"), [("Intel", "I_MPI_HYDRA_IFACE"), ("MPICH", "HYDRA_IFACE")])
@pytest.mark.parametrize("change", [with_launcher, with_worker])
def test_no_interface_is_named_on_the_network_of_a_node(
    implementation: str, variable: str, change: Callable[[MPIJob, dict[str, Any]], MPIJob]
) -> None:
    job = change(replace(PI, mpi_implementation=implementation), template(hostNetwork=True))
    assert variable not in all_variables(job)


def test_a_launcher_in_its_own_hostfile_has_to_recognise_itself() -> None:
    variables = all_variables(replace(PI, run_launcher_as_worker=True))
    assert variables["PRTE_MCA_prte_keep_fqdn_hostnames"] == "false"
    assert variables["OMPI_MCA_orte_keep_fqdn_hostnames"] == "true"


def test_no_value_that_prrte_hands_on_holds_an_equals_sign() -> None:
    assert not [value for name, value in all_variables(PI).items() if name.startswith("PRTE_") and "=" in value]
