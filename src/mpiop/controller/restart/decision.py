"""Whether a restart begins, or the job has failed: by the policy, and by what the current attempt shows.

A job with a budget of restarts is restarted as soon as a loss is known. An attempt of another job gets time to end by itself, if it
surely cannot go on because its MPI library is Hydra's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.causes import Problem, facts_of
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem, is_node_to_blame
from mpiop.controller.observe.launcher_failures import failed_exit_code, pod_failure, pods_of_this_run
from mpiop.controller.observe.observed import Observed, restart_count_of_pod
from mpiop.controller.observe.rejections import is_rejected
from mpiop.controller.restart.attempt import LauncherAttempt, attempt_in, has_outcome, has_succeeded, noted_beginning
from mpiop.controller.restart.lost_workers import Loss
from mpiop.controller.restart.policy import is_used_up, seconds_to_deadline, user_backoff_limit
from mpiop.kube.objects import Object, annotations_of, is_terminating
from mpiop.kube.text import whole_number

_LATE_SECONDS: Final = 90.0
"""How long after the end of a launcher Kubernetes may learn that its worker's node was lost: 50 s by default, and some more."""
_VERDICT_SECONDS: Final = 8.0
"""How long after the end of a launcher its cause may become known before it counts as an error of the program."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an attempt is ended.

    Attributes:
        reason: In one word.
        message: For people.
        failed_nodes: Nodes that were lost, or evict their pods.
    """

    reason: str
    message: str
    failed_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BeginRestart:
    """A restart begins.

    Attributes:
        cause: Why.
        launcher_pods: Names of the launcher pods that failed, or are stopped, because of it.
    """

    cause: Cause
    launcher_pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoRestartLeft:
    """The job has failed: the attempt should be ended because of `cause`, and no restart is left."""

    cause: Cause


class Exceeded(Enum):
    """The job has failed: it exceeds a limit that the Job controller does not enforce in a job that may be restarted."""

    DEADLINE = auto()
    BACKOFF_LIMIT = auto()


Decision = BeginRestart | NoRestartLeft | Exceeded


def decide(attempt: LauncherAttempt, now: datetime, timeout_seconds: float) -> Decision | None:
    """Return the decision to store before anything else is done; None if the job continues as it is.

    Args:
        attempt: The current one.
        now: The time.
        timeout_seconds: How long an attempt of a program that cannot go on may hang after it has lost a worker; 0 is for ever.
    """
    job, observed = attempt.job, attempt.observed
    if _is_past_deadline(job, observed, now):
        return Exceeded.DEADLINE
    if not attempt.can_be_ended or observed.is_restarting(job) or observed.evicted_workers(job) or is_count_lost(job.status):
        return None
    cause = _cause_of_restart(attempt, now, timeout_seconds)
    if cause is not None:
        return NoRestartLeft(cause) if is_used_up(job, now) else BeginRestart(cause, _failed_launcher_pods(job, observed, now))
    return Exceeded.BACKOFF_LIMIT if _seconds_to_verdict(job, observed, now) == 0 else None


def is_count_lost(status: MPIJobStatus) -> bool:
    """Return whether a restart was begun and its count not stored, because the CRD is older. Then nothing is restarted."""
    return status.condition(c.CONDITION_RESTARTING) is not None and not status.restarts


def seconds_to_decision(attempt: LauncherAttempt, stored: MPIJobStatus, now: datetime, timeout_seconds: float) -> float | None:
    """Return the seconds until the decision may be another although no object changes; None if it cannot.

    Args:
        attempt: The current one.
        stored: The status after this sync.
        now: The time.
        timeout_seconds: As in `decide`.
    """
    job = attempt.job
    left = (
        _seconds_to_timeout(stored, now, timeout_seconds),
        _seconds_to_verdict(job, attempt.observed, now),
        seconds_to_deadline(job, now),
    )
    return min((seconds for seconds in left if seconds is not None and seconds > 0), default=None)


def _cause_of_restart(attempt: LauncherAttempt, now: datetime, timeout_seconds: float) -> Cause | None:
    """Return why the current attempt should be ended now; None if it should not."""
    job = attempt.job
    newest = next(reversed(pods_of_this_run(job, attempt.observed)), None)
    if newest is None or _name(newest) in _stopped(job) or has_succeeded(job, newest):
        return None
    if restart_count_of_pod(newest) != job.status.restarts:
        return None  # the Job controller has not made the pod of this attempt yet
    overdue = _overdue(attempt, now, timeout_seconds)
    if not job.restart.has_budget:
        return overdue
    return _launcher_lost(newest) or _worker_lost(attempt, now) or _program_failed(job, newest) or overdue


def _exceeds_backoff_limit(job: MPIJob, observed: Observed) -> bool:
    """Return whether the program of a job with a budget of restarts has failed more often than the user's `backoffLimit` allows.

    The Job controller counts so too, but includes failures that restarts explain. It has another limit (`policy.launcher_limits`).
    """
    if not job.restart.has_budget or job.restart.causes == c.ON_ANY or not observed.launcher_pods:
        return False
    limit = user_backoff_limit(job)
    if job.launcher.restart_policy == c.NEVER:
        return sum(_has_failed_by_itself(job, pod) for pod in observed.launcher_pods) > limit
    newest = observed.launcher_pods[-1]
    restarts = sum(row.get("restartCount") or 0 for row in pods.container_statuses(newest))
    return not pods.is_finished(newest) and _name(newest) not in _stopped(job) and restarts >= max(limit, 1)


def _seconds_to_verdict(job: MPIJob, observed: Observed, now: datetime) -> float | None:
    """Return the seconds until a job whose program has failed too often is to end; None if it has not.

    A kubelet that evicts a worker ends its containers first, and reports why a second later. The next attempt begins 10 s after a failure,
    but a container is restarted at once: if its pod has begun with no worker, none can be the cause.
    """
    if not _exceeds_backoff_limit(job, observed):
        return None
    newest = observed.launcher_pods[-1]
    if job.launcher.restart_policy != c.NEVER and noted_beginning(newest) is None:
        return 0.0
    rows = pods.container_statuses(newest)
    ends = [end for row in rows if (end := timestamp(pods.last_end(row).get("finishedAt"))) is not None]
    age = (now - max(ends)).total_seconds() if ends else _VERDICT_SECONDS
    return _VERDICT_SECONDS - max(0.0, age) if abs(age) < _VERDICT_SECONDS else 0.0


def _seconds_to_timeout(status: MPIJobStatus, now: datetime, timeout_seconds: float) -> float | None:
    """Return the seconds until the attempt that has lost a worker is ended; None if there is none."""
    lost = status.lost_worker
    if lost is None or not timeout_seconds:
        return None
    return max(0.0, timeout_seconds - (now - lost.time).total_seconds())


def _is_past_deadline(job: MPIJob, observed: Observed, now: datetime) -> bool:
    """Return whether the deadline of a run that was restarted is over, whatever it waits for; a program that has succeeded met it."""
    left, launcher = seconds_to_deadline(job, now), observed.launcher
    if left is None or left > 0 or launcher is None or job.is_suspended or job.status.is_finished or has_outcome(launcher):
        return False
    return observed.is_restarting(job) or not any(has_succeeded(job, pod) for pod in observed.launcher_pods)


def _overdue(attempt: LauncherAttempt, now: datetime, timeout_seconds: float) -> Cause | None:
    """Return the loss after which the running attempt has not ended in time."""
    stored, lost = attempt.job.status, attempt.lost_worker(now)
    if lost is None or lost != stored.lost_worker or _seconds_to_timeout(stored, now, timeout_seconds) != 0:
        return None
    message = facts_of(lost.reason, lost.message)
    return Cause(lost.reason, f"{message}, and the launcher has not ended within {timeout_seconds:g} s")


def _launcher_lost(newest: Object) -> Cause | None:
    """Return why the launcher is lost; one that was deleted by hand is left to the Job controller, which deletes such pods itself."""
    found = disruption_problem(newest)
    return _cause(found, [newest]) if found is not None else None


def _worker_lost(attempt: LauncherAttempt, now: datetime) -> Cause | None:
    job, judged = attempt.job, _attempt_to_judge(attempt, now)
    if judged.launcher_pod is None or _name(judged.launcher_pod) in _stopped(job):
        return None
    if job.restart.causes == c.ON_ANY:
        found = [*judged.lost, *_ended_before(judged)]
    else:
        found = [loss for loss in judged.lost if loss.is_infrastructure]
    return _cause(found[0].problem, [loss.pod for loss in found if loss.pod is not None]) if found else None


def _ended_before(attempt: LauncherAttempt) -> Sequence[Loss]:
    """Return the workers that failed by themselves before the attempt began with them; those that were taken away are replaced anyway."""
    if attempt.beginning is not None:
        return ()
    workers = ((name, attempt.observed.workers.get(name)) for name in names.worker_names(attempt.job))
    return [
        Loss(name, pod, exists=True)
        for name, pod in workers
        if pod is not None and pods.phase(pod) == "Failed" and disruption_problem(pod) is None and not is_rejected(pod)
    ]


def _attempt_to_judge(attempt: LauncherAttempt, now: datetime) -> LauncherAttempt:
    """Return the attempt whose losses count: the current one, or the one in the failed pod before it, if only that ends the job.

    A new leader may begin after the Job controller has created the next pod, 10 s after the failure: that pod has not begun, so it has
    lost no worker.
    """
    job, observed = attempt.job, attempt.observed
    earlier = observed.launcher_pods[:-1]
    if not earlier or attempt.beginning is not None or not _exceeds_backoff_limit(job, observed):
        return attempt
    is_blamed = _has_failed_by_itself(job, earlier[-1]) and _has_ended_lately(earlier[-1], now)
    return attempt_in(job, observed, earlier[-1]) if is_blamed else attempt


def _program_failed(job: MPIJob, newest: Object) -> Cause | None:
    if job.restart.causes != c.ON_ANY and failed_exit_code(newest) not in job.restart.exit_codes:
        return None
    found = pod_failure(newest)
    return Cause(found.reason, found.message) if found is not None else None


def _cause(found: Problem, lost: Collection[Object]) -> Cause:
    return Cause(found.reason, facts_of(found.reason, found.message), tuple(pods.node(pod) for pod in lost if is_node_to_blame(pod)))


def _failed_launcher_pods(job: MPIJob, observed: Observed, now: datetime) -> tuple[str, ...]:
    """Return the names of the launcher pods that the cause explains: the newest, and those that failed lately."""
    earlier = [pod for pod in observed.launcher_pods[:-1] if pods.phase(pod) == "Failed" and _has_ended_lately(pod, now)]
    stopped = _stopped(job)
    return tuple(_name(pod) for pod in (*earlier, *observed.launcher_pods[-1:]) if _name(pod) not in stopped)


def _has_failed_by_itself(job: MPIJob, launcher_pod: Object) -> bool:
    """Return whether the program failed in the pod; pods from before the restarts that the status remembers do not count any more."""
    if pods.phase(launcher_pod) != "Failed" or is_terminating(launcher_pod) or disruption_problem(launcher_pod) is not None:
        return False
    if _name(launcher_pod) in _stopped(job):
        return False
    known, count = job.status.last_restarts, whole_number(annotations_of(launcher_pod).get(names.ANNOTATION_RESTART_COUNT, ""))
    return not known or count is None or count >= known[0].number - 1


def _stopped(job: MPIJob) -> frozenset[str]:
    """Return the names of the launcher pods that restarts have stopped."""
    return frozenset(name for restart in job.status.last_restarts for name in restart.launcher_pods)


def _has_ended_lately(pod: Object, now: datetime) -> bool:
    ends = (timestamp(pods.terminated(row).get("finishedAt")) for row in pods.container_statuses(pod))
    return any(end is not None and (now - end).total_seconds() < _LATE_SECONDS for end in ends)


def _name(pod: Object) -> str:
    return pod["metadata"].get("name", "")
