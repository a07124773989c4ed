"""What the status reports about restarts: that one begins or is over, that none is left, lost workers, and failed nodes."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mpiop.api import constants as c
from mpiop.api.durations import format_duration
from mpiop.api.status_types import MPIJobStatus, Restart
from mpiop.api.types import MPIJob
from mpiop.controller.causes import Problem
from mpiop.controller.observe.launcher_failures import pod_failure
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.restart.decision import BeginRestart, Cause, Decision, Exceeded, NoRestartLeft, is_count_lost
from mpiop.controller.restart.lost_workers import LOSSES
from mpiop.controller.restart.policy import counting_restarts, restart_limit
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.outcomes import ended
from mpiop.controller.status.root_cause import failure
from mpiop.controller.status.summary import summarized
from mpiop.controller.status.verdict import NO_WORDS, judged, verdict, waited_end, waiting_cause
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
    job, observed = attempt.job, attempt.observed
    match decision:
        case BeginRestart():
            status = _begun(job, decision, now)
        case NoRestartLeft(cause):
            status = _failed(job, cause, now)
        case Exceeded.DEADLINE:
            end = waited_end(job.status, c.DEADLINE_EXCEEDED, _PAST_DEADLINE, now)
            status = ended(job, job.status, end, now, verdict=waiting_cause(job.status))
        case _:
            status = _exceeding_backoff_limit(job, observed, now)
    return replace(status, summary=summarized(job, observed, status))


def carried_out(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status`, whose condition says that the restart is over once the launcher Job is resumed, or the job suspended by its user."""
    if not status.is_true(c.CONDITION_RESTARTING) or observed.is_restarting(job):
        return status
    if is_count_lost(status):
        row = cond.make(c.CONDITION_RESTARTING, "False", "NotStored", _NOT_STORED, now)
    elif job.is_suspended:
        row = cond.make(c.CONDITION_RESTARTING, "False", "Suspended", "The job is suspended: the resume starts it anew.", now)
    else:
        row = cond.make(c.CONDITION_RESTARTING, "False", RESTARTED, f"The launcher was resumed after restart {status.restarts}.", now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def with_failed_nodes(job: MPIJob, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` with the nodes that failed in restarts which still count; none if the job does not ask to avoid them.

    A CRD that is older than the operator does not store to which restart a node led: such nodes stay as long as any restart counts.
    """
    if not job.restart.avoids_failed_nodes:
        return replace(status, failed_nodes=())
    known = {node for restart in status.last_restarts for node in restart.failed_nodes}
    counting = counting_restarts(job, status, now)
    others = (node for node in status.failed_nodes if node not in known) if counting else ()
    nodes = dict.fromkeys((*others, *(node for restart in counting for node in restart.failed_nodes)))
    return replace(status, failed_nodes=tuple(nodes)[-_MOST_NODES:])


def loss_problem(attempt: LauncherAttempt) -> Problem | None:
    """Return the problem of an attempt that has lost a worker.

    A rigid program (`is_rigid`) has it until the attempt ends. Another may use the replacement, and has it until the replacement is Ready.
    """
    if not attempt.is_running:
        return _problem_of_ended_attempt(attempt)
    if (known := attempt.known_loss) is not None:
        return Problem(known.reason, known.message)
    missing = attempt.missing
    return missing[0].problem if missing else None


def _problem_of_ended_attempt(attempt: LauncherAttempt) -> Problem | None:
    """Return the problem that the last attempt had: its end resolves nothing, only the next one does, which begins with other workers."""
    job = attempt.job
    degraded = job.status.true_condition(c.CONDITION_DEGRADED)
    if degraded is None or degraded.reason not in LOSSES or not attempt.can_be_ended or attempt.observed.is_restarting(job):
        return None
    return Problem(degraded.reason, degraded.message) if attempt.lost else None


def _exceeding_backoff_limit(job: MPIJob, observed: Observed, now: datetime) -> MPIJobStatus:
    """Return the status of a job whose program has failed too often, in the words of the Job controller."""
    outcome = {"reason": c.BACKOFF_LIMIT_EXCEEDED, "message": "Job has reached the specified backoff limit"}
    last = judged(job, observed, NO_WORDS) or next(filter(None, map(pod_failure, reversed(observed.launcher_pods))), None)
    status = replace(job.status, last_failure=last)
    reason, message = failure(outcome, last, "")
    return ended(job, status, cond.make(c.CONDITION_FAILED, "True", reason, message, now), now, verdict=verdict(status))


def _begun(job: MPIJob, decision: BeginRestart, now: datetime) -> MPIJobStatus:
    """Return the status with one restart more."""
    status, number, cause = job.status, job.status.restarts + 1, decision.cause
    restart = Restart(number, now, cause.reason, truncated(cause.message, _REASON_BYTES), decision.launcher_pods, cause.failed_nodes)
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
    """Return the status of a job that must not be restarted again; its message has the end of each attempt, the last one first."""
    attempts = [(restart.number, restart.reason, restart.message) for restart in job.status.last_restarts]
    attempts.append((job.status.restarts + 1, cause.reason, cause.message))
    words = "; ".join(f"attempt {number}: {reason}: {message}" for number, reason, message in reversed(attempts))
    text = f"{job.status.restarts + 1} attempts, and no restart is left{_allowance(job)}. {words}"
    message = truncated(text, MAX_MESSAGE_BYTES)
    return ended(job, job.status, cond.make(c.CONDITION_FAILED, "True", c.REACHED_MAX_RESTARTS, message, now), now)


def _allowance(job: MPIJob) -> str:
    window_seconds = job.restart.window_seconds
    return f" of at most {restart_limit(job)}" + (f" in {format_duration(timedelta(seconds=window_seconds))}" if window_seconds else "")
