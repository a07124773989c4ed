"""The problems behind failed writes: which need a user, and which a retry should solve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key
from mpiop.kube.resources import Resource

_PERSISTENT_SYNCS: Final = 3
_PERSISTENT_SECONDS: Final = 3.0
"""Retries come 2.6, 5.1 and 10.2 s after the first failure. An error that appears within two seconds of it is reported at 5.1 s."""
_NAMED: Final = 3
_GANG_KINDS: Final = frozenset({"PodGroup", "Workload"})
_CREATE_FAILED: Final = {"Pod": "worker pod created failed: ", "Job": "launcher pod created failed: "}
_DENIALS: Final = ("denied request", "denied the request")
"""What policies and webhooks say whose refusals have another code than 403."""


class PredecessorError(Exception):
    """A child of a deleted job of the same name still exists; the garbage collector will remove it."""

    def __init__(self, resource: Resource, key: Key) -> None:
        """Name the object that is waited for."""
        super().__init__(f"{resource.kind} {key} of a former owner is still being deleted")


class ResourceExistsError(Exception):
    """An object with the name of a child exists and does not belong to the job."""

    def __init__(self, kind: str, name: str) -> None:
        """Say which object is in the way."""
        super().__init__(f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob')


class SecretLostError(Exception):
    """The SSH Secret is gone while pods run with its key; new pods with another key could not reach them."""

    def __init__(self, name: str, holders: Sequence[str]) -> None:
        """Say what is gone, and which pods hold its key."""
        held = ", ".join(holders[:_NAMED]) + (f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else "")
        super().__init__(f"Secret {name} is gone, and new pods cannot start without it; {held} still run with its key")


class DampedWriteError(Exception):
    """A write was not sent yet, because somebody undoes it each time."""

    def __init__(self, resource: Resource, key: Key, wait_seconds: float) -> None:
        """Say which object is written, and when it may be written again."""
        super().__init__(f"{resource.kind} {key} is changed back each time; it is written again in {wait_seconds:.1f} s")


class GangApiMissingError(Exception):
    """Gang scheduling is on, but the API server does not serve its objects; the message says what to do."""

    def __init__(self, kind: str, message: str) -> None:
        """Say of which kind the objects are, and what to do."""
        super().__init__(message)
        self.kind = kind


_REASONS: Final[Mapping[type[Exception], str]] = {
    ResourceExistsError: causes.RESOURCE_EXISTS,
    SecretLostError: causes.SECRET_LOST,
}


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A failed write: the kind of the object, the error, and whether it was a create."""

    kind: str
    error: Exception
    is_create: bool = True


def refusal(failed: FailedWrite) -> Problem | None:
    """Return the problem behind a failed write; None if a retry should succeed.

    No connection, a conflict, a busy server and a terminating namespace are not problems of the job.
    """
    error = failed.error
    if isinstance(error, GangApiMissingError):
        return Problem(causes.GANG_API_MISSING, str(error))
    if (reason := _REASONS.get(type(error))) is not None:
        return problem(reason, str(error))
    if not isinstance(error, StatusError) or error.is_terminating_namespace:
        return None
    if error.is_not_found and failed.is_create and failed.kind in _GANG_KINDS:
        return problem(causes.GANG_API_MISSING, f"no {failed.kind} can be made: {error.status_message}")
    reason = refusal_reason(error.code, error.status_message)
    return problem(reason, _words(failed)) if reason else None


def refusal_reason(code: int, message: str) -> str:
    """Return the reason of a refusal by the API server; "" if a retry may succeed."""
    if code == HTTPStatus.FORBIDDEN:
        return causes.QUOTA_EXCEEDED if "exceeded quota" in message else causes.FORBIDDEN
    if code == HTTPStatus.UNPROCESSABLE_ENTITY and any(denial in message for denial in _DENIALS):
        return causes.FORBIDDEN
    is_invalid = code in {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
    return causes.VALIDATION_ERROR if is_invalid else ""


def _words(failed: FailedWrite) -> str:
    """Return what the API server said of a failed write, after the kind of the object."""
    error = failed.error
    words = (error.status_message if isinstance(error, StatusError) else "") or str(error)
    if failed.is_create and failed.kind in _CREATE_FAILED:
        return f"{_CREATE_FAILED[failed.kind]}{words}"
    return f"{failed.kind}: {words}"


@dataclass(frozen=True, slots=True)
class _Series:
    """Consecutive syncs in which a write failed with the same error: its code or type, how many, and since when."""

    what: object
    syncs: int
    since: float


class PersistentFailures:
    """Tracks for how long retries have failed that should succeed: a webhook may be down for days."""

    def __init__(self) -> None:
        """Start without failures."""
        self._series: dict[Key, _Series] = {}

    def problem(self, job: Key, failed: Sequence[FailedWrite], now_seconds: float) -> Problem | None:
        """Record the failed writes of a sync; return a problem once writes have failed alike for several syncs and seconds.

        Args:
            job: Whose sync it was.
            failed: Its failed writes.
            now_seconds: The time, on a clock that never goes back.
        """
        write = next((write for write in failed if _should_pass(write)), None)
        if write is None:
            self.forget(job)
            return None
        # The kind does not count: the children of a deleted job disappear one after another.
        what = write.error.code if isinstance(write.error, StatusError) else type(write.error)
        series = self._series.get(job)
        if series is None or series.what != what:
            series = _Series(what, 0, now_seconds)
        series = self._series[job] = replace(series, syncs=series.syncs + 1)
        if series.syncs < _PERSISTENT_SYNCS or now_seconds - series.since < _PERSISTENT_SECONDS:
            return None
        reason = causes.PREDECESSOR_EXISTS if isinstance(write.error, PredecessorError) else causes.WRITE_FAILED
        return problem(reason, _words(write))

    def forget(self, job: Key) -> None:
        """Forget a job."""
        self._series.pop(job, None)


def _should_pass(failed: FailedWrite) -> bool:
    """Return whether a retry may succeed, because the server or the network was at fault."""
    error = failed.error
    if isinstance(error, PredecessorError):
        return True
    if refusal(failed) is not None or not isinstance(error, KubeError):
        return False
    return not isinstance(error, StatusError) or not (error.code == HTTPStatus.CONFLICT or error.is_terminating_namespace)
