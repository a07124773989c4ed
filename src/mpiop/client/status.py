"""The status of a job as users read it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.manager import other_manager
from mpiop.api.status import stored_status, timestamp
from mpiop.api.status_types import Attempt, Condition, MPIJobStatus
from mpiop.client.errors import JobFailed
from mpiop.kube.text import whole_number

Object = Mapping[str, Any]
TERMINATING: Final = "Terminating"
PENDING: Final = "Pending"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Status of a job.

    Attributes:
        state: What `kubectl get mpijobs` shows: Starting, Running, Queued, Suspended, Succeeded, Failed, or the reason why it waits; or
            Pending before an operator has seen the job, and Terminating while it is being deleted.
        workers: `running/desired`, or "".
        restarts: How often the operator has restarted the job.
        failed_attempts: How many attempts of the launcher have failed.
        node: Of the launcher, or "".
        slots: MPI processes on each worker.
        message: What is wrong, or "".
        started: When the job was started.
        ended: When it ended.
        conditions: In the order of the status.
        attempts: The last failed attempts.
        log: The end of the log of the launcher that failed last, or "".
        cause: Why that launcher failed, as far as the operator knows; "" if it knows only an exit code.
    """

    state: str
    workers: str
    restarts: int
    failed_attempts: int
    node: str
    slots: int
    message: str
    started: datetime | None
    ended: datetime | None
    conditions: tuple[Condition, ...]
    attempts: tuple[Attempt, ...]
    log: str
    cause: str = ""

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of that type if it is true."""
        return next((row for row in self.conditions if row.type == type_ and row.is_true), None)

    @property
    def problem(self) -> Condition | None:
        """Return the condition that names why a job that has not ended waits, or runs badly; None without a problem."""
        found = (self.condition(type_) for type_ in (c.CONDITION_STALLED, c.CONDITION_RECONCILING, c.CONDITION_DEGRADED))
        return next((row for row in found if row is not None and row.reason != c.STARTING), None)

    @property
    def has_succeeded(self) -> bool:
        """Return whether the job has succeeded."""
        return self.condition(c.CONDITION_SUCCEEDED) is not None

    @property
    def is_finished(self) -> bool:
        """Return whether the job has ended."""
        return self.has_succeeded or self.condition(c.CONDITION_FAILED) is not None

    @property
    def exit_code(self) -> int | None:
        """Return the launcher's exit code: 0, or the code of the last failed attempt; None if it is not known."""
        if self.has_succeeded:
            return 0
        return self.attempts[-1].exit_code if self.attempts else None

    def failure(self, job: str) -> JobFailed:
        """Return the failure of the job as an error."""
        failed = self.condition(c.CONDITION_FAILED)
        reason, message = (failed.reason, failed.message) if failed else (self.state, self.message)
        return JobFailed(job, reason, message, self.exit_code, self.log)


def status_of(job: Object) -> JobStatus:
    """Return the status of an MPIJob; one that no operator has seen yet is `Pending`."""
    status = stored_status(job)
    summary, failure = status.summary, status.last_failure
    slots = whole_number(summary.slots)
    return JobStatus(
        state=_state(job, status),
        workers=summary.workers,
        restarts=whole_number(summary.restarts) or 0,
        failed_attempts=whole_number(summary.attempts) or 0,
        node=summary.node,
        slots=slots if slots is not None else job.get("spec", {}).get("slotsPerWorker") or 1,
        message=summary.message,
        started=status.start_time,
        ended=status.completion_time,
        conditions=status.conditions,
        attempts=status.attempts,
        log=failure.log if failure else "",
        cause=failure.cause if failure else "",
    )


def is_unseen(job: Object, seconds: float = -math.inf) -> bool:
    """Return whether no operator has written a status, although the job exists for so many seconds; False if another manager runs it."""
    created = created_at(job)
    if status_of(job).state != PENDING or other_manager(job) is not None or created is None:
        return False
    return (datetime.now(UTC) - created).total_seconds() >= seconds


def created_at(job: Object) -> datetime | None:
    """Return when the job was created; None before it is stored."""
    metadata: Object = job.get("metadata") or {}
    return timestamp(metadata.get("creationTimestamp"))


def _state(job: Object, status: MPIJobStatus) -> str:
    """Return the state: Terminating, or else what the operator wrote, or else what the conditions show."""
    metadata: Object = job.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return TERMINATING  # the operator leaves such a job alone
    return status.summary.state or _state_by_conditions(status)


def _state_by_conditions(status: MPIJobStatus) -> str:
    """Return the state by the conditions alone: Kubeflow's operator writes no summary."""
    ranked = (c.CONDITION_SUCCEEDED, c.CONDITION_FAILED, c.CONDITION_SUSPENDED, c.CONDITION_RUNNING)
    default = c.STARTING if any(row.is_true for row in status.conditions) else PENDING
    return next(filter(status.is_true, ranked), default)
