"""Computes the status that a job should have, and the transitions between two statuses. Pure.

`next_status` starts from the stored status and lets the modules of this package change one part each. The same input gives the same status,
so it is written only when something has changed. Events and counters follow from `transitions`, once the new status is stored.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.status_types import Condition, Failure, MPIJobStatus, ReplicaStatus
from mpiop.controller.causes import RESOURCE_EXISTS, VALIDATION_ERROR, Problem, facts_of
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.allocation_end import reason_of_end, with_reason_of_end
from mpiop.controller.status.outcomes import ended, failure, stalled_by_failure, with_condition, with_problem
from mpiop.controller.status.reconciling import as_reported, current_problem, with_reconciling
from mpiop.controller.status.restarts import carried_out, with_failed_nodes
from mpiop.controller.status.summary import summarized
from mpiop.controller.status.template_warnings import with_warnings, without_warnings
from mpiop.controller.status.verdict import NO_WORDS, UNSEEN_END, LastWords, evicted_worker, judged, late_verdict, verdict, waited_end
from mpiop.controller.status.workers_unused import with_workers_unused
from mpiop.kube.objects import Key, Object
from mpiop.kube.text import truncated

_EDIT_MESSAGE = (
    "The spec was changed after the launcher had started. What cannot follow at once takes effect at the next start: "
    "suspend and resume the job."
)
_CAUSE_EVENTS: Final = {RESOURCE_EXISTS: "ErrResourceExists"}
"""Causes whose events have another reason."""
_LAUNCHER_LOST_MESSAGE = (
    "the launcher Job is gone, and how it ended was not seen: it was deleted, or its ttlSecondsAfterFinished passed while no operator ran"
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a sync has found out in addition to what it observed.

    Attributes:
        has_created_launcher: It has created the launcher Job.
        warnings: What the API server warned of when children were created, and what is known to fail later.
        words: Of the log of the launcher that failed last, if that failure is new.
    """

    has_created_launcher: bool = False
    warnings: Collection[str] = ()
    words: LastWords = NO_WORDS


def next_status(attempt: LauncherAttempt, problem: Problem | None, now: datetime, findings: Findings = Findings()) -> MPIJobStatus:
    """Return the status of a valid job; equal to the stored one if nothing has changed."""
    job, observed = attempt.job, attempt.observed
    status = replace(job.status, attempts=attempt.failures.attempts, last_failure=judged(attempt, findings.words))
    if status.is_finished:
        status = _completed(_explained(job.status, observed.launcher, status, now))
    else:
        status = _alive(attempt, problem, replace(status, lost_worker=attempt.lost_worker(now)), now)
    status = with_reason_of_end(with_workers_unused(job, observed, status, now), reason_of_end(job, observed))
    status = with_warnings(status, findings.warnings, now)
    status = replace(status, replica_statuses=_replica_statuses(status, observed, has_created_launcher=findings.has_created_launcher))
    return replace(status, summary=summarized(job, observed, status))


def invalid_status(stored: MPIJobStatus, message: str, now: datetime) -> MPIJobStatus:
    """Return the status of an invalid job: the stored one, with Stalled added unless the job has finished."""
    if stored.is_finished:
        return stored
    stalled = cond.make(c.CONDITION_STALLED, "True", VALIDATION_ERROR, message, now)
    # The reason stays the same after another invalid edit, but the message must be about the current spec.
    conditions = cond.change(cond.set_condition(stored.conditions, stalled), stalled.type, message=message)
    stored = with_reconciling(replace(stored, conditions=conditions), None)
    return replace(stored, summary=replace(stored.summary, state=VALIDATION_ERROR, message=message))


def unobserved_status(stored: MPIJobStatus, problem: Problem, now: datetime) -> MPIJobStatus:
    """Return the status of a job whose children are not known, because of `problem`: the stored one, with that unless it has finished."""
    if stored.is_finished:
        return stored
    summary = replace(stored.summary, state=problem.reason, message=problem.message)
    return replace(with_problem(stored, problem, now), summary=summary)


def _alive(attempt: LauncherAttempt, problem: Problem | None, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    job, observed = attempt.job, attempt.observed
    created = cond.make(c.CONDITION_CREATED, "True", "MPIJobCreated", f"MPIJob {job.key} is created.", now)
    if status.condition(c.CONDITION_CREATED) is None:
        status = with_condition(status, created)
    status = _suspended(job.key, status, now, is_suspended=job.is_suspended or attempt.has_outdated_launcher)
    if (outcome := pods.job_outcome(observed.launcher)) is not None:
        return _finished(attempt, status, outcome, now=now)
    if attempt.has_lost_launcher:
        return ended(job.key, status, cond.make(c.CONDITION_FAILED, "True", c.LAUNCHER_JOB_NOT_FOUND, _LAUNCHER_LOST_MESSAGE, now), now)
    if evicted := attempt.evicted_workers:
        message = f"{evicted}/{job.worker_replicas} workers are evicted"
        evicted_end = cond.make(c.CONDITION_FAILED, "True", c.EVICTED, message, now)
        return ended(job.key, status, evicted_end, now, verdict=evicted_worker(observed))
    is_launched = not job.is_suspended and any(map(pods.is_running, observed.launcher_pods))
    if is_launched and observed.running_workers.issuperset(job.worker_names):
        status = with_condition(status, cond.make(c.CONDITION_RUNNING, "True", "MPIJobRunning", f"MPIJob {job.key} is running.", now))
    if not attempt.is_restarting:
        status = carried_out(status, now, is_suspended=job.is_suspended)
    status = with_failed_nodes(job.restart, status, now)
    is_started = not observed.is_launcher_suspended
    status = _update_pending(status, now, is_started=is_started, is_edited=attempt.has_pending_edit)
    return with_problem(status, problem, now)


def _suspended(job: Key, status: MPIJobStatus, now: datetime, *, is_suspended: bool) -> MPIJobStatus:
    """Set Suspended as soon as it is requested, as the reference does; `active` of the replica statuses shows when no pod is left."""
    if is_suspended:
        status = with_condition(status, cond.make(c.CONDITION_SUSPENDED, "True", "MPIJobSuspended", "MPIJob suspended", now))
        return with_condition(status, cond.make(c.CONDITION_RUNNING, "False", "MPIJobSuspended", f"MPIJob {job} is suspended.", now))
    if status.is_true(c.CONDITION_SUSPENDED):
        resumed = cond.make(c.CONDITION_SUSPENDED, "False", "MPIJobResumed", "MPIJob resumed", now)
        return replace(with_condition(without_warnings(status, now), resumed), start_time=now, last_failure=None, attempts=())
    return status if status.start_time else replace(status, start_time=now)


def _update_pending(status: MPIJobStatus, now: datetime, *, is_started: bool, is_edited: bool) -> MPIJobStatus:
    if is_edited:
        return with_condition(status, cond.make(c.CONDITION_UPDATE_PENDING, "True", "EditedAfterStart", _EDIT_MESSAGE, now))
    if is_started and status.is_true(c.CONDITION_UPDATE_PENDING):
        message = "The launcher was started from the spec as it is."
        return with_condition(status, cond.make(c.CONDITION_UPDATE_PENDING, "False", "UpToDate", message, now))
    return status


def _finished(attempt: LauncherAttempt, status: MPIJobStatus, outcome: Mapping[str, Any], *, now: datetime) -> MPIJobStatus:
    job, launcher = attempt.job.key, attempt.observed.launcher
    if outcome["type"] == "Complete":
        completed = timestamp(launcher.get("status", {}).get("completionTime")) if launcher else None
        reason = reason_of_end(attempt.job, attempt.observed)
        message = f"MPIJob {job} successfully completed{f': {truncated(reason)}' if reason else ''}."
        success = cond.make(c.CONDITION_SUCCEEDED, "True", "MPIJobSucceeded", message, now)
        status = replace(status, conditions=cond.turn_false(status.conditions, c.CONDITION_FAILED))
        return ended(job, status, success, completed or now)
    reason, message = failure(outcome, status.last_failure, f"MPIJob {job} has failed")
    if reason.startswith(c.BACKOFF_LIMIT_EXCEEDED):
        words = verdict(status) or UNSEEN_END
        return ended(job, status, cond.make(c.CONDITION_FAILED, "True", reason, message, now), now, verdict=words)
    return ended(job, status, waited_end(status, reason, message, now), now, verdict=late_verdict(status, reason))


def _explained(stored: MPIJobStatus, launcher: Object | None, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Add the cause to a failure recorded without it: the end of a pod may be seen after that of the Job."""
    failed, outcome = status.true_condition(c.CONDITION_FAILED), pods.job_outcome(launcher)
    if failed is None or outcome is None or not failed.reason.startswith(c.BACKOFF_LIMIT_EXCEEDED):
        return status
    is_known = failed.reason != c.BACKOFF_LIMIT_EXCEEDED and status.last_failure == stored.last_failure
    if is_known or status.last_failure is None:
        return status
    reason, message = failure(outcome, status.last_failure, failed.message)
    status = with_condition(status, cond.make(c.CONDITION_FAILED, "True", reason, message, now))
    conditions = cond.change(status.conditions, c.CONDITION_FAILED, message=message)
    status = replace(status, conditions=conditions, summary=replace(status.summary, message=verdict(status) or message))
    return stalled_by_failure(status, status.condition(c.CONDITION_FAILED) or failed)


def failure_between(old: MPIJobStatus, new: MPIJobStatus) -> Failure | None:
    """Return the failure of the launcher that `new` has and `old` has not."""
    return None if new.last_failure is None or new.last_failure.is_same(old.last_failure) else new.last_failure


def _completed(status: MPIJobStatus) -> MPIJobStatus:
    """Add the completionTime that the Go operator leaves out after an eviction, since the TTL counts from it.

    It is the transition time of the final condition, so every replica computes the same, and the duration is right.
    """
    ends = (status.condition(type_) for type_ in (c.CONDITION_SUCCEEDED, c.CONDITION_FAILED))
    times = [end.last_transition_time for end in ends if end is not None and end.status == "True"]
    return status if status.completion_time or not times else replace(status, completion_time=times[0])


def _replica_statuses(status: MPIJobStatus, observed: Observed, *, has_created_launcher: bool) -> Mapping[str, ReplicaStatus]:
    launcher = observed.launcher
    workers = _count(observed.workers.values())
    if launcher is None and status.is_finished:
        active = {c.WORKER: workers.active}
        return {role: replace(counts, active=min(counts.active, active.get(role, 0))) for role, counts in status.replica_statuses.items()}
    if launcher is None:
        return {c.LAUNCHER: ReplicaStatus(), c.WORKER: workers} if has_created_launcher else {c.WORKER: workers}
    ended, is_done = launcher.get("status", {}), pods.job_outcome(launcher) is not None
    return {
        c.LAUNCHER: ReplicaStatus(
            active=0 if is_done else sum(pods.phase(pod) == "Running" for pod in observed.launcher_pods),
            succeeded=ended.get("succeeded", 0),
            failed=ended.get("failed", 0),
        ),
        c.WORKER: ReplicaStatus() if is_done else workers,
    }


def _count(workers: Collection[Object]) -> ReplicaStatus:
    phases = [pods.phase(pod) for pod in workers]
    return ReplicaStatus(active=phases.count("Running"), succeeded=phases.count("Succeeded"), failed=phases.count("Failed"))


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a condition, as the event that is recorded once the status is stored.

    Attributes:
        condition: Type of the condition that changed.
        type: `Normal` or `Warning`.
    """

    condition: str
    type: str
    reason: str
    message: str


def transitions(key: Key, old: MPIJobStatus, new: MPIJobStatus) -> list[Transition]:
    """Return the transitions between two statuses, in the order of their events."""
    changed = (row for row in as_reported(new) if _is_new(old.condition(row.type), row) and not _is_known(old, new, row))
    found = (_event(key, row) for row in changed)
    return [transition for transition in found if transition is not None]


def _is_new(before: Condition | None, condition: Condition) -> bool:
    if before is None or before.status != condition.status:
        return True
    # A failure has one event; a later change of its reason adds the cause.
    return before.reason != condition.reason and condition.type != c.CONDITION_FAILED


def _is_known(old: MPIJobStatus, new: MPIJobStatus, row: Condition) -> bool:
    """Return whether the event of a problem was recorded when the job began to wait for it, or is that of its failure."""
    if row.type not in {c.CONDITION_RECONCILING, c.CONDITION_STALLED}:
        return False
    known = current_problem(old)
    return new.is_finished or row.reason == c.STARTING or (known is not None and known.reason == row.reason)


def _event(key: Key, condition: Condition) -> Transition | None:
    """Return the transition with the event reason that users of the reference know; mostly that of the condition."""
    kind = c.condition_type(condition.type)
    change = kind.change(condition.status, condition.reason)
    if not change.event:
        return None
    reason, message = condition.reason, change.event_message.format(job=key) or condition.message
    if kind.names_cause:
        reason, message = _CAUSE_EVENTS.get(reason, reason), facts_of(reason, message)
    return Transition(condition.type, change.event, change.event_reason or reason, message)
