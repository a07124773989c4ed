"""The current attempt of the launcher, and which of the workers that it began with are lost.

When the addresses of the workers are published, an annotation of the launcher pod notes how many workers there are and when the newest of
them was created. A worker of that range that is created later is a replacement, which this try's `mpirun` does not know. Workers added by
scaling up are outside the range. So an operator sees a loss as long as the attempt runs, even if it did not watch it happen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects.worker_pod import runs_sshd
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import is_lost
from mpiop.controller.observe.observed import Observed
from mpiop.kube.objects import Object, annotations_of, is_terminating
from mpiop.kube.text import whole_number


@dataclass(frozen=True, slots=True)
class Beginning:
    """With which workers an attempt began.

    Attributes:
        restarts: How often the launcher's container had been restarted: each restart is another attempt in the same pod.
        workers: Their number.
        newest: creationTimestamp of the one that was created last.
    """

    restarts: int
    workers: int
    newest: str

    def __str__(self) -> str:
        """Render as the annotation has it."""
        return f"{self.restarts} {self.workers} {self.newest}"


def noted_beginning(launcher_pod: Object) -> Beginning | None:
    """Return what the annotation of the launcher pod says; None before the addresses of its workers are published."""
    words = annotations_of(launcher_pod).get(names.ANNOTATION_BEGAN_WITH, "").split(" ")
    match words:
        case [restarts, workers, newest]:
            counts = whole_number(restarts), whole_number(workers)
            return None if counts[0] is None or counts[1] is None else Beginning(counts[0], counts[1], newest)
        case _:
            return None


def beginning_to_note(job: MPIJob, observed: Observed) -> Beginning | None:
    """Return what the annotation of the launcher pod should say; None leaves it as it is.

    An attempt begins when every worker is Ready. Workers that the user takes away by scaling down are not lost.
    """
    pod = observed.launcher_pod
    if pod is None:
        return None
    noted, restarts = noted_beginning(pod), launcher_restarts(job, pod)
    if noted is not None and noted.restarts == restarts:
        is_smaller = job.worker_replicas < noted.workers
        return Beginning(restarts, job.worker_replicas, noted.newest) if is_smaller else None
    if not observed.is_ready(job):
        return None
    return Beginning(restarts, job.worker_replicas, max((_created(observed.workers[name]) for name in names.worker_names(job)), default=""))


def launcher_restarts(job: MPIJob, launcher_pod: Object) -> int:
    """Return how often the container that runs `mpirun` was restarted in its pod."""
    return mpirun_status(job, launcher_pod).get("restartCount") or 0


def mpirun_status(job: MPIJob, launcher_pod: Object) -> Mapping[str, Any]:
    """Return the status of the container that runs `mpirun`; empty while it has none."""
    return pods.main_container_status(launcher_pod, job.launcher.template["spec"]["containers"][0].get("name", ""))


def running_try(job: MPIJob, observed: Observed) -> str | None:
    """Return the name of the attempt that runs now and for which addresses were published; None if there is none, or it is being ended."""
    pod = observed.launcher_pod
    if pod is None or not job.status.is_true(c.CONDITION_RUNNING) or not can_be_ended(job, observed):
        return None
    if observed.is_restarting(job) or not _runs_mpirun(job, pod):
        return None
    noted, restarts = noted_beginning(pod), launcher_restarts(job, pod)
    return f"{pod['metadata'].get('name', '')}/{restarts}" if noted is not None and noted.restarts == restarts else None


def can_be_ended(job: MPIJob, observed: Observed) -> bool:
    """Return whether the launcher Job is at work, so that an attempt may be ended: neither over, nor ending, nor suspended.

    Workers may be missing still: a program can fail without them.
    """
    launcher = observed.launcher
    if launcher is None or is_terminating(launcher) or pods.is_suspended(launcher):
        return False
    if job.is_suspended or job.is_resuming or job.status.is_finished or not job.status.is_true(c.CONDITION_CREATED):
        return False
    return not has_outcome(launcher)


def has_outcome(launcher: Object) -> bool:
    """Return whether it is decided how the launcher Job ends, though its pods may not have ended yet."""
    is_ending = any(pods.condition_status(launcher, type_) == "True" for type_ in ("FailureTarget", "SuccessCriteriaMet"))
    return is_ending or pods.job_outcome(launcher) is not None


def lost_workers(job: MPIJob, observed: Observed, launcher_pod: Object | None = None) -> Iterator[tuple[str, Object | None]]:
    """Yield the name of each worker that a launcher pod has lost, and the pod; of one that is gone, its last state, or None.

    Args:
        job: The job.
        observed: Its children.
        launcher_pod: The newest, if it is not given.
    """
    launcher_pod = launcher_pod or observed.launcher_pod
    noted = noted_beginning(launcher_pod) if launcher_pod is not None else None
    if noted is None:
        return
    for name in names.worker_names(job)[: noted.workers]:
        pod = observed.workers.get(name)
        if pod is None or _created(pod) > noted.newest:
            yield name, observed.gone_workers.get(name)
        elif name not in observed.ready_workers and (is_lost(pod) or (pods.phase(pod) == "Succeeded" and runs_sshd(job))):
            yield name, pod


def _runs_mpirun(job: MPIJob, launcher_pod: Object) -> bool:
    status = mpirun_status(job, launcher_pod)
    return pods.phase(launcher_pod) == "Running" and not pods.waiting(status) and not pods.terminated(status)


def _created(pod: Object) -> str:
    return pod["metadata"].get("creationTimestamp", "")
