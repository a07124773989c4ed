"""An attempt of the launcher: one run of `mpirun`, the workers that it began with, and those that it has lost.

When the addresses of the workers are published, an annotation of the launcher pod notes how many workers there are and when the newest of
them was created. A worker of that range that is created later is a replacement, which this attempt's `mpirun` does not know. Workers added
by scaling up are outside the range. So an operator sees a loss as long as the attempt runs, even if it did not watch it happen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from mpiop.api import constants as c
from mpiop.api.status_types import LostWorker
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.lost_workers import Loss, created, is_rigid, lost_workers
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


@dataclass(frozen=True)
class LauncherAttempt:
    """An attempt of the launcher. What several rules ask is computed once.

    Attributes:
        job: The job.
        observed: Its children.
        launcher_pod: The pod of the attempt; None before the Job controller has created it.
        restarts: How often the container that runs `mpirun` had been restarted in its pod.
    """

    job: MPIJob
    observed: Observed
    launcher_pod: Object | None
    restarts: int

    @property
    def name(self) -> str:
        """Return the name of the attempt in the status: `<launcher pod>/<restarts>`."""
        pod = self.launcher_pod
        return "" if pod is None else f"{pod['metadata'].get('name', '')}/{self.restarts}"

    @cached_property
    def beginning(self) -> Beginning | None:
        """Return what the launcher pod notes, perhaps of an earlier attempt; None before the addresses of its workers are published."""
        return noted_beginning(self.launcher_pod) if self.launcher_pod is not None else None

    @property
    def has_begun(self) -> bool:
        """Return whether the addresses of the workers were published for this attempt."""
        return self.beginning is not None and self.beginning.restarts == self.restarts

    @cached_property
    def is_running(self) -> bool:
        """Return whether the attempt has begun, runs now, and is not being ended."""
        pod = self.launcher_pod
        if pod is None or not self.job.status.is_true(c.CONDITION_RUNNING) or not self.can_be_ended:
            return False
        return not self.observed.is_restarting(self.job) and _runs_mpirun(self.job, pod) and self.has_begun

    @cached_property
    def can_be_ended(self) -> bool:
        """Return whether the launcher Job is at work, so that the attempt may be ended: neither over, nor ending, nor suspended.

        Workers may be missing still: a program can fail without them.
        """
        job, launcher = self.job, self.observed.launcher
        if launcher is None or is_terminating(launcher) or pods.is_suspended(launcher):
            return False
        if job.is_suspended or job.is_resuming or job.status.is_finished or not job.status.is_true(c.CONDITION_CREATED):
            return False
        return not has_outcome(launcher)

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """Return the workers that the attempt began with and has lost, even if they were replaced since."""
        began = self.beginning
        return () if began is None else tuple(lost_workers(self.job, self.observed, began.workers, began.newest))

    @property
    def missing(self) -> tuple[Loss, ...]:
        """Return the lost workers that the program cannot replace: all of a rigid one, of another those whose replacement is not Ready."""
        return self.lost if is_rigid(self.job) else tuple(loss for loss in self.lost if loss.name not in self.observed.ready_workers)

    @property
    def known_loss(self) -> LostWorker | None:
        """Return the lost worker in the status, if this attempt has lost it and it is still lost."""
        known = self.job.status.lost_worker
        is_known = known is not None and known.attempt == self.name and any(loss.name == known.pod for loss in self.lost)
        return known if is_known else None

    def lost_worker(self, now: datetime) -> LostWorker | None:
        """Return what the status should report: the first worker that a rigid program has lost, as it was seen first."""
        if not self.is_running or not is_rigid(self.job) or not self.lost:
            return None
        loss, found = self.lost[0], self.lost[0].problem
        return self.known_loss or LostWorker(loss.name, loss.node, found.reason, found.message, now, self.name)

    @property
    def beginning_to_note(self) -> Beginning | None:
        """Return what the annotation of the launcher pod should be; None leaves it as it is.

        An attempt begins when every worker is Ready. Workers that the user takes away by scaling down are not lost.
        """
        job, observed, noted = self.job, self.observed, self.beginning
        if self.launcher_pod is None:
            return None
        if noted is not None and self.has_begun:
            is_smaller = job.worker_replicas < noted.workers
            return Beginning(self.restarts, job.worker_replicas, noted.newest) if is_smaller else None
        if not observed.is_ready(job):
            return None
        newest = max((created(observed.workers[name]) for name in names.worker_names(job)), default="")
        return Beginning(self.restarts, job.worker_replicas, newest)


def current_attempt(job: MPIJob, observed: Observed) -> LauncherAttempt:
    """Return the current attempt of the launcher: the one in the newest pod that is not terminating."""
    return attempt_in(job, observed, observed.launcher_pod)


def attempt_in(job: MPIJob, observed: Observed, launcher_pod: Object | None) -> LauncherAttempt:
    """Return the last attempt in a launcher pod."""
    return LauncherAttempt(job, observed, launcher_pod, launcher_restarts(job, launcher_pod) if launcher_pod is not None else 0)


def noted_beginning(launcher_pod: Object) -> Beginning | None:
    """Return the annotation of a launcher pod; None before the addresses of its workers are published."""
    match annotations_of(launcher_pod).get(names.ANNOTATION_BEGAN_WITH, "").split(" "):
        case [restarts, workers, newest]:
            counts = whole_number(restarts), whole_number(workers)
            return None if counts[0] is None or counts[1] is None else Beginning(counts[0], counts[1], newest)
        case _:
            return None


def launcher_restarts(job: MPIJob, launcher_pod: Object) -> int:
    """Return how often the container that runs `mpirun` was restarted in its pod."""
    return mpirun_status(job, launcher_pod).get("restartCount") or 0


def mpirun_status(job: MPIJob, launcher_pod: Object) -> Mapping[str, Any]:
    """Return the status of the container that runs `mpirun`; empty while it has none."""
    return pods.main_container_status(launcher_pod, job.launcher.template["spec"]["containers"][0].get("name", ""))


def has_outcome(launcher: Object) -> bool:
    """Return whether it is decided how the launcher Job ends, though its pods may not have ended yet."""
    is_ending = any(pods.condition_status(launcher, type_) == "True" for type_ in ("FailureTarget", "SuccessCriteriaMet"))
    return is_ending or pods.job_outcome(launcher) is not None


def has_succeeded(job: MPIJob, launcher_pod: Object) -> bool:
    """Return whether `mpirun` has succeeded; a sidecar may keep its pod running."""
    return pods.phase(launcher_pod) == "Succeeded" or pods.terminated(mpirun_status(job, launcher_pod)).get("exitCode") == 0


def _runs_mpirun(job: MPIJob, launcher_pod: Object) -> bool:
    status = mpirun_status(job, launcher_pod)
    return pods.phase(launcher_pod) == "Running" and not pods.waiting(status) and not pods.terminated(status)
