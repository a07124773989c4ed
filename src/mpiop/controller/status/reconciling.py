"""Whether a job waits, or is stalled: the conditions that kstatus reads (Flux, Helm, kpt).

`Reconciling` True is InProgress there, `Stalled` True is Failed. At most one of them is True: kstatus believes the first.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.controller.causes import Problem, grace_seconds
from mpiop.controller.status import conditions as cond

_STARTING_MESSAGE: Final = "The job waits until the launcher and all workers run."


def current_problem(status: MPIJobStatus) -> Problem | None:
    """Return the problem for which a job that has not ended waits; it is kept while failed writes hide whether it is solved."""
    row = status.true_condition(c.CONDITION_STALLED) or status.true_condition(c.CONDITION_RECONCILING)
    return None if row is None or row.reason == c.STARTING or status.is_finished else Problem(row.reason, row.message)


def is_stalled(status: MPIJobStatus, problem: Problem, now: datetime) -> bool:
    """Return whether the job has waited for the problem as long as it may resolve itself; once stalled, it is so until it is solved."""
    stalled = status.true_condition(c.CONDITION_STALLED)
    if stalled is not None and stalled.reason == problem.reason:
        return True
    return (now - _since(status, problem.reason, now)).total_seconds() >= grace_seconds(problem.reason)


def seconds_to_stalled(status: MPIJobStatus, now: datetime) -> float | None:
    """Return the seconds until the job is stalled by the problem of `status`; None without one, or if it is stalled."""
    row = status.true_condition(c.CONDITION_RECONCILING)
    if row is None or row.reason == c.STARTING:
        return None
    return max(0.0, grace_seconds(row.reason) - (now - row.last_transition_time).total_seconds())


def reconciling(status: MPIJobStatus, problem: Problem | None, now: datetime) -> Condition | None:
    """Return the condition Reconciling of a job that has not ended and is not stalled; None if it does not wait."""
    if problem is not None:
        return cond.make(c.CONDITION_RECONCILING, "True", problem.reason, problem.message, now)
    is_still = status.is_true(c.CONDITION_RUNNING) or status.is_true(c.CONDITION_SUSPENDED)
    return None if is_still else cond.make(c.CONDITION_RECONCILING, "True", c.STARTING, _STARTING_MESSAGE, now)


def with_reconciling(status: MPIJobStatus, row: Condition | None) -> MPIJobStatus:
    """Return `status` with that condition Reconciling, or without one.

    It is the first of the list: many programs read the last one as the state of the job. Its transition time is when its reason began.
    """
    old = status.condition(c.CONDITION_RECONCILING)
    if row is not None and old is not None and (old.status, old.reason) == (row.status, row.reason):
        return status
    others = tuple(each for each in status.conditions if each.type != c.CONDITION_RECONCILING)
    return replace(status, conditions=others if row is None else (row, *others))


def as_reported(status: MPIJobStatus) -> Sequence[Condition]:
    """Return the conditions in the order of their events and log lines: why a job waits follows what else happened to it."""
    return sorted(status.conditions, key=lambda row: row.type == c.CONDITION_RECONCILING)


def with_generation(stored: MPIJobStatus, new: MPIJobStatus, generation: int) -> MPIJobStatus:
    """Return `new`, if it differs, with the generation of the MPIJob that it describes as long as the job waits.

    A job that does not wait has none: an edit of it may change nothing else in the status, and costs no write. With an old generation,
    kstatus would take the job for InProgress for ever.
    """
    is_waiting = not new.is_finished and (new.is_true(c.CONDITION_RECONCILING) or new.is_true(c.CONDITION_STALLED))
    if new == stored and stored.observed_generation >= 0:  # the definition sets -1, which an older operator leaves
        return new
    return replace(new, observed_generation=generation if is_waiting else 0)


def _since(status: MPIJobStatus, reason: str, now: datetime) -> datetime:
    row = status.true_condition(c.CONDITION_RECONCILING)
    return row.last_transition_time if row is not None and row.reason == reason else now
