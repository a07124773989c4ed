"""What logs of failed launchers report. The texts are those that the libraries printed on a cluster, shortened."""

import time

import pytest

from mpiop.api.log_findings import finding
from mpiop.api.log_rules import RULES

RULER = "-" * 74
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 1, in <module>\n'
RETURNED = f"""{RULER}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{RULER}
"""
OPEN_MPI_4_CODE = f"""{RETURNED}{RULER}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[7425,1],1]
  Exit code:    3
{RULER}
"""
OPEN_MPI_5_CODE = f"""{RULER}
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-pi-launcher-1@1,2]
   Exit code:    3
{RULER}
"""
OPEN_MPI_4_ACCESS = f"""{RULER}
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /opt/no-such-program
Node: pi-worker-1.pi.team.svc

while attempting to start process rank 1.
{RULER}
2 total processes failed to start
"""
OPEN_MPI_5_ACCESS = f"""{RULER}
prterun was unable to launch the specified application as it could not
access an executable:

   Executable: /etc/passwd
   Node: pi-worker-1

while attempting to start process rank 1.
{RULER}
"""
OPEN_MPI_4_FIND = f"""{RULER}
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 1; it may have occurred for other processes as well.

NOTE: A common cause for this error is misspelling a mpirun command
      line parameter option (remember that mpirun interprets the first
      unrecognized command line token as the executable).

Node:       pi-worker-1.pi.team.svc
Executable: no-such-program
{RULER}
2 total processes failed to start
"""
OPEN_MPI_4_DIRECTORY = f"""{RULER}
mpirun was unable to launch the specified application as it could not
change to the specified working directory:

Working directory: /no/dir
Node: pi-worker-1.pi.team.svc

while attempting to start process rank 1.
"""
OPEN_MPI_4_SIGNAL = f"""{RETURNED}{RULER}
mpirun noticed that process rank 1 with PID 13 on node pi-worker-1.pi.team.svc exited on signal 11 (Segmentation fault).
{RULER}
"""
OPEN_MPI_5_SIGNAL = f"""{RULER}
prterun noticed that process rank 1 with PID 29 on node pi-worker-1 exited on
signal 9 (Killed).
{RULER}
"""
OPEN_MPI_5_OPTION = f"""{RULER}
An unrecognized option was included on the mpirun command line:

  Option: --no-such-option

Please use the "mpirun --help" command to obtain a list of all
supported options.
"""
SLOTS = f"""{RULER}
There are not enough slots available in the system to satisfy the 99
slots that were requested by the application:

  hostname

Either request fewer slots for your application, or make more slots
available for use.
"""
CLOSED = "mpiop-agent: pi-worker-1.pi.team.svc on node n1: lost: the connection to 10.1.0.4 ended before the command did\n"
LOST = f"""{RULER}
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[53577,0],0] on node pi-launcher
  Remote daemon: [[53577,0],2] on node pi-worker-1.pi.team.svc

This is usually due to either a failure of the TCP network
{RULER}
Connection to 10.130.0.176 closed by remote host.
"""
BAD = "=" * 83 + "\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
INTEL_SIGNAL = f"""{BAD}=   RANK 1 PID 12 RUNNING AT pi-worker-1.pi.team.svc
=   KILLED BY SIGNAL: 9 (Killed)
"""
MPICH_SIGNAL = f"""{BAD}=   PID 10 RUNNING AT pi-worker-1.pi.team.svc
=   EXIT CODE: 11
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
"""
MPICH_OTHER = MPICH_SIGNAL.replace("EXIT CODE: 11", "EXIT CODE: 9").replace("worker-1", "worker-0")
MPICH_FAILS = f"""{MPICH_SIGNAL.rpartition("YOUR")[0]}[proxy:0@pi-worker-0] main (pmip.c:122): demux engine error waiting for event
"""
HYDRA_4 = "/mpich-4.3.2/src/pm/hydra/lib/utils"
LONG = f"{'x' * 48}-launcher"
SMASHED = (
    f"*** stack smashing detected ***: terminated\n[{LONG}:00001] *** Process received signal ***\n"
    f"[{LONG}:00001] Signal: Segmentation fault (11)\n"
)
NCCL = (
    "[rank1]:[E1126 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600026 milliseconds before timing out.\n"
)
CUDA = f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.77 GiB\n"

FOUND = [
    ("Open MPI 4: name", SMASHED, f"LongName: mpirun crashed, because its host name {LONG} has more than 56 characters and no digit"),
    ("Open MPI 4: no such path", OPEN_MPI_4_ACCESS, "ExecutableNotFound: mpirun cannot execute /opt/no-such-program on pi-worker-1"),
    ("Open MPI 5: not executable", OPEN_MPI_5_ACCESS, "ExecutableNotFound: mpirun cannot execute /etc/passwd on pi-worker-1"),
    ("Open MPI 4: not in PATH", OPEN_MPI_4_FIND, "ExecutableNotFound: mpirun does not find the program no-such-program on pi-worker-1"),
    (
        "MPICH: no such program",
        f"[proxy:0@pi-worker-0] HYDU_create_process ({HYDRA_4}/launch.c:73): execvp error on file prog (No such file or directory)\n",
        "ExecutableNotFound: mpirun cannot execute prog on pi-worker-0: No such file or directory",
    ),
    (
        "Intel MPI: not executable",
        "[proxy:0:1@pi-worker-1] HYD_spawn (../hydra_spawn.c:177): execvp error on file /etc/passwd (Permission denied)\n",
        "ExecutableNotFound: mpirun cannot execute /etc/passwd on pi-worker-1: Permission denied",
    ),
    (
        "Intel MPI: no such program, with the words of two proxies in one line",
        "[proxy:0:0@pi-worker-0] [proxy:0:1@pi-worker-1] HYD_spawn (a.c:7): execvp error on file prog (No such file or directory)\n",
        "ExecutableNotFound: mpirun cannot execute prog on pi-worker-0: No such file or directory",
    ),
    (
        "Open MPI 4: directory",
        OPEN_MPI_4_DIRECTORY,
        "WorkingDirectoryNotFound: the working directory /no/dir does not exist on pi-worker-1",
    ),
    (
        "MPICH 5: directory, with the words of two proxies in one line",
        "[proxy:1@pi-worker-1] launch_procs (a.c:8): [proxy:0@pi-worker-0] unable to change wdir to /no/dir (No such file or directory)\n",
        "WorkingDirectoryNotFound: the working directory /no/dir does not exist on a worker",
    ),
    (
        "Open MPI 4: option",
        "mpirun: Error: unknown option \"--no-such-option\"\nType 'mpirun --help' for usage.\n",
        "UnknownOption: mpirun does not know its option --no-such-option",
    ),
    ("Open MPI 5: option", OPEN_MPI_5_OPTION, "UnknownOption: mpirun does not know its option --no-such-option"),
    (
        "Hydra: option",
        f"[mpiexec@pi-launcher] match_arg ({HYDRA_4}/args.c:166): unrecognized argument no-such-option\n",
        "UnknownOption: mpirun does not know its option -no-such-option",
    ),
    ("Open MPI: slots", SLOTS, "NotEnoughSlots: mpirun is asked for 99 processes, and there are fewer slots"),
    (
        "ssh: refused",
        "root@10.130.0.195: Permission denied (publickey,password).\n",
        "SshPermissionDenied: ssh to 10.130.0.195 was refused: Permission denied (publickey,password)",
    ),
    ("ssh: host key", "Host key verification failed.\n", "HostKeyVerificationFailed: ssh does not accept the host key of a worker"),
    (
        "ssh: no connection, before the words of mpirun",
        "ssh: connect to host 10.130.0.195 port 2222: Connection refused\n",
        "SshNotConnected: ssh cannot connect to 10.130.0.195, port 2222: Connection refused",
    ),
    (
        "a worker that has ended",
        "waiting for pi-worker-1.pi.team.svc: its Pod has ended and is not made again; delete the Pod to have another\n",
        "WorkerHasEnded: mpirun cannot reach pi-worker-1, which has ended",
    ),
    ("CUDA, and the rank", f"{CUDA}{OPEN_MPI_4_CODE}", "GpuOutOfMemory: CUDA out of memory. Tried to allocate 20.00 GiB (the program"),
    ("CUDA, by the runtime", "RuntimeError: CUDA error: out of memory\n", "GpuOutOfMemory: a GPU has too little memory"),
    ("NCCL", NCCL, "NcclTimeout: a collective operation of NCCL timed out (ALLREDUCE)"),
    (
        "Python: module, and the rank",
        f"{TRACEBACK}ModuleNotFoundError: No module named 'numpy'\n{OPEN_MPI_4_CODE}",
        "ModuleNotFound: Python finds no module named numpy (the program exited with code 3 on rank 1)",
    ),
    (
        "Python: with the tag of a rank",
        "[1,0]<stddiag>:Traceback (most recent call last):\n[1,0]<stderr>:ModuleNotFoundError: No module named 'numpy'\n",
        "ModuleNotFound: Python finds no module named numpy",
    ),
    (
        "Python: with the tag of a rank by Open MPI 5",
        "[prterun-pi-launcher-1@1,0]<stderr>: ModuleNotFoundError: No module named 'numpy'\n",
        "ModuleNotFound: Python finds no module named numpy",
    ),
    (
        "Python: with the tag of PyTorch",
        "[rank1]: Traceback (most recent call last):\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        "GpuOutOfMemory: a GPU has too little memory: CUDA out of memory. Tried to allocate 2.00 GiB",
    ),
    (
        "Python: import",
        f"{TRACEBACK}ImportError: libmpi.so.40: cannot open shared object file: No such file or directory\n",
        "ImportError: Python cannot import: libmpi.so.40: cannot open shared object file",
    ),
    (
        "Python: no such program",
        "python3: can't open file '/app/train.py': [Errno 2] No such file or directory\n",
        "ScriptNotFound: Python cannot open the program /app/train.py: No such file or directory",
    ),
    (
        "a program without its library",
        "/app/pi: error while loading shared libraries: libmpi.so.12: cannot open shared object file: No such file or directory\n",
        "LibraryNotFound: /app/pi does not find the shared library libmpi.so.12",
    ),
    (
        "a shell without the daemon of Open MPI 4",
        "bash: line 1: orted: command not found\n",
        "DaemonNotFound: mpirun does not find its daemon orted on a worker",
    ),
    (
        "dash without the daemon of Open MPI 5",
        "sh: 1: prted: not found\n",
        "DaemonNotFound: mpirun does not find its daemon prted on a worker",
    ),
    (
        "a shell without the daemon of MPICH",
        "bash: line 1: /opt/mpi/bin/hydra_pmi_proxy: No such file or directory\n",
        "DaemonNotFound: mpirun does not find its daemon /opt/mpi/bin/hydra_pmi_proxy on a worker",
    ),
    ("a script", "it begins\nsh: 1: mpirunn: not found\n", "CommandNotFound: the shell does not find the command mpirunn"),
    ("Python: another exception", f"{TRACEBACK}ValueError: bad shape\n", "PythonError: Python raised ValueError: bad shape"),
    (
        "Python: what a peer reports of another rank's end is no cause",
        f"{TRACEBACK}ValueError: bad shape\n{TRACEBACK}RuntimeError: Connection closed by peer [10.1.1.1]:4\n",
        "PythonError: Python raised ValueError: bad shape",
    ),
    (
        "Open MPI: MPI_Abort",
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n",
        "MpiAbort: the program called MPI_Abort with code 5 on rank 1",
    ),
    (
        "Open MPI 5: MPI_Abort",
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n\n  Proc: [[60868,1],1]\n  Errorcode: 5\n",
        "MpiAbort: the program called MPI_Abort with code 5 on rank 1",
    ),
    (
        "Hydra: MPI_Abort",
        "Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 1\n",
        "MpiAbort: the program called MPI_Abort with code 5 on rank 1",
    ),
    ("Open MPI 4: exit code", OPEN_MPI_4_CODE, "ProgramFailed: the program exited with code 3 on rank 1"),
    ("Open MPI 5: exit code", OPEN_MPI_5_CODE, "ProgramFailed: the program exited with code 3 on rank 2"),
    ("Open MPI 4: signal", OPEN_MPI_4_SIGNAL, "ProgramKilled: signal 11 (Segmentation fault) ended the program on rank 1, pi-worker-1"),
    ("Open MPI 5: signal", OPEN_MPI_5_SIGNAL, "ProgramKilled: signal 9 (Killed) ended the program on rank 1, pi-worker-1"),
    ("Intel MPI: signal", INTEL_SIGNAL, "ProgramKilled: signal 9 (Killed) ended the program on rank 1, pi-worker-1"),
    ("MPICH: signal", MPICH_SIGNAL, "ProgramKilled: signal 11 (Segmentation fault) ended the program on pi-worker-1"),
    ("MPICH: signal of another rank", MPICH_OTHER, "ProgramKilled: signal 11 (Segmentation fault) ended the program."),
    ("MPICH: signal, with a core dump", MPICH_SIGNAL.replace(": 11", ": 139"), "ProgramKilled: fault) ended the program on pi-worker-1."),
    ("MPICH: signal, and it fails itself", MPICH_FAILS, "ProgramKilled: SIGSEGV ended the program on pi-worker-1."),
    (
        "MPICH: signal with a core dump, and it fails itself",
        MPICH_FAILS.replace("EXIT CODE: 11", "EXIT CODE: 139"),
        "ProgramKilled: SIGSEGV ended the program on pi-worker-1.",
    ),
    (
        "MPICH: killed",
        MPICH_FAILS.replace("EXIT CODE: 11", "EXIT CODE: 9"),
        "ProgramKilled: SIGKILL ended the program on pi-worker-1.",
    ),
    (
        "mpiop-agent: a node without a network",
        f"mpiop-agent: pi-worker-1.pi.team.svc on node n1: lost: no answer from 10.1.0.4 for 15s\n{INTEL_SIGNAL}",
        "WorkerLost: mpirun lost pi-worker-1: no answer from 10.1.0.4 for 15s",
    ),
    (
        "mpiop-agent: the daemon of Open MPI 5",
        "mpiop-agent: pi-worker-1.pi.team.svc on node n1: signal 9 ended what mpirun started there\n",
        "WorkerLost: mpirun lost pi-worker-1: signal 9 ended what mpirun started there",
    ),
    (
        "mpiop-agent: the daemon of Open MPI 5, whose parent lives on",
        "mpiop-agent: pi-worker-1.pi.team.svc on node n1: lost: its daemon ended with code 255\n",
        "WorkerLost: mpirun lost pi-worker-1: its daemon ended with code 255",
    ),
    (
        "mpiop-agent: no server",
        "mpiop-agent: pi-worker-1.pi.team.svc: cannot connect to 10.1.0.4: dial tcp 10.1.0.4:2222: connect: connection refused\n",
        "WorkerLost: mpirun lost pi-worker-1: cannot connect to 10.1.0.4: dial tcp",
    ),
    (
        "mpiop-agent: a connection",
        CLOSED,
        "ConnectionLost: mpirun lost pi-worker-1: the connection to 10.1.0.4 ended before the command did",
    ),
    (
        "mpiop-agent: an ended worker",
        "mpiop-agent: pi-worker-1.pi.team.svc: its Pod has ended and is not made again; delete the Pod to have another\n",
        "WorkerHasEnded: mpirun cannot reach pi-worker-1, which has ended",
    ),
    (
        "a worker that was scaled away",
        "waiting for pi-worker-2.pi.team.svc: the job has no such worker any more\n",
        "WorkerScaledAway: mpirun calls pi-worker-2, which the job no longer has",
    ),
    (
        "mpiop-agent: the program's error comes before the loss that it causes",
        f"{TRACEBACK}ValueError: bad shape\n{CLOSED}",
        "PythonError: Python raised ValueError: bad shape",
    ),
    ("Open MPI 4: connection", LOST, "ConnectionLost: mpirun lost its connection to pi-worker-1"),
]
NOTHING = [
    ("a crash with a short name", SMASHED.replace(LONG, "pi-launcher")),
    ("a rank that crashes with a long name", f"[{'x' * 48}-worker-1:00012] *** Process received signal ***\n"),
    ("nothing", ""),
    ("what Open MPI 4 always prints", RETURNED),
    ("a warning about an import", "WARNING: ImportError: no module named tensorboard, metrics are off\n"),
    ("a module in a sentence", "the optional ModuleNotFoundError: No module named 'apex' is ignored\n"),
    ("a file that may not be read", "cat: /root/.ssh/config: Permission denied\n"),
    ("a directory, not ssh", "mkdir: cannot create directory '/data': Permission denied\n"),
    ("a log that quotes the slots", "hint: There are not enough slots available in the system to satisfy the 4\n"),
    ("memory that is reported", "epoch 3, CUDA out of memory retries: 0\n"),
    ("a peer that has gone", "RuntimeError: Connection closed by peer [10.1.1.1]:4\n"),
    ("a host key that is added", "Warning: Permanently added '10.130.0.195' (ED25519) to the list of known hosts.\n"),
    ("an exit code of the program's own", "Exit code:    3\n"),
    ("a signal that was handled", "received signal 15 (Terminated), writing a checkpoint\n"),
    ("MPICH was ended, and ended its ranks", MPICH_FAILS.replace("EXIT CODE: 11", "EXIT CODE: 15")),
    ("a signal that mpirun sent", "mpiop-agent: pi-worker-1.pi.team.svc on node n1: signal 15 ended what mpirun started there\n"),
    ("a command that is not needed", "sh: 1: module: not found\nit begins\n"),
    ("a library in a sentence", "retrying: error while loading shared libraries is expected here\n"),
    ("a script in a sentence", "usage: python3: can't open file means that the path is wrong\n"),
    ("a daemon in a sentence", "sh: 1: orted: not found on the first try, retrying\n"),
    ("a directory that the program cannot use", "unable to change wdir to /no/dir (No such file or directory)\n"),
    ("mpirun waits", "waiting for pi-worker-1.pi.team.svc: no address for 20 s; the operator publishes it once all workers are Ready\n"),
]


@pytest.mark.parametrize(("log", "cause"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_a_log_explains_a_failure(log: str, cause: str) -> None:
    name, _, facts = cause.partition(": ")
    found = finding(f"step 1\nstep 2\n{log}")
    assert found is not None
    assert found.name == name
    assert facts in f"{found.facts}."
    assert found.advice


@pytest.mark.parametrize("log", [row[1] for row in NOTHING], ids=[row[0] for row in NOTHING])
def test_a_log_that_only_looks_like_it_explains_nothing(log: str) -> None:
    assert finding(f"step 1\n{log}") is None


def test_each_rule_has_its_text() -> None:
    assert {rule.name for rule in RULES} == {cause.partition(": ")[0] for *_, cause in FOUND}
    unused = [rule.when for rule in RULES if not any(rule.pattern.search(log) for _, log, *_ in FOUND)]
    assert unused == []


def test_a_signal_of_mpich_has_its_advice_with_a_core_dump_too() -> None:
    found = finding(MPICH_FAILS.replace("EXIT CODE: 11", "EXIT CODE: 135"))
    assert found is not None
    assert "kubeflow.org/shm" in found.advice


HOSTILE = (
    *("=", "Node: ", "Traceback Error", "BAD RUNNING AT ", "x" * 999 + "Error\n", "=   PID 1 RUNNING AT a\n", "\n"),
    "[proxy:0:0@h] HYD_a " + "execvp error on file  (" * 42 + "\r",
    "process rank 1 with PID 2 on node h exited on signal 1 (" * 17 + "\r",
    "= RANK 1 PID 2 RUNNING AT h\n= KILLED BY SIGNAL: 9 (\n",
    ("unable to find the specified executable file" * 22 + "\n") * 12 + (" " * 999 + "\n") * 250,
)


@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: piece[:40])
def test_a_log_that_is_made_to_be_slow_is_not(piece: str) -> None:
    """It takes 0.1 s; patterns that excluded a character, but not the end of the line, took 8 s."""
    log = (piece * (1 + 256 * 1024 // len(piece)))[: 256 * 1024]
    started = time.process_time()
    finding(log)
    assert time.process_time() - started < 0.6


@pytest.mark.parametrize("filler", ["a", ".", ":", " ", "a.", "a:", "@", "-"])
@pytest.mark.parametrize("log", [row[1] for row in FOUND], ids=[row[0] for row in FOUND])
def test_no_line_that_begins_like_one_of_a_library_is_slow(log: str, filler: str) -> None:
    starts = [line[:length] for line in log.splitlines() for length in range(0, len(line), 12)]
    many = "\n".join(start + filler * 900 for start in starts)
    started = time.process_time()
    finding("\n".join(many.splitlines()[:80]))
    assert time.process_time() - started < 1
