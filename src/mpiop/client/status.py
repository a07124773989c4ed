"""The status of a job as users read it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mpiop.client.errors import JobFailed

Object = Mapping[str, Any]
TERMINATING: Final = "Terminating"
PENDING: Final = "Pending"
_OURS: Final = "kubeflow.org/mpi-operator"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a job; `is_true` is whether it holds."""

    type: str
    is_true: bool
    reason: str
    message: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed attempt of the launcher."""

    number: int
    pod: str
    node: str
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How a job is.

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
        found = (self.condition(type_) for type_ in ("Stalled", "Reconciling", "Degraded"))
        return next((row for row in found if row is not None and row.reason != "Starting"), None)

    @property
    def has_succeeded(self) -> bool:
        """Return whether the job has succeeded."""
        return self.condition("Succeeded") is not None

    @property
    def is_finished(self) -> bool:
        """Return whether the job has ended."""
        return self.has_succeeded or self.condition("Failed") is not None

    @property
    def exit_code(self) -> int | None:
        """Return that of the launcher: 0, or that of the last failed attempt; None if it is not known."""
        if self.has_succeeded:
            return 0
        return self.attempts[-1].exit_code if self.attempts else None

    def failure(self, job: str) -> JobFailed:
        """Return the failure of the job as an error."""
        failed = self.condition("Failed")
        reason, message = (failed.reason, failed.message) if failed else (self.state, self.message)
        return JobFailed(job, reason, message, self.exit_code, self.log)


def status_of(job: Object) -> JobStatus:
    """Return the status of an MPIJob; one that no operator has seen yet is `Pending`."""
    status: Object = job.get("status") or {}
    summary: Object = status.get("summary") or {}
    last: Object = status.get("lastFailure") or {}
    return JobStatus(
        state=_state(job, status),
        workers=summary.get("workers", ""),
        restarts=int(summary.get("restarts") or 0),
        failed_attempts=int(summary.get("attempts") or 0),
        node=summary.get("node", ""),
        slots=int(summary.get("slots") or job.get("spec", {}).get("slotsPerWorker") or 1),
        message=summary.get("message", ""),
        started=time_of(status.get("startTime")),
        ended=time_of(status.get("completionTime")),
        conditions=tuple(map(_condition, status.get("conditions") or ())),
        attempts=tuple(map(_attempt, status.get("attempts") or ())),
        log=last.get("log", ""),
        cause=last.get("cause", ""),
    )


def is_unseen(job: Object, seconds: float = -math.inf) -> bool:
    """Return whether no operator has written a status, although the job exists for so many seconds; False if another manager runs it."""
    created = time_of(job["metadata"].get("creationTimestamp"))
    if status_of(job).state != PENDING or other_manager(job) is not None or created is None:
        return False
    return (datetime.now(UTC) - created).total_seconds() >= seconds


def other_manager(job: Object) -> str | None:
    """Return who runs the job in place of an MPI operator; None if nobody does."""
    spec: Object = job.get("spec") or {}
    policy: Object = spec.get("runPolicy") or {}
    manager: str = policy.get("managedBy", _OURS)
    return None if manager == _OURS else manager


def time_of(text: str | None) -> datetime | None:
    """Return a time of Kubernetes; None without one."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _state(job: Object, status: Object) -> str:
    """Return the state: Terminating, or else what the operator wrote, or else what the conditions show."""
    metadata: Object = job.get("metadata") or {}
    summary: Object = status.get("summary") or {}
    if metadata.get("deletionTimestamp"):
        return TERMINATING  # the operator leaves such a job alone
    return summary.get("state") or _state_by_conditions(status)


def _state_by_conditions(status: Object) -> str:
    """Return the state by the conditions alone: Kubeflow's operator writes no summary."""
    true = {row["type"] for row in status.get("conditions") or () if row.get("status") == "True"}
    ranked = ("Succeeded", "Failed", "Suspended", "Running")
    return next((type_ for type_ in ranked if type_ in true), "Starting" if true else PENDING)


def _condition(row: Object) -> Condition:
    since = time_of(row.get("lastTransitionTime"))
    return Condition(row["type"], row.get("status") == "True", row.get("reason", ""), row.get("message", ""), since)


def _attempt(row: Object) -> Attempt:
    return Attempt(
        number=row.get("number", 0),
        pod=row.get("pod", ""),
        node=row.get("node", ""),
        started=time_of(row.get("startTime")),
        ended=time_of(row.get("endTime")),
        exit_code=row.get("exitCode"),
        reason=row.get("reason", ""),
    )
