"""The status of a job that has a problem, or has ended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.condition_type import AtEnd
from mpiop.api.status_types import Condition, Failure, MPIJobStatus
from mpiop.controller.causes import DEGRADING, WORKER_REJECTED, Problem, facts_of
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.reconciling import is_stalled, reconciling, with_reconciling
from mpiop.kube.objects import Key
from mpiop.kube.text import MAX_MESSAGE_BYTES, truncated

JOB_FAILED: Final = "JobFailed"
MESSAGE_SECONDS: Final = 30.0
"""Minimum interval between two messages for the same problem."""
_REJECTION_SECONDS: Final = 5.0
"""The same for a worker that was rejected again: the message contains when its next Pod is created."""


def ended(job: Key, status: MPIJobStatus, end: Condition, completed: datetime, *, verdict: str = "") -> MPIJobStatus:
    """Return `status` of a job that ended with the condition `end`, at `completed`; `verdict` is why it failed, by default the message."""
    has_failed = end.type == c.CONDITION_FAILED
    status = _unresolved(status, end) if has_failed else with_problem(status, None, end.last_update_time)
    summary = replace(status.summary, message=truncated(verdict or end.message) if has_failed else "")
    if status.condition(c.CONDITION_RUNNING) is None:
        message = f"MPIJob {job} is finished but Running condition was never set."
        status = with_condition(status, cond.make(c.CONDITION_RUNNING, "False", "MPIJobRunning", message, completed))
    conditions = status.conditions
    for type_ in _types(AtEnd.TURNS_FALSE):
        conditions = cond.turn_false(conditions, type_)
    conditions = tuple(row for row in conditions if row.type not in _types(AtEnd.IS_REMOVED))
    with_end = cond.set_condition(conditions, end)
    finished = cond.make(c.CONDITION_FINISHED, "True", end.type, end.message, end.last_update_time)
    conditions = cond.set_before_last(with_end, finished)
    status = replace(status, conditions=conditions, completion_time=completed, lost_worker=None, summary=summary)
    return stalled_by_failure(status, end) if has_failed else status


def failure(outcome: Mapping[str, Any], last: Failure | None, default_message: str) -> tuple[str, str]:
    """Return reason and message of a failed job from the launcher Job's Failed condition and the `last` failure of its pods.

    `BackoffLimitExceeded` does not name the cause, so that of the pod is added, then the verdict and the end of the log. The reason remains
    the pod's own, because programs compare it. The message has at most 1024 bytes.
    """
    reason: str = outcome.get("reason") or "MPIJobFailed"
    message: str = outcome.get("message") or default_message
    if reason == c.BACKOFF_LIMIT_EXCEEDED and last is not None:
        reason, message = f"{reason}/{last.reason}", f"{message}: {last.message}"
    if last is not None and last.cause:
        message = f"{truncated(message, MAX_MESSAGE_BYTES // 3)}. Cause: {last.cause}"
    if last is None or not last.log:
        return reason, truncated(message)
    message = truncated(message, MAX_MESSAGE_BYTES * 2 // 3)
    room = MAX_MESSAGE_BYTES - len(message.encode()) - 1
    return reason, f"{message}\n{last.log.encode()[-room:].decode(errors='ignore')}"


def _unresolved(status: MPIJobStatus, end: Condition) -> MPIJobStatus:
    """Return `status` of a job that failed: what it ran with is over, but was not resolved."""
    for row in filter(None, map(status.true_condition, _types(AtEnd.IS_RESOLVED))):
        message = truncated(f"The job has failed with this problem: {row.reason}: {facts_of(row.reason, row.message)}")
        status = with_condition(status, cond.make(row.type, "False", JOB_FAILED, message, end.last_update_time))
    return status


def _types(at_end: AtEnd) -> Sequence[str]:
    """Return the types of conditions to which the end of a job does that."""
    return [row.type for row in c.CONDITION_TYPES.values() if row.at_end is at_end]


def stalled_by_failure(status: MPIJobStatus, failed: Condition) -> MPIJobStatus:
    """Return `status` with Stalled like `failed`, because kstatus knows no other sign of a failure."""
    stalled = replace(failed, type=c.CONDITION_STALLED)
    return replace(status, conditions=cond.set_before_last(status.conditions, stalled))


def with_problem(status: MPIJobStatus, problem: Problem | None, now: datetime) -> MPIJobStatus:
    """Name the problem in Reconciling, after its grace period in Stalled, or in Degraded while the job runs; what is solved turns False."""
    current = None if problem is None else _condition_of(status, problem, now)
    waits_for = problem if current == c.CONDITION_RECONCILING else None
    row = None if current == c.CONDITION_STALLED else reconciling(status, waits_for, now)
    for type_ in _types(AtEnd.IS_RESOLVED):
        if problem is not None and type_ == current:
            status = _with_message(status, cond.make(type_, "True", problem.reason, problem.message, now))
        elif status.is_true(type_):
            status = with_condition(status, cond.make(type_, "False", "Resolved", "The problem is resolved.", now))
    return with_reconciling(status, row) if row is None else _with_message(with_reconciling(status, row), row)


def _condition_of(status: MPIJobStatus, problem: Problem, now: datetime) -> str:
    """Return the type of the condition that names the problem."""
    if problem.reason in DEGRADING and status.is_true(c.CONDITION_RUNNING):
        return c.CONDITION_DEGRADED
    return c.CONDITION_STALLED if is_stalled(status, problem, now) else c.CONDITION_RECONCILING


def _with_message(status: MPIJobStatus, new: Condition) -> MPIJobStatus:
    """Set the condition; delay a new message of the same problem, because the scheduler rewords it with every Pod."""
    old = status.condition(new.type)
    stays_seconds = _REJECTION_SECONDS if new.reason == WORKER_REJECTED else MESSAGE_SECONDS
    is_due = old is not None and (new.last_update_time - old.last_update_time).total_seconds() >= stays_seconds
    if old is None or (old.status, old.reason) != (new.status, new.reason) or old.message == new.message or not is_due:
        return with_condition(status, new)
    conditions = cond.change(status.conditions, new.type, message=new.message, last_update_time=new.last_update_time)
    return replace(status, conditions=conditions)


def with_condition(status: MPIJobStatus, condition: Condition) -> MPIJobStatus:
    """Return `status` with the condition in place of the one of its type (see `conditions.set_condition`)."""
    return replace(status, conditions=cond.set_condition(status.conditions, condition))
