"""Turns failed writes into problems: which need a user, and which a retry should solve."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from mpiop.api.gang_schedulers import GANG_SCHEDULERS
from mpiop.backoff import SYNC
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.errors import GangApiMissingError, PredecessorError, ResourceExistsError, SecretLostError
from mpiop.controller.memory import JobMemory
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key

_PERSISTENT_SYNCS: Final = 3
_PERSISTENT_RETRY: Final = 10
_PERSISTENT_SECONDS: Final = math.floor(SYNC.total_seconds(_PERSISTENT_RETRY)) - 2.0
"""An error that appears within two seconds of the first failure is reported at this retry of the sync, 5.1 s after that failure."""
_GANG_KINDS: Final = frozenset(resource.kind for row in GANG_SCHEDULERS.values() for api in row.apis for resource in api)
_CREATE_FAILED: Final = {"Pod": "worker pod created failed: ", "Job": "launcher pod created failed: "}
_DENIALS: Final = ("denied request", "denied the request")
"""Texts of policies and webhooks that refuse with another code than 403."""


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
    """Return the kind of the object, then the API server's message about the failed write."""
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

    def __init__(self, memory: JobMemory) -> None:
        """Keep the failures in `memory`."""
        self._series: dict[Key, _Series] = memory.table()

    def problem(self, job: Key, failed: Sequence[FailedWrite], now_seconds: float) -> Problem | None:
        """Record the failed writes of a sync; return a problem once writes have failed alike for several syncs and seconds.

        Args:
            job: Whose sync it was.
            failed: Its failed writes.
            now_seconds: The time, on a clock that never goes back.
        """
        write = next((write for write in failed if _should_pass(write)), None)
        if write is None:
            self._series.pop(job, None)
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


def _should_pass(failed: FailedWrite) -> bool:
    """Return whether a retry may succeed, because the server or the network was at fault."""
    error = failed.error
    if isinstance(error, PredecessorError):
        return True
    if refusal(failed) is not None or not isinstance(error, KubeError):
        return False
    return not isinstance(error, StatusError) or not (error.code == HTTPStatus.CONFLICT or error.is_terminating_namespace)
