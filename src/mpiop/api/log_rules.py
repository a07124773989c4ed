"""Texts at the end of a launcher's log that explain its failure: one row for each text of an MPI library, of ssh or of Python.

The texts are those of Open MPI 4.1 and 5.0, MPICH 4.3, Intel MPI 2021 and mpiop-agent. A log is a tenant's text: a class of
excluded characters excludes the end of the line too, so that no pattern backtracks over more than a few lines.
"""

from collections.abc import Sequence
from typing import Final

from mpiop.api.log_rule import LogRule, rule

_EXECUTABLE: Final = "Correct the command. It must exist in the image of the workers, and the user must be allowed to execute it."
READ: Final = "Read what it printed."
_LOST: Final = "That worker, its node or its network has failed (kubectl get events), or its container has too little memory."
_OPTION: Final = "Correct the options of mpirun: each library, and each version of Open MPI, has its own."

_HOST: Final = r"(?P<host>[^\s.:]+)(?:\.[^\s:]*)?"
"""A host with or without its domain. No character fits both parts: with two that overlap, a long line would take a quadratic time."""
_AGENT: Final = rf"^mpiop-agent: {_HOST}(?: on node \S+)?: "
_WAITS: Final = rf"^(?:waiting for|mpiop-agent:) {_HOST}: "
_SHELL: Final = r"^(?:\S*/)?(?:ba|da)?sh: (?:line )?\d+: "
_MPICH_END: Final = r"^= +PID \d+ RUNNING AT (?P<host>[^\s.]+)(?:\.\S*)?\n= +EXIT CODE: "
_MPICH_SIGNAL: Final = _MPICH_END + "(?!(?:9|15)$)"
"""MPICH's exit code is a signal, and 128 more with a core dump; 9 or 15 for ranks that it ended itself."""

LONG_NAME: Final = "Give the job a name of at most 47 characters or with a digit, or use Open MPI 5."
"""`mpirun` of Open MPI 4.1 smashes its stack if its host name, `<job>-launcher`, has more than 56 characters and no digit."""

RULES: Final[Sequence[LogRule]] = (
    rule(
        "LongName",
        "the name of a job has more than 47 characters and no digit, so `mpirun` of Open MPI 4.1 crashes",
        r"^\*\*\* stack smashing detected \*\*\*.*\n\[(?P<host>[^\s:\]]{48,}-launcher):\d+\] \*\*\* Process received signal",
        "mpirun crashed, because its host name {host} has more than 56 characters and no digit",
        LONG_NAME,
    ),
    rule(
        "ExecutableNotFound",
        "Open MPI does not find the program, or is not allowed to execute it",
        r"could not\s+(?:access\s+or execute an|access\s+an) executable:\s+Executable: (?P<file>\S+)\s+Node: +(?P<host>[^\s.]+)",
        "mpirun cannot execute {file} on {host}",
        _EXECUTABLE,
    ),
    rule(
        "ExecutableNotFound",
        "Open MPI does not find the program in PATH",
        r"unable to find the specified executable file(?:.*\n){1,12}?[ \t]*Node: +(?P<host>[^\s.]+)(?:\.\S*)?\s+Executable: (?P<file>\S+)",
        "mpirun does not find the program {file} on {host}",
        _EXECUTABLE,
    ),
    rule(
        "ExecutableNotFound",
        "MPICH or Intel MPI cannot start the program",
        r"^\[proxy:[\d:]+@(?P<host>[^\]\n]+)\] .*execvp error on file (?P<file>\S*) \((?P<text>[^)\n]*)\)",
        "mpirun cannot execute {file} on {host}: {text}",
        _EXECUTABLE,
    ),
    rule(
        "WorkingDirectoryNotFound",
        "Open MPI cannot change to the working directory",
        r"could not\s+change to the specified working directory:\s+Working directory: (?P<file>\S+)\s+Node: +(?P<host>[^\s.]+)",
        "the working directory {file} does not exist on {host}",
        "Create it in the image of the workers, or mount a volume there.",
    ),
    rule(
        "WorkingDirectoryNotFound",
        "MPICH cannot change to the working directory",
        r"^\[proxy:[\d:]+@(?P<host>[^\]\n]+)\] .*unable to change wdir to (?P<file>\S+) \(No such file or directory\)",
        "the working directory {file} does not exist on a worker",
        "Create it in the image of the workers, or mount a volume there.",
    ),
    rule(
        "UnknownOption",
        "`mpirun` of Open MPI does not know an option",
        r'^(?:mpirun: Error: unknown option "|An unrecognized option was included on the \w+ command line:\s+Option: )(?P<text>[^"\s]+)',
        "mpirun does not know its option {text}",
        _OPTION,
    ),
    rule(
        "UnknownOption",
        "`mpirun` of MPICH or Intel MPI does not know an option",
        r"^\[mpiexec@[^\]\n]+\] match_arg .*unrecognized argument (?P<text>\S+)",
        "mpirun does not know its option -{text}",
        _OPTION,
    ),
    rule(
        "NotEnoughSlots",
        "the number of processes is larger than the number of slots",
        r"^There are not enough slots available in the system to satisfy the (?P<count>\d+)\s+slots",
        "mpirun is asked for {count} processes, and there are fewer slots",
        "Raise the number of workers or spec.slotsPerWorker, or pass mpirun a smaller -n (or --oversubscribe). "
        "If there are as many slots, spec.mpiImplementation is not the library of the image.",
    ),
    rule(
        "SshPermissionDenied",
        "the sshd of a worker rejects the login",
        r"^(?:\S+@)?(?P<host>[^\s:@]+): Permission denied \((?P<text>[a-z,-]+)\)",
        "ssh to {host} was refused: Permission denied ({text})",
        "sshAuthMountPath must be ~/.ssh of the user that the containers run as, or use the annotation mpiop.kubeflow.org/ssh: Injected.",
    ),
    rule(
        "HostKeyVerificationFailed",
        "ssh does not accept the host key of a worker",
        r"^Host key verification failed\.",
        "ssh does not accept the host key of a worker",
        "Use StrictHostKeyChecking no, or the job's key as host key of sshd (docs/images.md).",
    ),
    rule(
        "DaemonNotFound",
        "the shell of a worker does not find the daemon of the MPI library",
        _SHELL + r"(?P<file>(?:\S*/)?(?:orted|prted|hydra_\w+)): (?:(?:command )?not found|No such file.*)$",
        "mpirun does not find its daemon {file} on a worker",
        "Launcher and workers need the same MPI library, and sshd must give its folder in PATH to programs (docs/images.md).",
    ),
    rule(
        "WorkerLost",
        "mpiop-agent can no longer reach a worker, or Open MPI's daemon on it was killed",
        _AGENT + r"(?:lost: )?(?P<text>no answer from .+|signal (?!(?:1|2|15) )\d+ ended .+|its daemon ended .+|cannot connect to .+)$",
        "mpirun lost {host}: {text}",
        _LOST,
    ),
    rule(
        "GpuOutOfMemory",
        "a GPU has too little memory",
        r"^(?:[\w.]+: )?(?P<text>(?:CUDA|HIP) (?:error: )?out of memory(?:\. Tried to allocate [\d.]+ \w+|$))",
        "a GPU has too little memory: {text}",
        "Use smaller batches, or more or larger GPUs.",
        shows_rank=True,
    ),
    rule(
        "NcclTimeout",
        "a collective operation of NCCL timed out",
        r"Watchdog caught collective operation timeout: WorkNCCL\(.*?OpType=(?P<text>\w+)",
        "a collective operation of NCCL timed out ({text})",
        "Another rank may have failed or hung first: look for the first error in the log, and set NCCL_DEBUG=INFO.",
        shows_rank=True,
    ),
    rule(
        "ModuleNotFound",
        "Python does not find a module",
        r"^ModuleNotFoundError: No module named '(?P<text>[^'\n]+)'",
        "Python finds no module named {text}",
        "Install it in the image.",
        is_last=True,
        shows_rank=True,
    ),
    rule(
        "ImportError",
        "Python cannot import a name from a module",
        r"^ImportError: (?P<text>.+)$",
        "Python cannot import: {text}",
        "Correct the image: a library is missing, or has another version.",
        is_last=True,
        shows_rank=True,
    ),
    rule(
        "ScriptNotFound",
        "Python does not find the program",
        r"^(?:\S*/)?python[\d.]*: can't open file '(?P<file>[^'\n]+)': \[Errno \d+\] (?P<text>.+)$",
        "Python cannot open the program {file}: {text}",
        "Correct the path. The file must exist in the image of the workers, or in a volume that they mount.",
        shows_rank=True,
    ),
    rule(
        "LibraryNotFound",
        "a program, or a daemon of the MPI library, does not find a shared library",
        r"^(?P<file>[^\s:]+): error while loading shared libraries: (?P<text>[^\s:]+): cannot open shared object file",
        "{file} does not find the shared library {text}",
        "Install it in the image of the workers, or name its folder in LD_LIBRARY_PATH, which sshd must give to programs (docs/images.md).",
        shows_rank=True,
    ),
    rule(
        "PythonError",
        "Python ends with any other exception",
        r"^(?P<text>[A-Za-z_][\w.]*(?:Error|Exception)(?:: (?!.*(?:by peer|remote process exited)).*)?)$",
        "Python raised {text}",
        "Read the traceback in the log.",
        is_last=True,
        shows_rank=True,
    ),
    rule(
        "MpiAbort",
        "the program calls `MPI_Abort` of Open MPI",
        r"^MPI_ABORT was invoked on rank (?P<rank>\d+) in communicator .*(?:\n.*){0,3}?(?:with errorcode|Errorcode:) (?P<code>-?\d+)",
        "the program called MPI_Abort with code {code} on rank {rank}",
        READ,
    ),
    rule(
        "MpiAbort",
        "the program calls `MPI_Abort` of MPICH or Intel MPI",
        r"^Abort\((?P<code>-?\d+)\) on node \d+ \(rank (?P<rank>\d+) in comm \d+\): application called MPI_Abort",
        "the program called MPI_Abort with code {code} on rank {rank}",
        READ,
    ),
    rule(
        "ProgramFailed",
        "a rank of Open MPI exits with a nonzero code",
        r"The first process to do so was:\s+Process name: \[\S*[,@](?P<rank>\d+)\]\s+Exit code: +(?P<code>\d+)",
        "the program exited with code {code} on rank {rank}",
        READ,
    ),
    rule(
        "ProgramKilled",
        "a signal ends a rank of Open MPI",
        r"process rank (?P<rank>\d+) with PID \d+ on node (?P<host>[^\s.]+)(?:\.\S*)? exited on\s+"
        r"signal (?P<code>\d+) \((?P<text>[^)\n]*)\)",
        "signal {code} ({text}) ended the program on rank {rank}, {host}",
        "",
    ),
    rule(
        "ProgramKilled",
        "a signal ends a rank of Intel MPI",
        r"^= +RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>[^\s.]+)(?:\.\S*)?\n= +KILLED BY SIGNAL: (?P<code>\d+) \((?P<text>[^)\n]*)\)",
        "signal {code} ({text}) ended the program on rank {rank}, {host}",
        "",
    ),
    rule(
        "ProgramKilled",
        "a signal ends a rank of MPICH",
        _MPICH_SIGNAL + r"\d+\n(?:.*\n){1,12}?"
        r".*THE EXIT STRING: (?P<text>[^(\n]+) \(signal (?P<code>\d+)\)",
        "signal {code} ({text}) ended the program on {host}",
        "",
    ),
    rule(
        "ProgramKilled",
        "a signal ends a rank of MPICH, but MPICH's first lines are about another rank, which MPICH ended itself",
        r"^YOUR APPLICATION TERMINATED WITH THE EXIT STRING: (?P<text>[^(\n]+) \(signal (?P<code>\d+)\)",
        "signal {code} ({text}) ended the program",
        "",
    ),
    rule(
        "ProgramKilled",
        "a signal ends a rank of MPICH, and MPICH fails before it prints its last line",
        _MPICH_SIGNAL + r"(?P<code>\d+)$",
        "{signal} ended the program on {host}",
        "",
    ),
    rule(
        "WorkerHasEnded",
        "a worker has ended before `mpirun` calls it",
        _WAITS + r"its Pod has ended",
        "mpirun cannot reach {host}, which has ended",
        "Read its log: kubectl logs {host}.",
    ),
    rule(
        "WorkerScaledAway",
        "`mpirun` calls a worker that the job had before it was scaled down",
        _WAITS + r"the job has no such worker any more",
        "mpirun calls {host}, which the job no longer has",
        "Suspend the job before you change the number of workers, or start mpirun again after it.",
    ),
    rule(
        "SshNotConnected",
        "ssh cannot connect to a worker",
        r"^ssh: connect to host (?P<host>\S+) port (?P<code>\d+): (?P<text>.+)$",
        "ssh cannot connect to {host}, port {code}: {text}",
        "sshd must listen on that port, and no NetworkPolicy may block it.",
    ),
    rule(
        "ConnectionLost",
        "`mpirun` of Open MPI loses its connection to a worker",
        r"has lost communication with a remote daemon(?:.*\n){1,4}?.*Remote daemon: \S+ on node (?P<host>[^\s.]+)",
        "mpirun lost its connection to {host}",
        _LOST,
    ),
    rule(
        "ConnectionLost",
        "mpiop-agent loses its connection to a worker, often because that ends",
        _AGENT + r"lost: (?P<text>the connection to \S+ ended .+)$",
        "mpirun lost {host}: {text}",
        _LOST,
    ),
    rule(
        "ProgramKilled",
        "SIGKILL ends a rank of MPICH, which may have sent it itself",
        _MPICH_END + "(?P<code>9|137)$",
        "{signal} ended the program on {host}",
        "",
    ),
    rule(
        "CommandNotFound",
        "the last line of a script reports that there is no such command",
        _SHELL + r"(?P<file>[^\s:]+): (?:command )?not found\s*\Z",
        "the shell does not find the command {file}",
        "Correct the script, or install the command in the image.",
    ),
)
"""Those that name the cause best come first."""
