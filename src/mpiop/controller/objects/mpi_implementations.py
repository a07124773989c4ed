"""OpenMPI, Intel and MPICH as rows of one table: how each finds its hosts and reaches them.

Users' scripts read the variables of the reference operator. The additions are what the libraries really obey:
Open MPI 5 reads `PRTE_MCA_*` alone (with the old names only, it starts all ranks on the launcher and exits 0), and Hydra renamed
`HYDRA_LAUNCH_EXTRA_ARGS` in 2011.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob

CONFIG_MOUNT_PATH: Final = "/etc/mpi"
HOSTFILE: Final = "hostfile"
DISCOVER_HOSTS: Final = "discover_hosts.sh"
HOSTFILE_PATH: Final = f"{CONFIG_MOUNT_PATH}/{HOSTFILE}"

AGENT_MOUNT_PATH: Final = c.AGENT_FILES_FOLDER
"""The folder of our own files on launcher and workers; `/etc/mpi` holds the same files as with the reference operator."""
AGENT: Final = "ssh"
"""Open MPI goes by the last part of the name: to `ssh` it says that no X11 is to be forwarded."""
SSH_CONFIG: Final = "ssh_config"
ADDRESSES: Final = "addresses"
SSH_CONFIG_TEXT: Final = """\
ConnectionAttempts 10
Include ~/.ssh/config /etc/ssh/ssh_config
Host *
ServerAliveInterval 15
ServerAliveCountMax 8
"""
"""The first value of a keyword counts, so the user's keep-alives win (ssh_config(5)). `-F` replaces the default files, hence Include."""

_INTERFACE: Final = "eth0"
"""The name of the network interface of a pod, by CRI's default."""

_SSH_ARGUMENTS: Final = "-o ConnectionAttempts=10"


@dataclass(frozen=True, slots=True)
class Implementation:
    """One MPI library.

    Attributes:
        host_line: Line of the hostfile, with `{host}` and `{slots}`.
        environment: Variables of the launcher that the reference operator sets too, in its order, with `{slots}` and `{keep_fqdn}`.
        additions: Further variables of the launcher.
        agents: Variables that name the program which `mpirun` and its daemons call in the place of ssh.
        agent_fallback: What is appended for a host that lacks the program; "" where a list of programs is not understood.
        interface_variable: Names the interface whose address daemons are to call back, else they look for the launcher by its host name;
            "" where they are given an address anyway.
    """

    host_line: str
    environment: Mapping[str, str]
    additions: Mapping[str, str]
    agents: tuple[str, ...]
    agent_fallback: str = ""
    interface_variable: str = ""


IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {
    c.OPEN_MPI: Implementation(
        host_line="{host} slots={slots}",
        environment={
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_default_hostfile": HOSTFILE_PATH,
            "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
            "OMPI_MCA_orte_set_default_slots": "{slots}",
        },
        additions={
            # With true, a launcher that stands in its own hostfile does not know itself there and is reached by ssh.
            "PRTE_MCA_prte_keep_fqdn_hostnames": "{keep_fqdn}",
            "PRTE_MCA_prte_default_hostfile": HOSTFILE_PATH,
            # A file, for PRRTE 3.0 cuts a value at its second `=` when it hands it on to the next daemon.
            "PRTE_MCA_plm_ssh_args": f"-F {AGENT_MOUNT_PATH}/{SSH_CONFIG}",
            "PRTE_MCA_prte_set_default_slots": "{slots}",
        },
        agents=("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
        # Daemons look the program up even if they start nobody, and die where it is not: on a worker that the Go operator made.
        agent_fallback=":ssh",
    ),
    c.INTEL: Implementation(
        host_line="{host}:{slots}",
        environment={
            "I_MPI_HYDRA_HOST_FILE": HOSTFILE_PATH,
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
            "I_MPI_PERHOST": "{slots}",
        },
        additions={"I_MPI_HYDRA_BOOTSTRAP": "ssh"},
        agents=("I_MPI_HYDRA_BOOTSTRAP_EXEC",),
        interface_variable="I_MPI_HYDRA_IFACE",
    ),
    c.MPICH: Implementation(
        host_line="{host}:{slots}",
        environment={
            "HYDRA_HOST_FILE": HOSTFILE_PATH,
            "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
        },
        additions={
            "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH_ARGUMENTS,
            "HYDRA_LAUNCHER": "ssh",
        },
        agents=("HYDRA_LAUNCHER_EXEC",),
        interface_variable="HYDRA_IFACE",
    ),
}


def implementation_of(job: MPIJob) -> Implementation:
    """Return the implementation that `job` uses."""
    return IMPLEMENTATIONS[job.mpi_implementation]


def launcher_environment(job: MPIJob) -> dict[str, str]:
    """Return the environment variables by which `mpirun` finds the hosts, those of the reference operator."""
    return _filled(job, implementation_of(job).environment)


def launcher_additions(job: MPIJob) -> dict[str, str]:
    """Return the further variables by which it finds and reaches them; the user's come before these, wherever they are set."""
    variables = _filled(job, implementation_of(job).additions)
    interface_variable = implementation_of(job).interface_variable
    if interface_variable and not uses_host_network(job):
        variables[interface_variable] = _INTERFACE
    return variables


def _filled(job: MPIJob, variables: Mapping[str, str]) -> dict[str, str]:
    values = {"slots": str(job.slots_per_worker), "keep_fqdn": "false" if job.run_launcher_as_worker else "true"}
    return {name: value.format_map(values) for name, value in variables.items()}


def asks_for_launcher(job: MPIJob) -> bool:
    """Return whether daemons on workers look for the launcher by its host name, as soon as they run."""
    return bool(implementation_of(job).interface_variable) and uses_host_network(job)


def uses_host_network(job: MPIJob) -> bool:
    """Return whether a pod of the job uses its node's network, where the interface may have any name."""
    return any(spec is not None and spec.template["spec"].get("hostNetwork") for spec in (job.launcher, job.worker))


def host_line(job: MPIJob, host: str) -> str:
    """Return the line of the hostfile for `host`, without a newline."""
    return implementation_of(job).host_line.format(host=host, slots=job.slots_per_worker)
