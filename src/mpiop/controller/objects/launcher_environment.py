"""The variables by which the launcher's `mpirun` finds its hosts and reaches them, from the row of its MPI library."""

from collections.abc import Mapping
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller.objects.config_map import HOSTFILE_PATH
from mpiop.controller.objects.ssh_script import AGENT, AGENT_MOUNT_PATH, SSH_CONFIG_PATH, wants_script

_INTERFACE: Final = "eth0"
"""The name of the network interface of a pod, by CRI's default."""


def launcher_environment(job: MPIJob) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the variables by which `mpirun` finds its hosts, those of the reference operator, and further ones by which it reaches them.

    The user's variables come before the further ones, wherever they are set.
    """
    library = job.library
    values = {
        "slots": str(job.slots_per_worker),
        "keep_fqdn": "false" if job.run_launcher_as_worker else "true",
        "hostfile": HOSTFILE_PATH,
        "ssh_config": SSH_CONFIG_PATH,
    }
    environment, additions = (
        {name: value.format_map(values) for name, value in variables.items()} for variables in (library.environment, library.additions)
    )
    if library.interface_variable and not job.uses_host_network:  # there the interface may have any name
        additions[library.interface_variable] = _INTERFACE
    if wants_script(job):
        additions |= dict.fromkeys(library.ssh_variables, f"{AGENT_MOUNT_PATH}/{AGENT}{library.ssh_fallback}")
    return environment, additions
