"""An attempt of the launcher: one run of `mpirun`, the workers that it began with, and those that it has lost.

When the addresses of the workers are published, an annotation of the launcher pod notes how many workers there are and when the newest of
them was created. A worker of that range that is created later is a replacement, which this attempt's `mpirun` does not know. Workers added
by scaling up are outside the range. So an operator sees a loss as long as the attempt runs, even if it did not watch it happen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from mpiop.api import constants as c
from mpiop.api.status_types import LostWorker
from mpiop.api.types import MPIJob, ReplicaSpec
from mpiop.controller import names
from mpiop.controller.objects.revision import launcher_revision, start_revision
from mpiop.controller.objects.worker_pod import runs_sshd
from mpiop.controller.observe import pods
from mpiop.controller.observe.launcher_failures import LauncherFailures, launcher_failures, pods_of_this_run
from mpiop.controller.observe.observed import Observed, restart_count
from mpiop.controller.restart.lost_workers import Loss, created, lost_workers
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
    """An attempt of the launcher, with the job and its children: the input of every decision of a sync.

    What several rules ask is computed once.

    Attributes:
        job: The job.
        observed: Its children.
        launcher_pod: The pod of the attempt; None before the Job controller has created it.
        restarts: How often the container that runs `mpirun` had been restarted in its pod.
        beginning: What the pod notes, perhaps of an earlier attempt in it; None before the addresses of its workers are published.
    """

    job: MPIJob
    observed: Observed
    launcher_pod: Object | None
    restarts: int
    beginning: Beginning | None

    @property
    def name(self) -> str:
        """Return the name of the attempt in the status: `<launcher pod>/<restarts>`."""
        pod = self.launcher_pod
        return "" if pod is None else f"{pod['metadata'].get('name', '')}/{self.restarts}"

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
        return not self.is_restarting and _runs_mpirun(pod, self.job.launcher) and self.has_begun

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
    def is_restarting(self) -> bool:
        """Return whether a restart is decided, and the launcher Job has not been resumed since: its pod template knows an earlier count."""
        job, launcher = self.job, self.observed.launcher
        if launcher is None or job.is_suspended or job.status.is_finished:
            return False
        return restart_count(launcher) < job.status.restarts

    @cached_property
    def has_lost_launcher(self) -> bool:
        """Return whether the launcher Job is gone (deleted, or past its TTL) and nobody recorded how it ended.

        It must not be made again: that would run the program twice. A suspended one is harmless, because it runs again on resume.
        """
        job = self.job
        was_seen = c.LAUNCHER in job.status.replica_statuses and not job.status.is_true(c.CONDITION_SUSPENDED)
        return self.observed.launcher is None and was_seen and not job.is_suspended and not job.status.is_finished

    @cached_property
    def has_outdated_launcher(self) -> bool:
        """Return whether the job is resuming and its launcher Job cannot be updated to the current spec, so that it must be replaced.

        Until it is gone the job counts as suspended; otherwise the launcher would seem lost (`has_lost_launcher`). A job without any
        condition was created suspended, and resumed before that was stored.
        """
        job, launcher = self.job, self.observed.launcher
        is_resuming = job.is_resuming or not (job.is_suspended or job.status.conditions)
        if launcher is None or not is_resuming or pods.job_outcome(launcher) is not None or not pods.is_suspended(launcher):
            return False
        noted = annotations_of(launcher).get(names.ANNOTATION_LAUNCHER_REVISION)
        return is_terminating(launcher) or (noted is not None and noted != launcher_revision(job))

    @property
    def has_pending_edit(self) -> bool:
        """Return whether the launcher was started from another spec than the current one.

        Another hash is not enough: under another CRD the API server reads fewer fields of the same stored spec. Then the generation stays.
        Launchers of earlier versions do not note it; where the API server warned of their templates, the last verdict stays.
        """
        job, launcher = self.job, self.observed.launcher
        if launcher is None or pods.is_suspended(launcher):
            return False
        noted = annotations_of(launcher)
        if noted.get(names.ANNOTATION_START_REVISION) in {None, start_revision(job)}:
            return False
        if names.ANNOTATION_START_GENERATION not in noted and job.status.is_true(c.CONDITION_WARNINGS):
            return job.status.is_true(c.CONDITION_UPDATE_PENDING)
        return noted.get(names.ANNOTATION_START_GENERATION, "1") != str(job.generation)

    @cached_property
    def evicted_workers(self) -> int:
        """Return the number of evicted workers that end the job.

        0 while it is suspended, because then all workers are deleted anyway, and if it has a budget of restarts, for then it is restarted.
        """
        if self.job.is_suspended or self.job.restart.has_budget:
            return 0
        return sum(pods.is_evicted(pod) for pod in self.observed.workers.values() if not is_terminating(pod))

    @cached_property
    def has_ready_workers(self) -> bool:
        """Return whether every desired worker is Ready (true without workers)."""
        return self.observed.ready_workers.issuperset(self.job.worker_names)

    @cached_property
    def pods_of_this_run(self) -> Sequence[Object]:
        """Return the launcher pods that were created since the job was started, or the Job controller resumed it; the oldest first."""
        return pods_of_this_run(self.observed, self.job.status)

    @cached_property
    def failures(self) -> LauncherFailures:
        """Return how the launcher has failed in this run."""
        return launcher_failures(self.pods_of_this_run, self.job.status)

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """Return the workers that the attempt began with and has lost, even if they were replaced since."""
        began, job = self.beginning, self.job
        if began is None:
            return ()
        return tuple(lost_workers(self.observed, job.worker_names[: began.workers], began.newest, run_sshd=runs_sshd(job.worker)))

    @property
    def known_loss(self) -> LostWorker | None:
        """Return the lost worker in the status, if this attempt has lost it and it is still lost."""
        known = self.job.status.lost_worker
        is_known = known is not None and known.attempt == self.name and any(loss.name == known.pod for loss in self.lost)
        return known if is_known else None

    def lost_worker(self, now: datetime) -> LostWorker | None:
        """Return what the status should report: the first worker that a rigid program has lost, as it was seen first."""
        if not self.is_running or not self.job.is_rigid or not self.lost:
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
        if not self.has_ready_workers:
            return None
        newest = max((created(observed.workers[name]) for name in job.worker_names), default="")
        return Beginning(self.restarts, job.worker_replicas, newest)


def launcher_attempt(job: MPIJob, observed: Observed, launcher_pod: Object | None = None) -> LauncherAttempt:
    """Return the last attempt in a launcher pod; without one, the current attempt, which is in the newest pod that is not terminating."""
    pod = launcher_pod or observed.launcher_pod
    if pod is None:
        return LauncherAttempt(job, observed, None, restarts=0, beginning=None)
    restarts = mpirun_status(pod, job.launcher).get("restartCount") or 0
    return LauncherAttempt(job, observed, pod, restarts, noted_beginning(pod))


def noted_beginning(launcher_pod: Object) -> Beginning | None:
    """Return the annotation of a launcher pod; None before the addresses of its workers are published."""
    match annotations_of(launcher_pod).get(names.ANNOTATION_BEGAN_WITH, "").split(" "):
        case [restarts, workers, newest]:
            counts = whole_number(restarts), whole_number(workers)
            return None if counts[0] is None or counts[1] is None else Beginning(counts[0], counts[1], newest)
        case _:
            return None


def mpirun_status(launcher_pod: Object, launcher: ReplicaSpec) -> Mapping[str, Any]:
    """Return the status of the container that runs `mpirun`; empty while it has none."""
    return pods.main_container_status(launcher_pod, launcher.container.get("name", ""))


def has_outcome(launcher: Object) -> bool:
    """Return whether it is decided how the launcher Job ends, though its pods may not have ended yet."""
    is_ending = any(pods.condition_status(launcher, type_) == "True" for type_ in ("FailureTarget", "SuccessCriteriaMet"))
    return is_ending or pods.job_outcome(launcher) is not None


def has_succeeded(launcher_pod: Object, launcher: ReplicaSpec) -> bool:
    """Return whether `mpirun` has succeeded; a sidecar may keep its pod running."""
    return pods.phase(launcher_pod) == "Succeeded" or pods.terminated(mpirun_status(launcher_pod, launcher)).get("exitCode") == 0


def _runs_mpirun(launcher_pod: Object, launcher: ReplicaSpec) -> bool:
    status = mpirun_status(launcher_pod, launcher)
    return pods.phase(launcher_pod) == "Running" and not pods.waiting(status) and not pods.terminated(status)
