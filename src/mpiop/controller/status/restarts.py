"""The part of the status about restarts: one begins or is over, none is left, lost workers, failed nodes."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mpiop.api import constants as c
from mpiop.api.durations import format_duration
from mpiop.api.restart import RestartPolicy
from mpiop.api.status_types import MPIJobStatus, Restart
from mpiop.api.types import MPIJob
from mpiop.controller.causes import Problem
from mpiop.controller.observe.launcher_failures import pod_failure
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.restart.decision import BeginRestart, Cause, Decision, Exceeded, NoRestartLeft, is_count_lost
from mpiop.controller.restart.lost_workers import LOSSES
from mpiop.controller.restart.policy import counting_restarts, restart_limit
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.outcomes import ended, failure
from mpiop.controller.status.summary import summarized
from mpiop.controller.status.verdict import NO_WORDS, judged, late_verdict, verdict, waited_end
from mpiop.kube.text import MAX_MESSAGE_BYTES, truncated

_PAST_DEADLINE: Final = "Job was active longer than specified deadline"
"""In the words of the Job controller, which counts the time of a run that was not restarted."""
RESTARTED: Final = "Restarted"
_NOT_STORED: Final = "status.restarts was not stored: the CRD is older than the operator. Apply the CRD of this version."
_LEAST_KEPT: Final = 10
_REASON_BYTES: Final = 256
"""The longest message of a restart: there may be a hundred of them."""
_MOST_NODES: Final = 50


def decided_status(attempt: LauncherAttempt, decision: Decision, now: datetime) -> MPIJobStatus:
    """Return the status that stores a decision."""
    job = attempt.job
    match decision:
        case BeginRestart():
            status = _begun(job, decision, now)
        case NoRestartLeft(cause):
            status = _failed(job, cause, now)
        case Exceeded.DEADLINE:
            end = waited_end(job.status, c.DEADLINE_EXCEEDED, _PAST_DEADLINE, now)
            status = ended(job.key, job.status, end, now, verdict=late_verdict(job.status, c.DEADLINE_EXCEEDED))
        case _:
            status = _exceeding_backoff_limit(attempt, now)
    return replace(status, summary=summarized(job, attempt.observed, status))


def carried_out(status: MPIJobStatus, now: datetime, *, is_suspended: bool) -> MPIJobStatus:
    """Return `status` with Restarting set to False: the launcher Job is resumed, or the user has suspended the job."""
    if not status.is_true(c.CONDITION_RESTARTING):
        return status
    if is_count_lost(status):
        row = cond.make(c.CONDITION_RESTARTING, "False", "NotStored", _NOT_STORED, now)
    elif is_suspended:
        row = cond.make(c.CONDITION_RESTARTING, "False", "Suspended", "The job is suspended: resuming restarts it.", now)
    else:
        row = cond.make(c.CONDITION_RESTARTING, "False", RESTARTED, f"The launcher was resumed after restart {status.restarts}.", now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def with_failed_nodes(policy: RestartPolicy, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` with the nodes that failed in restarts which still count; none if the job does not ask to avoid them.

    A CRD that is older than the operator does not store to which restart a node led: such nodes stay as long as any restart counts.
    """
    if not policy.avoids_failed_nodes:
        return replace(status, failed_nodes=())
    known = {node for restart in status.last_restarts for node in restart.failed_nodes}
    counting = counting_restarts(policy, status, now)
    others = (node for node in status.failed_nodes if node not in known) if counting else ()
    nodes = dict.fromkeys((*others, *(node for restart in counting for node in restart.failed_nodes)))
    return replace(status, failed_nodes=tuple(nodes)[-_MOST_NODES:])


def loss_problem(attempt: LauncherAttempt) -> Problem | None:
    """Return the problem of an attempt that has lost a worker.

    A rigid program (`MPIJob.is_rigid`) has it until the attempt ends. Another may use the replacement, and has it until that is Ready.
    """
    if not attempt.is_running:
        return _problem_of_ended_attempt(attempt)
    if (known := attempt.known_loss) is not None:
        return Problem(known.reason, known.message)
    is_rigid, ready = attempt.job.is_rigid, attempt.observed.ready_workers
    return next((loss.problem for loss in attempt.lost if is_rigid or loss.name not in ready), None)


def _problem_of_ended_attempt(attempt: LauncherAttempt) -> Problem | None:
    """Return the problem that the last attempt had: its end resolves nothing, only the next one does, which begins with other workers."""
    degraded = attempt.job.status.true_condition(c.CONDITION_DEGRADED)
    if degraded is None or degraded.reason not in LOSSES or not attempt.can_be_ended or attempt.is_restarting:
        return None
    return Problem(degraded.reason, degraded.message) if attempt.lost else None


def _exceeding_backoff_limit(attempt: LauncherAttempt, now: datetime) -> MPIJobStatus:
    """Return the status of a job whose program has failed too often, in the words of the Job controller."""
    outcome = {"reason": c.BACKOFF_LIMIT_EXCEEDED, "message": "Job has reached the specified backoff limit"}
    last = judged(attempt, NO_WORDS) or next(filter(None, map(pod_failure, reversed(attempt.observed.launcher_pods))), None)
    status = replace(attempt.job.status, last_failure=last)
    reason, message = failure(outcome, last, "")
    return ended(attempt.job.key, status, cond.make(c.CONDITION_FAILED, "True", reason, message, now), now, verdict=verdict(status))


def _begun(job: MPIJob, decision: BeginRestart, now: datetime) -> MPIJobStatus:
    """Return the status with one restart more."""
    status, number, cause = job.status, job.status.restarts + 1, decision.cause
    restart = Restart(number, now, cause.reason, truncated(cause.message, _REASON_BYTES), decision.launcher_pods, cause.failed_nodes)
    row = cond.make(
        c.CONDITION_RESTARTING, "True", cause.reason, truncated(f"restart {number} of at most {_limit(job)}: {cause.message}"), now
    )
    new = replace(
        status,
        conditions=cond.set_before_last(status.conditions, row),
        lost_worker=None,
        restarts=number,
        last_restarts=(*status.last_restarts, restart)[-max(_LEAST_KEPT, job.restart.max_restarts) :],
    )
    return with_failed_nodes(job.restart, new, now)


def _failed(job: MPIJob, cause: Cause, now: datetime) -> MPIJobStatus:
    """Return the status of a job that must not be restarted again; its message has the end of each attempt, the last one first."""
    attempts = [(restart.number, restart.reason, restart.message) for restart in job.status.last_restarts]
    attempts.append((job.status.restarts + 1, cause.reason, cause.message))
    words = "; ".join(f"attempt {number}: {reason}: {message}" for number, reason, message in reversed(attempts))
    text = f"Restart limit of {_limit(job)} reached after {job.status.restarts + 1} attempts. {words}"
    message = truncated(text, MAX_MESSAGE_BYTES)
    return ended(job.key, job.status, cond.make(c.CONDITION_FAILED, "True", c.REACHED_MAX_RESTARTS, message, now), now)


def _limit(job: MPIJob) -> str:
    window_seconds = job.restart.window_seconds
    return str(restart_limit(job)) + (f" in {format_duration(timedelta(seconds=window_seconds))}" if window_seconds else "")
