"""An MPI library that does not exist; to import this module adds it to the table."""

from typing import Any, cast

from mpiop.api.mpi_implementations import IMPLEMENTATIONS, LIBRARIES, Implementation

ACME = Implementation(
    name="Acme",
    host_line="{slots} on {host}",
    environment={"ACME_HOSTS": "{hostfile}"},
    additions={"ACME_SSH_OPTIONS": "-F {ssh_config}"},
    ssh_variables=("ACME_SSH",),
    interface_variable="ACME_INTERFACE",
    agent_environment={"ACME_AGENT": "1"},
    unbound={"ACME_PIN": "no"},
    binding_choice="ACME_PIN",
    commands=("acmerun",),
    processes=("acmed",),
    is_rigid=True,
    longest_job_name={"Acme 1": 5},
    exit_codes={77: "acmerun found no host"},
    tag_options=("--ranks",),
    tag=r"rank (?P<rank>\d+)> ",
    export_option="--send",
    root_environment={"ACME_ROOT": "yes"},
)
cast("dict[str, Any]", IMPLEMENTATIONS)[ACME.name] = ACME
cast("dict[str, Any]", LIBRARIES)["acme"] = ACME
