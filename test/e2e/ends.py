"""Jobs that fail, each in one way that a user's may, and what is done to those that need somebody for it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from demonstration.operator_images import named_image
from e2e.broken import container
from e2e.jobs import pi_job
from e2e.kubectl import Kubectl, Obj

RANK: Final = "r=$OMPI_COMM_WORLD_RANK; sleep 1; "
"""Open MPI prints less about a rank that ends while others are still started."""
SERVE: Final = "/usr/sbin/sshd -f /home/mpiuser/.sshd_config; "
COMPUTING: Final = "/tmp/computing"  # noqa: S108 - in a container
WAIT: Final = ["-n", "2", "/bin/sh", "-c", f"touch {COMPUTING}; exec sleep 120"]


class End(NamedTuple):
    """A job that fails.

    Attributes:
        id: Its name.
        spoil: Changes launcher and workers.
        verdict: What the message of the summary begins with, as far as the operator sees it without the launcher's log.
        why: What `kubectl mpi why` begins with, after the name of the job.
        harm: What is done once the job runs, if anything.
    """

    id: str
    spoil: Callable[[Obj, Obj], None]
    verdict: str
    why: str = ""
    harm: Callable[[Kubectl, str], object] | None = None


def _worker_runs(worker: Obj, script: str) -> None:
    container(worker)["command"] = ["/bin/sh", "-c", script]
    container(worker).pop("args", None)


def no_sshd(_launcher: Obj, worker: Obj) -> None:
    """Use an image without sshd."""
    container(worker)["command"] = ["/no/such/sshd"]


def no_program(launcher: Obj, _worker: Obj) -> None:
    """Misspell the program."""
    container(launcher)["args"] = ["-n", "2", "no-such-program"]


def no_module(launcher: Obj, _worker: Obj) -> None:
    """Need a Python module that the image does not have."""
    first = container(launcher)
    first["image"], first["command"] = named_image(), ["python3", "-c", "import numpy"]
    first.pop("args")


def rank_that_fails(launcher: Obj, _worker: Obj) -> None:
    """Let one rank exit with a code of its own."""
    container(launcher)["args"] = ["-n", "2", "/bin/sh", "-c", f"{RANK}[ $r = 0 ] || exit 3; sleep 20"]


def rank_that_crashes(launcher: Obj, _worker: Obj) -> None:
    """Let one rank crash."""
    container(launcher)["args"] = ["-n", "2", "/bin/sh", "-c", f"{RANK}[ $r = 0 ] || kill -SEGV $$$$; sleep 20"]


def too_many_ranks(launcher: Obj, _worker: Obj) -> None:
    """Ask for more processes than slots."""
    container(launcher)["args"] = ["-n", "9", "hostname"]


def unknown_option(launcher: Obj, _worker: Obj) -> None:
    """Misspell an option."""
    container(launcher)["args"] = ["--no-such-option", "-n", "2", "hostname"]


def waits(launcher: Obj, _worker: Obj) -> None:
    """Run until something happens to the job."""
    container(launcher)["args"] = WAIT


def worker_with_deadline(launcher: Obj, worker: Obj) -> None:
    """Give the workers a deadline of their own."""
    container(launcher)["args"] = WAIT
    worker["template"]["spec"]["activeDeadlineSeconds"] = 20


def worker_without_memory(launcher: Obj, worker: Obj) -> None:
    """Let a worker take more memory than it may, some time after its sshd has started."""
    container(launcher)["args"] = WAIT
    _worker_runs(worker, f"{SERVE}sleep 15; case $HOSTNAME in *-1) exec tail /dev/zero;; esac; sleep 600")
    container(worker)["resources"] = {"limits": {"memory": "64Mi"}}


def wrong_user(launcher: Obj, _worker: Obj) -> None:
    """Run the launcher as another user than the keys are for."""
    container(launcher)["securityContext"] = {"runAsUser": 0}
    container(launcher)["args"] = ["--allow-run-as-root", "-n", "2", "hostname"]


def _until_computing(here: Kubectl, name: str) -> None:
    """Return when `mpirun` has started a rank on the last worker: before that, it has nothing to lose."""
    here.run("exec", f"{name}-worker-1", "--", "timeout", "60", "sh", "-c", f"until [ -e {COMPUTING} ]; do sleep 0.1; done")


def scale_down(here: Kubectl, name: str) -> None:
    """Take the last worker away, as a user may."""
    _until_computing(here, name)
    here.run("scale", f"mpijob/{name}", "--replicas=1")


def delete_worker(here: Kubectl, name: str) -> None:
    """Delete a worker by hand."""
    _until_computing(here, name)
    here.run("delete", "pod", f"{name}-worker-1", "--wait=false")


ENDS: Final = [
    End("no-sshd", no_sshd, "NoSshd: container mpi-worker of pod no-sshd-worker-"),
    End("worker-deadline", worker_with_deadline, "WorkerDeadlineExceeded: worker worker-deadline-worker-"),
    End("worker-oom", worker_without_memory, "OOMKilled: worker worker-oom-worker-1"),
    End("scaled", waits, "ScaledDown: worker scaled-worker-1 was removed, because the job was scaled down to 1", harm=scale_down),
    End("deleted", waits, "WorkerDeleted: worker deleted-worker-1", harm=delete_worker),
    End(
        "no-program",
        no_program,
        "the launcher failed with exit code 134 (mpirun",
        "mpirun does not find the program no-such-program on no-program-",
    ),
    End("no-module", no_module, "the launcher failed with exit code 1;", "Python finds no module named numpy"),
    End("rank-fails", rank_that_fails, "the launcher failed with exit code 3;", "the program exited with code 3 on rank 1"),
    End(
        "rank-crashes",
        rank_that_crashes,
        "the launcher failed with exit code 139 (SIGSEGV)",
        "signal 11 (Segmentation fault) ended the program on rank 1, rank-crashes-worker-1",
    ),
    End("no-slots", too_many_ranks, "the launcher failed with exit code 1;", "mpirun is asked for 9 processes, and there are fewer slots"),
    End("no-option", unknown_option, "the launcher failed with exit code 1;", "mpirun does not know its option --no-such-option"),
    End("wrong-user", wrong_user, "the launcher failed with exit code 255 (ssh", "ssh to "),
]


def ending_job(end: End) -> Obj:
    """Return such a job, of two workers, whose launcher is not tried again."""
    job = pi_job(end.id, workers=2)
    job["spec"]["runPolicy"] |= {"backoffLimit": 0, "cleanPodPolicy": "Running"}
    roles = [job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker")]
    for role in roles:
        container(role)["resources"] = {"requests": {"cpu": "1m"}}
    roles[0]["restartPolicy"] = "Never"
    end.spoil(*roles)
    return job
