"""Jobs that fail, each in one way that a user's may, and what is done to those that need somebody for it.

What users see of them is in docs/failed-jobs.md, row by row (`e2e.failed_jobs`).
"""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from demonstration.operator_images import named_image
from e2e.broken import container, with_init, with_volume
from e2e.jobs import evict, launcher_pod, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import plain_job, sshd_job

Spoil = Callable[[Obj, Obj], None]
"""Changes launcher and workers."""
Harm = Callable[[Kubectl, str], object]
"""What is done to the job of that name once it runs."""

RANK: Final = "r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; sleep 1; "
"""Open MPI prints less about a rank that ends while others are still started."""
SERVE: Final = "/usr/sbin/sshd -f /home/mpiuser/.sshd_config; "
COMPUTING: Final = "/tmp/computing"  # noqa: S108 - in a container
WAIT: Final = ["-n", "2", "/bin/sh", "-c", f"touch {COMPUTING}; exec sleep 120"]
SHORT_SECONDS: Final = 20
LAUNCHER_FAILED: Final = "BackoffLimitExceeded/"
POD_GONE: Final = "BackoffLimitExceeded"
NOT_EXECUTABLE: Final = "/etc/passwd"
LIBRARY_NAMES: Final = {"openmpi": "Open MPI 4", "openmpi5": "Open MPI 5", "mpich": "MPICH 4", "mpich5": "MPICH 5", "intel": "Intel MPI"}


def says(*lines: str) -> str:
    """Return a command of sh that prints lines to stderr."""
    return f"printf '%s\\n' {shlex.join(lines)} >&2; "


CUDA: Final = says(
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 8, in <module>',
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
)
NCCL: Final = says(
    "[rank1]:[E1126 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
)
"""Both as PyTorch prints them."""
HARMLESS: Final = says(
    "WARNING: ImportError: no module named tensorboard, metrics are off",
    "the optional ModuleNotFoundError: No module named 'apex' is ignored",
    "cat: /root/.ssh/config: Permission denied",
    "hint: There are not enough slots available in the system to satisfy the 4",
    "epoch 3, CUDA out of memory retries: 0",
    "received signal 15 (Terminated), writing a checkpoint",
    "sh: 1: module: not found",
    "retrying: error while loading shared libraries is expected here",
)


def runs(*arguments: str) -> Spoil:
    """Let the launcher call `mpirun` with these arguments."""

    def spoil(launcher: Obj, _worker: Obj) -> None:
        container(launcher)["args"] = [*arguments]

    return spoil


def on_rank_1(script: str) -> Spoil:
    """Let rank 1 run a script, while rank 0 computes."""
    return runs("-n", "2", "/bin/sh", "-c", f"{RANK}[ $r = 1 ] || exec sleep 20; {script}")


def in_python(program: str) -> Spoil:
    """Let both ranks run a program with mpi4py; `comm` is the world, and `rank` the rank in it."""
    begin = "from mpi4py.MPI import COMM_WORLD as comm; import time; rank = comm.rank\n"
    return runs("-n", "2", "python3", "-m", "mpi4py", "-c", begin + program)


def launches(*command: str) -> Spoil:
    """Let the launcher run another command than `mpirun`."""

    def spoil(launcher: Obj, _worker: Obj) -> None:
        container(launcher)["command"] = [*command]
        container(launcher).pop("args")

    return spoil


def worker_runs(worker: Obj, *command: str) -> None:
    """Let the workers run another command than sshd."""
    container(worker)["command"] = [*command]
    container(worker).pop("args", None)


def no_sshd(_launcher: Obj, worker: Obj) -> None:
    container(worker)["command"] = ["/no/such/sshd"]


def no_listener(_launcher: Obj, worker: Obj) -> None:
    worker_runs(worker, "sleep", "infinity")


def no_module(launcher: Obj, worker: Obj) -> None:
    container(launcher)["image"] = named_image()
    launches("python3", "-c", "import numpy")(launcher, worker)


def worker_with_deadline(launcher: Obj, worker: Obj) -> None:
    container(launcher)["args"] = WAIT
    worker["template"]["spec"]["activeDeadlineSeconds"] = SHORT_SECONDS


def worker_without_memory(launcher: Obj, worker: Obj) -> None:
    """Let a worker take more memory than it may, some time after its sshd has started."""
    container(launcher)["args"] = WAIT
    worker_runs(worker, "/bin/sh", "-c", f"{SERVE}sleep 15; case $HOSTNAME in *-1) exec tail /dev/zero;; esac; sleep 600")
    container(worker)["resources"] = {"limits": {"memory": "64Mi"}}


def worker_without_disk(launcher: Obj, worker: Obj) -> None:
    container(launcher)["args"] = WAIT
    with_volume(worker, emptyDir={"sizeLimit": "1Mi"})
    worker_runs(worker, "/bin/sh", "-c", f"dd if=/dev/zero of=/data/large bs=1M count=8; {SERVE}exec sleep 600")


def launcher_without_memory(launcher: Obj, worker: Obj) -> None:
    launches("tail", "/dev/zero")(launcher, worker)
    container(launcher)["resources"] = {"limits": {"memory": "64Mi"}}


def launcher_with_init(launcher: Obj, _worker: Obj) -> None:
    with_init(launcher)


def other_user(launcher: Obj, _worker: Obj) -> None:
    container(launcher)["securityContext"] = {"runAsUser": 0}
    container(launcher)["args"] = ["--allow-run-as-root", "-n", "2", "hostname"]


def strict_host_keys(launcher: Obj, _worker: Obj) -> None:
    container(launcher)["args"] = ["--mca", "plm_rsh_args", "-o StrictHostKeyChecking=yes", "-n", "2", "hostname"]


def other_library(_launcher: Obj, worker: Obj) -> None:
    repository, _, _ = container(worker)["image"].rpartition(":")
    container(worker)["image"] = f"{repository}:openmpi"


def no_library(launcher: Obj, worker: Obj) -> None:
    container(launcher)["args"] = ["-n", "2", "/home/mpiuser/pi"]
    with_volume(worker, emptyDir={})
    container(worker)["volumeMounts"][0]["mountPath"] = "/opt/mpi/lib"


def no_node(_launcher: Obj, worker: Obj) -> None:
    worker["template"]["spec"]["nodeSelector"] = {"example.com/pool": "none"}


def no_image(_launcher: Obj, worker: Obj) -> None:
    container(worker)["image"] = "localhost/no-such-image:1"


def tried_again(launcher: Obj, worker: Obj) -> None:
    """Let one rank fail, and the kubelet restart the launcher's container."""
    on_rank_1("exit 3")(launcher, worker)
    launcher["restartPolicy"] = "OnFailure"


def _until_computing(here: Kubectl, name: str) -> None:
    """Return when `mpirun` has started a rank on the last worker: before that, it has nothing to lose."""
    until_true(here, name, "Running")
    here.run("exec", f"{name}-worker-1", "--", "timeout", "60", "sh", "-c", f"until [ -e {COMPUTING} ]; do sleep 0.1; done")


def scale_down(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    here.run("scale", f"mj/{name}", "--replicas=1")


def delete_worker(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    here.run("delete", "pod", f"{name}-worker-1", "--wait=false")


def drain_worker(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    evict(here, f"{name}-worker-1")


def delete_launcher(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    here.run("delete", "pod", launcher_pod(here, name), "--wait=false")


def drain_launcher(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    evict(here, launcher_pod(here, name))


def delete_launcher_job(here: Kubectl, name: str) -> None:
    _until_computing(here, name)
    here.run("delete", "job", f"{name}-launcher", "--wait=false")


class End(NamedTuple):
    """A job that fails.

    Attributes:
        planted: What is wrong with it, as the page words it.
        library: Of `e2e.libraries`.
        spoil: Changes launcher and workers.
        is_injected: Whether its image has no ssh, and the operator brings it.
        harm: What is done once the job runs, if anything.
        reason: What the reason of `Failed` begins with.
        deadline: `activeDeadlineSeconds` of the job.
        words_length: Characters of `planted` that the job's name has.
    """

    planted: str
    library: str
    spoil: Spoil
    is_injected: bool = False
    harm: Harm | None = None
    reason: str = LAUNCHER_FAILED
    deadline: int | None = None
    words_length: int = 30

    @property
    def id(self) -> str:
        """The name of the job."""
        words = re.sub(r"[^a-z0-9]+", "-", self.planted.lower()).strip("-")
        return f"{words[: self.words_length].strip('-')}-{self.library}"

    @property
    def seen_with(self) -> str:
        """The library as the page has it."""
        return LIBRARY_NAMES[self.library] + (" injected" if self.is_injected else "")


def _ends(planted: str, spoil: Spoil, *libraries: str, **more: Any) -> Iterator[End]:
    """Yield a job for each library; one that ends in `+` is the image without ssh."""
    for library in libraries:
        yield End(planted, library.rstrip("+"), spoil, is_injected=library.endswith("+"), **more)


FIVE: Final = ("openmpi", "openmpi5+", "mpich+", "mpich5", "intel+")
ENDS: Final = [
    *_ends("an image without sshd", no_sshd, "openmpi", "intel"),
    *_ends("workers that run `sleep infinity` instead of sshd", no_listener, "mpich"),
    *_ends("keys mounted for another user", other_user, "openmpi"),
    *_ends("ssh with `StrictHostKeyChecking=yes`", strict_host_keys, "openmpi"),
    *_ends("`kubectl scale --replicas=1` on a running job", runs(*WAIT), "openmpi", "mpich5+", harm=scale_down),
    *_ends("`kubectl delete pod` of a worker", runs(*WAIT), "openmpi", "intel+", harm=delete_worker),
    *_ends("a worker that is evicted, as by `kubectl drain`", runs(*WAIT), "openmpi5+", harm=drain_worker),
    *_ends("`kubectl delete pod` of the launcher", runs(*WAIT), "openmpi5", harm=delete_launcher, reason=POD_GONE),
    *_ends("a launcher that is evicted", runs(*WAIT), "mpich5", harm=drain_launcher, reason=POD_GONE),
    *_ends("`kubectl delete job` of the launcher", runs(*WAIT), "mpich", harm=delete_launcher_job, reason="LauncherJobNotFound"),
    *_ends("`activeDeadlineSeconds` in the template of the workers", worker_with_deadline, "mpich5"),
    *_ends("a worker that needs more memory than its limit", worker_without_memory, "intel"),
    *_ends("workers that write more than the `sizeLimit` of their volume", worker_without_disk, "mpich", reason="MPIJobEvicted"),
    *_ends("a launcher that needs more memory than its limit", launcher_without_memory, "openmpi5"),
    *_ends("an init container of the launcher that fails", launcher_with_init, "openmpi"),
    *_ends("a Pod that fits on no node, in a job with a deadline", no_node, "intel", deadline=SHORT_SECONDS, reason="DeadlineExceeded"),
    *_ends("an image that does not exist, in a job with a deadline", no_image, "mpich", deadline=SHORT_SECONDS, reason="DeadlineExceeded"),
    *_ends("a program that takes longer than the deadline", runs(*WAIT), "openmpi5", deadline=SHORT_SECONDS, reason="DeadlineExceeded"),
    *_ends("a job name that is too long for `mpirun` and has no digit", runs(*WAIT), "openmpi", words_length=46),
    *_ends("a launcher whose command does not exist", launches("mpirunn", "-n", "2", "pi"), "mpich5"),
    *_ends("a script of the launcher that calls an unknown command", launches("sh", "-c", "mpirunn -n 2 pi"), "intel+"),
    *_ends("a program that does not exist", runs("-n", "2", "no-such-program"), *FIVE),
    *_ends("a file that is not executable", runs("-n", "2", NOT_EXECUTABLE), "openmpi5", "intel"),
    *_ends("a working directory that does not exist", runs("-wdir", "/no/dir", "-n", "2", "hostname"), "openmpi"),
    *_ends("an option that `mpirun` does not know", runs("--no-such-option", "-n", "2", "hostname"), "openmpi", "openmpi5+", "mpich+"),
    *_ends("more ranks than slots", runs("-n", "9", "hostname"), "openmpi"),
    *_ends("a rank that exits with 3", on_rank_1("exit 3"), *FIVE),
    *_ends("a rank that exits with 3 in a launcher that the kubelet restarts", tried_again, "openmpi5"),
    *_ends("a rank that crashes", on_rank_1("kill -SEGV $$$$"), *FIVE),
    *_ends("a rank that is killed", on_rank_1("kill -KILL $$$$"), "openmpi5", "mpich5+", "intel"),
    *_ends("`MPI_Abort`", in_python("time.sleep(1)\nif rank: comm.Abort(5)\ntime.sleep(20)"), "openmpi+", "openmpi5+", "intel+"),
    *_ends("an exception on one rank, mpi4py", in_python("time.sleep(1)\nif rank: open('/data/in.nc')\ntime.sleep(20)"), "mpich5+"),
    *_ends("a Python module that is missing", in_python("import numpy"), "intel+"),
    *_ends("a Python module that is missing in the launcher's image", no_module, "openmpi"),
    *_ends("an import that Python rejects", in_python("from math import no_such_name"), "openmpi+"),
    *_ends("a Python script that does not exist", runs("-n", "2", "python3", "/app/train.py"), "openmpi5+"),
    *_ends("a program whose shared library is missing", no_library, "intel"),
    *_ends("different MPI libraries in launcher and workers", other_library, "openmpi5", "mpich"),
    *_ends("CUDA reports that a GPU has too little memory", on_rank_1(f"{CUDA}exit 1"), "openmpi5+"),
    *_ends("NCCL reports that a collective operation timed out", on_rank_1(f"{NCCL}kill -ABRT $$$$"), "openmpi"),
    *_ends("a program that prints text that looks like an error, and exits with 3", on_rank_1(f"{HARMLESS}exit 3"), "mpich5+"),
]


def ending_job(end: End) -> Obj:
    """Return such a job, of two workers, whose launcher is not tried again."""
    job = (plain_job if end.is_injected else sshd_job)(end.library, end.id, workers=2)
    job["spec"]["runPolicy"] |= {"backoffLimit": 0, "cleanPodPolicy": "Running"}
    if end.deadline is not None:
        job["spec"]["runPolicy"]["activeDeadlineSeconds"] = end.deadline
    roles = [job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker")]
    for role in roles:
        container(role)["resources"] = {"requests": {"cpu": "1m"}}
    roles[0]["restartPolicy"] = "Never"
    end.spoil(*roles)
    return job
