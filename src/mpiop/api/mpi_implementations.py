"""The MPI libraries: one row holds everything that operator and tools know about one (`spec.mpiImplementation`).

Users' scripts read the variables of the reference operator. The additions are what the libraries really obey:
Open MPI 5 reads `PRTE_MCA_*` alone (with the old names only, it starts all ranks on the launcher and exits 0), and Hydra renamed
`HYDRA_LAUNCH_EXTRA_ARGS` in 2011.

Not here: the texts of the libraries in logs, which are rows of `log_rules`, and mpiop-agent's copy of `commands` and `processes`
(agent/internal/process), which a test compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One MPI library.

    Attributes:
        name: Value of `spec.mpiImplementation`; in lower case, of `kubectl mpi run --mpi`.
        host_line: Line of the hostfile, with `{host}` and `{slots}`.
        environment: Variables of the launcher that the reference operator sets too, in its order, with `{slots}` and the path `{hostfile}`.
        additions: Further variables of the launcher, also with the path `{ssh_config}` and `{keep_fqdn}`.
        ssh_variables: Name the program that `mpirun` and its daemons call in place of ssh.
        ssh_fallback: Appended to that program for a host that lacks it; "" where a list of programs is not understood.
        interface_variable: Names the network interface whose address daemons call back; "" where they are given an address anyway.
        agent_environment: Variables of a launcher whose ssh is mpiop-agent.
        unbound: Variables by which `mpirun` binds no rank to cores.
        binding_choice: Regular expression of options and variables with which a user chooses a binding; "" for none.
        commands: Programs with which a user starts ranks.
        processes: Beginnings of the names of its other programs that call ssh, or that ssh starts.
        is_rigid: Whether it starts its processes once: a program cannot continue without a worker, and `mpirun` may hang after the loss.
        longest_job_name: Characters of the longest name of a job without a digit, by the version that crashes with a longer one.
        exit_codes: What `mpirun` means by exit codes of its own.
        tag_options: Options of `mpirun` that put the rank before each line of output.
        tag: Regular expression of what is then before each piece of output, with the group `rank`. A piece ends with its line, or earlier.
        tag_gap: What some versions of the library put between tag and text.
        tag_limit: Bytes of a piece with all its tags at which some versions drop the rest of it without a message; 0 for no limit.
        line_tag: What other options put before a line. Programs print such text too, so it counts at the beginning of a line only.
        export_option: Passes an environment variable on to the ranks; "" if all are passed anyway.
        root_environment: Variables that allow `mpirun` to run as root.
    """

    name: str
    host_line: str
    environment: Mapping[str, str]
    additions: Mapping[str, str]
    ssh_variables: tuple[str, ...]
    ssh_fallback: str = ""
    interface_variable: str = ""
    agent_environment: Mapping[str, str] = field(default_factory=dict[str, str])
    unbound: Mapping[str, str] = field(default_factory=dict[str, str])
    binding_choice: str = ""
    commands: tuple[str, ...] = ("mpirun", "mpiexec")
    processes: tuple[str, ...]
    is_rigid: bool
    longest_job_name: Mapping[str, int] = field(default_factory=dict[str, int])
    exit_codes: Mapping[int, str] = field(default_factory=dict[int, str])
    tag_options: tuple[str, ...]
    tag: str
    tag_gap: str = ""
    tag_limit: int = 0
    line_tag: str = ""
    export_option: str = ""
    root_environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def crashing_version(self, job_name: str) -> str:
        """Return the version whose `mpirun` crashes because of the job's name; "" if none does."""
        if any(character.isdigit() for character in job_name):
            return ""
        return next((version for version, longest in self.longest_job_name.items() if len(job_name) > longest), "")


_SSH_ARGUMENTS: Final = "-o ConnectionAttempts=10"
_HYDRA_PROCESSES: Final = ("hydra_", "pmi_proxy")
# Not `-prepend-rank`: within a line, its `[0] ` could be the program's own text.
_HYDRA_TAG_OPTIONS: Final = ("-prepend-pattern=[1,%r]<output>:",)
# Programs can print tags too, so nothing in one is longer than in a real one.
_RANK: Final = r"(?P<rank>\d{1,9})"
_HYDRA_TAG: Final = rf"\[1,{_RANK}\]<output>:"
_HYDRA_LINE_TAG: Final = rf"\[{_RANK}\] "

OPEN_MPI: Final = Implementation(
    name="OpenMPI",
    host_line="{host} slots={slots}",
    environment={
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "{hostfile}",
        "OMPI_MCA_plm_rsh_args": _SSH_ARGUMENTS,
        "OMPI_MCA_orte_set_default_slots": "{slots}",
    },
    additions={
        # With true, a launcher that is in its own hostfile does not recognise itself there and is reached by ssh.
        "PRTE_MCA_prte_keep_fqdn_hostnames": "{keep_fqdn}",
        "PRTE_MCA_prte_default_hostfile": "{hostfile}",
        # A file, because PRRTE 3.0 cuts a value at its second `=` when it passes the value to the next daemon.
        "PRTE_MCA_plm_ssh_args": "-F {ssh_config}",
        "PRTE_MCA_prte_set_default_slots": "{slots}",
        # Daemons of PRRTE 3.0 start ranks from 16 threads. A rank that ends within milliseconds may then be reported as running after its
        # end, so mpirun waits for ever (openpmix/prrte#2711). Without threads, the reports keep their order.
        "PRTE_MCA_odls_base_max_threads": "0",
    },
    ssh_variables=("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
    # Daemons look the program up even if they start nobody, and die where it is missing: on a worker that the Go operator made.
    ssh_fallback=":ssh",
    agent_environment={
        # Without an entry in passwd, Open MPI takes the user's shell from here, and warns of one that it does not know.
        "SHELL": "/bin/sh",
        # With `plm_rsh_no_tree_spawn`, daemons of Open MPI 4 would leave their connection, and end with it.
        "OMPI_MCA_orte_leave_session_attached": "true",
    },
    unbound={"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"},
    # With `--map-by slot:PE=2`, Open MPI 5 refuses a policy that comes from a variable.
    binding_choice=r"bind|map-by|rankfile|cpu-set|cpu-list|_MCA_(?:hwloc|rmaps)_",
    commands=("mpirun", "mpiexec", "orterun", "prterun"),
    processes=("orted", "prte", "oshrun", "shmemrun"),
    is_rigid=False,  # Horovod continues with fewer workers
    # orte/mca/regx/fwd of Open MPI 4.1 copies a host name up to its first digit into 50 bytes.
    longest_job_name={"Open MPI 4.1": 47},
    # Source: orte/include/orte/constants.h of Open MPI 4.
    exit_codes=dict.fromkeys(range(130, 136), "mpirun could not start the program, or a signal ended a rank"),
    tag_options=("--tag-output",),
    tag=rf"\[[^\[\]\s]{{1,300}},{_RANK}\]<std(?:out|err|diag)>:",
    tag_gap=" ",  # since Open MPI 5
    tag_limit=8192,  # ORTE_IOF_BASE_TAGGED_OUT_MAX of Open MPI 4
    export_option="-x",
    root_environment={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
)
INTEL: Final = Implementation(
    name="Intel",
    host_line="{host}:{slots}",
    environment={
        "I_MPI_HYDRA_HOST_FILE": "{hostfile}",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_ARGUMENTS,
        "I_MPI_PERHOST": "{slots}",
    },
    additions={"I_MPI_HYDRA_BOOTSTRAP": "ssh"},
    ssh_variables=("I_MPI_HYDRA_BOOTSTRAP_EXEC",),
    interface_variable="I_MPI_HYDRA_IFACE",
    unbound={"I_MPI_PIN": "0"},
    binding_choice="I_MPI_PIN",
    processes=_HYDRA_PROCESSES,
    is_rigid=True,
    tag_options=_HYDRA_TAG_OPTIONS,
    tag=_HYDRA_TAG,
    line_tag=_HYDRA_LINE_TAG,
)
MPICH: Final = Implementation(
    name="MPICH",
    host_line="{host}:{slots}",
    environment={
        "HYDRA_HOST_FILE": "{hostfile}",
        "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_ARGUMENTS,
    },
    additions={
        "HYDRA_LAUNCHER_EXTRA_ARGS": _SSH_ARGUMENTS,
        "HYDRA_LAUNCHER": "ssh",
    },
    ssh_variables=("HYDRA_LAUNCHER_EXEC",),
    interface_variable="HYDRA_IFACE",
    processes=_HYDRA_PROCESSES,
    is_rigid=True,
    tag_options=_HYDRA_TAG_OPTIONS,
    tag=_HYDRA_TAG,
    line_tag=_HYDRA_LINE_TAG,
)

IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {row.name: row for row in (OPEN_MPI, INTEL, MPICH)}
"""By the value of `spec.mpiImplementation`."""
LIBRARIES: Final[Mapping[str, Implementation]] = {row.name.lower(): row for row in IMPLEMENTATIONS.values()}
"""By the value of `kubectl mpi run --mpi`."""
