"""Decides whether a restart begins or the job has failed, from the policy and the current attempt.

With a budget of restarts, a job is restarted as soon as a loss is known. Without one, only attempts that surely cannot continue are
restarted: those of Hydra, if they have not ended by themselves in time. A decision changes nothing yet: it is stored in the status first,
and carried out from there, so a change of the leader neither loses nor repeats it (docs/adr/0019-restarts.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.status_types import LostWorker, MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.causes import Problem, facts_of
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem, is_node_to_blame
from mpiop.controller.observe.launcher_failures import failed_exit_code, pod_failure
from mpiop.controller.observe.observed import Observed, restart_count_of_pod
from mpiop.controller.observe.rejections import is_rejected
from mpiop.controller.restart.attempt import LauncherAttempt, has_outcome, has_succeeded, launcher_attempt, noted_beginning
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


def decide(attempt: LauncherAttempt, now: datetime, timeout_seconds: float) -> tuple[Decision | None, float | None]:
    """Return the decision to store before anything else is done, and the seconds until it may be another although no object changes.

    The decision is None if the job continues as it is. The seconds are None if only a changed object can lead to another decision.

    Args:
        attempt: The current one.
        now: The time.
        timeout_seconds: How long an attempt that cannot continue may hang after it has lost a worker; 0 is for ever.
    """
    job, observed, lost = attempt.job, attempt.observed, attempt.lost_worker(now)
    to_deadline, to_verdict = seconds_to_deadline(job, now), _seconds_to_verdict(job, observed, now)
    limits = (to_deadline, to_verdict, _seconds_to_timeout(lost, now, timeout_seconds))
    next_seconds = min((seconds for seconds in limits if seconds is not None and seconds > 0), default=None)
    if to_deadline is not None and to_deadline <= 0 and _misses_deadline(attempt):
        return Exceeded.DEADLINE, None
    if not attempt.can_be_ended or attempt.is_restarting or attempt.evicted_workers or is_count_lost(job.status):
        return None, next_seconds
    cause = _cause_of_restart(attempt, _overdue(lost, job.status.lost_worker, now, timeout_seconds), now)
    if cause is not None:
        is_last = is_used_up(job, now)
        return NoRestartLeft(cause) if is_last else BeginRestart(cause, _failed_launcher_pods(job, observed, now)), None
    return Exceeded.BACKOFF_LIMIT if to_verdict == 0 else None, next_seconds


def is_count_lost(status: MPIJobStatus) -> bool:
    """Return whether a restart was begun and its count not stored, because the CRD is older. Then nothing is restarted."""
    return status.condition(c.CONDITION_RESTARTING) is not None and not status.restarts


def _cause_of_restart(attempt: LauncherAttempt, overdue: Cause | None, now: datetime) -> Cause | None:
    """Return why the current attempt should be ended now; None if it should not. `overdue` is a loss that it has outlived too long."""
    job = attempt.job
    newest = next(reversed(attempt.pods_of_this_run), None)
    if newest is None or _name(newest) in job.status.stopped_launcher_pods or has_succeeded(newest, job.launcher):
        return None
    if restart_count_of_pod(newest) != job.status.restarts:
        return None  # the Job controller has not made the pod of this attempt yet
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
    return not pods.is_finished(newest) and _name(newest) not in job.status.stopped_launcher_pods and restarts >= max(limit, 1)


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


def _seconds_to_timeout(lost: LostWorker | None, now: datetime, timeout_seconds: float) -> float | None:
    """Return the seconds until the attempt that has lost a worker is ended; None if it has lost none."""
    if lost is None or not timeout_seconds:
        return None
    return max(0.0, timeout_seconds - (now - lost.time).total_seconds())


def _misses_deadline(attempt: LauncherAttempt) -> bool:
    """Return whether the job has not ended at its deadline, whatever it waits for; a program that has succeeded met it."""
    job, launcher = attempt.job, attempt.observed.launcher
    if launcher is None or job.is_suspended or job.status.is_finished or has_outcome(launcher):
        return False
    return attempt.is_restarting or not any(has_succeeded(pod, job.launcher) for pod in attempt.observed.launcher_pods)


def _overdue(lost: LostWorker | None, stored: LostWorker | None, now: datetime, timeout_seconds: float) -> Cause | None:
    """Return the loss after which the running attempt has not ended in time; only one that is `stored` has a known time."""
    if lost is None or lost != stored or _seconds_to_timeout(lost, now, timeout_seconds) != 0:
        return None
    message = facts_of(lost.reason, lost.message)
    return Cause(lost.reason, f"{message}, and the launcher has not ended within {timeout_seconds:g} s")


def _launcher_lost(newest: Object) -> Cause | None:
    """Return why the launcher is lost; one that was deleted by hand is left to the Job controller, which deletes such pods itself."""
    found = disruption_problem(newest)
    return _cause(found, [newest]) if found is not None else None


def _worker_lost(attempt: LauncherAttempt, now: datetime) -> Cause | None:
    job, judged = attempt.job, _attempt_to_judge(attempt, now)
    if judged.launcher_pod is None or _name(judged.launcher_pod) in job.status.stopped_launcher_pods:
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
    workers = ((name, attempt.observed.workers.get(name)) for name in attempt.job.worker_names)
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
    return launcher_attempt(job, observed, earlier[-1]) if is_blamed else attempt


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
    stopped = job.status.stopped_launcher_pods
    return tuple(_name(pod) for pod in (*earlier, *observed.launcher_pods[-1:]) if _name(pod) not in stopped)


def _has_failed_by_itself(job: MPIJob, launcher_pod: Object) -> bool:
    """Return whether the program failed in the pod; pods from before the restarts that the status remembers do not count any more."""
    if pods.phase(launcher_pod) != "Failed" or is_terminating(launcher_pod) or disruption_problem(launcher_pod) is not None:
        return False
    if _name(launcher_pod) in job.status.stopped_launcher_pods:
        return False
    known, count = job.status.last_restarts, whole_number(annotations_of(launcher_pod).get(names.ANNOTATION_RESTART_COUNT, ""))
    return not known or count is None or count >= known[0].number - 1


def _has_ended_lately(pod: Object, now: datetime) -> bool:
    ends = (timestamp(pods.terminated(row).get("finishedAt")) for row in pods.container_statuses(pod))
    return any(end is not None and (now - end).total_seconds() < _LATE_SECONDS for end in ends)


def _name(pod: Object) -> str:
    return pod["metadata"].get("name", "")
