"""Conditions of the status as one small algebra: when they are rewritten, when their times move, where they stand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mpiop.api.status_types import Condition

Conditions = tuple[Condition, ...]


def make(type_: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    """Return a condition that became so at `now`."""
    return Condition(type_, status, reason, message, last_update_time=now, last_transition_time=now)


def set_condition(conditions: Conditions, new: Condition) -> Conditions:
    """Return `conditions` with `new` in place of the one of its type.

    The condition changes only if status or reason differ, not for a new message alone. A rewritten condition moves to the end,
    and its transition time moves only when its status does. Source: docs/compatibility.md, section 2.
    """
    old = find(conditions, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return conditions
    if old is not None and old.status == new.status:
        new = replace(new, last_transition_time=old.last_transition_time)
    return (*(condition for condition in conditions if condition.type != new.type), new)


def set_before_last(conditions: Conditions, new: Condition) -> Conditions:
    """Return `conditions` with `new` before the last of the others, which many programs read as the state of the job."""
    others = tuple(condition for condition in conditions if condition.type != new.type)
    return (*others[:-1], new, *others[-1:])


def turn_false(conditions: Conditions, type_: str) -> Conditions:
    """Return `conditions` with the status of that type False and all else as it was: times, reason and place.

    Dashboards compute how long a job ran from the transition time of Running, which therefore stays.
    """
    return change(conditions, type_, status="False")


def change(conditions: Conditions, type_: str, **fields: Any) -> Conditions:
    """Return `conditions` with those fields of the condition of that type changed, and its place as it was."""
    return tuple(replace(condition, **fields) if condition.type == type_ else condition for condition in conditions)


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """Return the condition of that type."""
    return next((condition for condition in conditions if condition.type == type_), None)
