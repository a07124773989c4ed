"""The variables by which the launcher's `mpirun` finds its hosts and reaches them, from the row of its MPI library."""

from collections.abc import Mapping
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller.objects.hostfile import HOSTFILE_PATH
from mpiop.controller.objects.ssh_script import SSH_CONFIG_PATH

_INTERFACE: Final = "eth0"
"""The name of the network interface of a pod, by CRI's default."""


def launcher_environment(job: MPIJob) -> dict[str, str]:
    """Return the environment variables by which `mpirun` finds the hosts, those of the reference operator."""
    return _filled(job, job.library.environment)


def launcher_additions(job: MPIJob) -> dict[str, str]:
    """Return the further variables by which it finds and reaches them; the user's come before these, wherever they are set."""
    variables = _filled(job, job.library.additions)
    interface_variable = job.library.interface_variable
    if interface_variable and not uses_host_network(job):
        variables[interface_variable] = _INTERFACE
    return variables


def _filled(job: MPIJob, variables: Mapping[str, str]) -> dict[str, str]:
    values = {
        "slots": str(job.slots_per_worker),
        "keep_fqdn": "false" if job.run_launcher_as_worker else "true",
        "hostfile": HOSTFILE_PATH,
        "ssh_config": SSH_CONFIG_PATH,
    }
    return {name: value.format_map(values) for name, value in variables.items()}


def asks_for_launcher(job: MPIJob) -> bool:
    """Return whether daemons on workers look for the launcher by its host name, as soon as they run."""
    return bool(job.library.interface_variable) and uses_host_network(job)


def uses_host_network(job: MPIJob) -> bool:
    """Return whether a pod of the job uses its node's network, where the interface may have any name."""
    return any(spec is not None and spec.template["spec"].get("hostNetwork") for spec in (job.launcher, job.worker))
