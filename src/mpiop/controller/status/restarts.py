"""Restarts of a job: when one is due, when there were too many, and what the status says of them.

A restart is stored before anything is done about it (docs/adr/0019-restarts.md). What is left to do then follows from the objects: the pod
template of the launcher Job knows an earlier count until the Job is resumed.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import Failure, MPIJob, MPIJobStatus, Restart
from mpiop.controller.objects.launcher_job import seconds_to_deadline, user_backoff_limit
from mpiop.controller.observe.launcher_failures import pod_failure
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.tries import can_be_ended, has_outcome
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.failed_nodes import with_failed_nodes
from mpiop.controller.status.losses import lost_worker
from mpiop.controller.status.outcomes import ended
from mpiop.controller.status.restart_causes import Cause, cause_of_restart, failed_launcher_pods, has_succeeded, seconds_to_verdict
from mpiop.controller.status.root_cause import BACKOFF_LIMIT_EXCEEDED, failure
from mpiop.controller.status.summary import format_duration, summarized
from mpiop.controller.status.verdict import NO_WORDS, judged, verdict, waited_end, waiting_cause
from mpiop.kube.text import MAX_MESSAGE_BYTES, truncated

REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
_PAST_DEADLINE: Final = "Job was active longer than specified deadline"
"""In the words of the Job controller, which counts the time of a run that was not restarted."""
RESTARTED: Final = "Restarted"
_NOT_STORED: Final = "status.restarts was not stored: the CRD is older than the operator. Apply the CRD of this version."
_LEAST_KEPT: Final = 10
_REASON_BYTES: Final = 256
"""The longest message of a restart: there may be a hundred of them."""


def decide(job: MPIJob, observed: Observed, now: datetime, timeout_seconds: float) -> MPIJobStatus | None:
    """Return the status that is to be stored before anything else is done: a restart begins, or the job has failed; None if neither is so.

    Args:
        job: As it is stored.
        observed: Its children.
        now: The time.
        timeout_seconds: How long an attempt of a program that cannot go on may hang after it has lost a worker; 0 is for ever.
    """
    if _is_past_deadline(job, observed, now):
        end = waited_end(job.status, DEADLINE_EXCEEDED, _PAST_DEADLINE, now)
        status = ended(job, job.status, end, now, verdict=waiting_cause(job.status))
        return replace(status, summary=summarized(job, observed, status))
    if not can_be_ended(job, observed) or observed.is_restarting(job) or observed.evicted_workers(job) or _is_count_lost(job.status):
        return None
    cause = cause_of_restart(job, observed, now, timeout_seconds)
    if cause is not None:
        status = _failed(job, cause, now) if _is_budget_used_up(job, now) else _begun(job, observed, cause, now)
    elif seconds_to_verdict(job, observed, now) == 0:
        outcome = {"reason": BACKOFF_LIMIT_EXCEEDED, "message": "Job has reached the specified backoff limit"}
        status = replace(job.status, last_failure=judged(job, observed, NO_WORDS) or _failure_before_suspension(observed))
        reason, message = failure(outcome, status.last_failure, "")
        status = ended(job, status, cond.make(c.CONDITION_FAILED, "True", reason, message, now), now, verdict=verdict(status))
    else:
        return None
    return replace(status, summary=summarized(job, observed, status))


def carried_out(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status`, whose condition says that the restart is over once the launcher Job is resumed, or the job suspended by its user."""
    if not status.is_true(c.CONDITION_RESTARTING) or observed.is_restarting(job):
        return status
    if _is_count_lost(status):
        row = cond.make(c.CONDITION_RESTARTING, "False", "NotStored", _NOT_STORED, now)
    elif job.is_suspended:
        row = cond.make(c.CONDITION_RESTARTING, "False", "Suspended", "The job is suspended: the resume starts it anew.", now)
    else:
        row = cond.make(c.CONDITION_RESTARTING, "False", RESTARTED, f"The launcher was resumed after restart {status.restarts}.", now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def with_lost_worker(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` with the worker that the running attempt has lost."""
    return replace(status, lost_worker=lost_worker(job, observed, now))


def _failure_before_suspension(observed: Observed) -> Failure | None:
    return next(filter(None, map(pod_failure, reversed(observed.launcher_pods))), None)


def _is_past_deadline(job: MPIJob, observed: Observed, now: datetime) -> bool:
    """Return whether the deadline of a run that was restarted is over, whatever it waits for; a program that has succeeded met it."""
    left, launcher = seconds_to_deadline(job, now), observed.launcher
    if left is None or left > 0 or launcher is None or job.is_suspended or job.status.is_finished or has_outcome(launcher):
        return False
    return observed.is_restarting(job) or not any(has_succeeded(job, pod) for pod in observed.launcher_pods)


def _begun(job: MPIJob, observed: Observed, cause: Cause, now: datetime) -> MPIJobStatus:
    """Return the status with one restart more."""
    status, number = job.status, job.status.restarts + 1
    launcher_pods = failed_launcher_pods(job, observed, now)
    restart = Restart(number, now, cause.reason, truncated(cause.message, _REASON_BYTES), launcher_pods, cause.failed_nodes)
    row = cond.make(c.CONDITION_RESTARTING, "True", cause.reason, truncated(f"restart {number}{_allowance(job)}: {cause.message}"), now)
    new = replace(
        status,
        conditions=cond.set_before_last(status.conditions, row),
        lost_worker=None,
        restarts=number,
        last_restarts=(*status.last_restarts, restart)[-max(_LEAST_KEPT, job.restart.max_restarts) :],
    )
    return with_failed_nodes(job, new, now)


def _failed(job: MPIJob, cause: Cause, now: datetime) -> MPIJobStatus:
    """Return the status of a job that may not be restarted once more; its message says why each attempt ended, the last one first."""
    tries = [(restart.number, restart.reason, restart.message) for restart in job.status.last_restarts]
    tries.append((job.status.restarts + 1, cause.reason, cause.message))
    words = "; ".join(f"attempt {number}: {reason}: {message}" for number, reason, message in reversed(tries))
    text = f"{job.status.restarts + 1} attempts, and no restart is left{_allowance(job)}. {words}"
    message = truncated(text, MAX_MESSAGE_BYTES)
    return ended(job, job.status, cond.make(c.CONDITION_FAILED, "True", REACHED_MAX_RESTARTS, message, now), now)


def _is_count_lost(status: MPIJobStatus) -> bool:
    """Return whether a restart was begun and its count not stored, as the CRD is an older one: then nothing is restarted any more."""
    return status.condition(c.CONDITION_RESTARTING) is not None and not status.restarts


def _is_budget_used_up(job: MPIJob, now: datetime) -> bool:
    """Return whether no restart is left: those of the window count, or all of them; without a budget, failed attempts too."""
    if not job.restart.has_budget:
        failed = job.status.attempts[-1].number if job.status.attempts else 0
        return job.status.restarts + failed >= _budget(job)
    if job.restart.window_seconds is None:
        return job.status.restarts >= _budget(job)
    since = now - timedelta(seconds=job.restart.window_seconds)
    return sum(restart.time > since for restart in job.status.last_restarts) >= _budget(job)


def _budget(job: MPIJob) -> int:
    """Return how many restarts the job may have; one that has asked for none may have as many as retries, so that it does not loop."""
    return job.restart.max_restarts if job.restart.has_budget else user_backoff_limit(job)


def _allowance(job: MPIJob) -> str:
    window_seconds = job.restart.window_seconds
    return f" of at most {_budget(job)}" + (f" in {format_duration(timedelta(seconds=window_seconds))}" if window_seconds else "")
