"""Logs the life of each job: one line for each change of its status, and one for its clean-up."""

from collections.abc import Iterator, Mapping
from typing import Any

import structlog

from mpiop.api import constants as c
from mpiop.api.condition_type import Change
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.controller.status.reconciling import as_reported
from mpiop.controller.status.status import failure_between
from mpiop.kube.objects import Object, key_of, uid_of


def log_changes(raw: Object, old: MPIJobStatus, new: MPIJobStatus) -> None:
    """Log what changed between two stored statuses of the job `raw`."""
    for phrase, details in changes(old, new):
        _log_of(raw).info(phrase, **details)


def log_clean_up(raw: Object, count: int) -> None:
    """Log that `count` children of the finished job `raw` were deleted."""
    _log_of(raw).info("job cleaned up", deleted=count)


def _log_of(raw: Object) -> Any:
    return structlog.get_logger(__name__).bind(job=str(key_of(raw)), uid=uid_of(raw), generation=raw["metadata"].get("generation", 0))


def changes(old: MPIJobStatus, new: MPIJobStatus) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a phrase and its details for each change that is part of the story."""
    if (failed := failure_between(old, new)) is not None:
        yield "launcher failed", {"reason": failed.reason, "message": failed.message}
    for row in as_reported(new):
        change = c.condition_type(row.type).change(row.status, row.reason)
        before = old.condition(row.type)
        is_end = row.type == c.CONDITION_STALLED and new.is_finished
        if (
            change.log
            and not is_end
            and row.reason != c.STARTING
            and (before is None or (before.status, before.reason) != (row.status, row.reason))
        ):
            yield change.log, _details(row, change, new)


def _details(row: Condition, change: Change, status: MPIJobStatus) -> Mapping[str, Any]:
    details: dict[str, Any] = {}
    if change.event == "Warning":
        details |= {"reason": row.reason, "message": row.message}
    if row.type in {c.CONDITION_SUCCEEDED, c.CONDITION_FAILED} and status.duration is not None:
        details["seconds"] = status.duration.total_seconds()
    return details
