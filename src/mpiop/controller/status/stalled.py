"""Why a job makes no progress: a reason and a message, from refused writes and the states of pods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.clock import parse_time
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, is_terminating

VALIDATION_ERROR = "ValidationError"
RESOURCE_EXISTS = "ResourceExists"
QUOTA_EXCEEDED = "QuotaExceeded"
FORBIDDEN = "Forbidden"
UNSCHEDULABLE = "Unschedulable"
IMAGE_PULL = "ImagePull"
NO_SSHD = "NoSshd"
SECRET_LOST = "SecretLost"  # noqa: S105 - the reason of a condition
WORKER_ENDED = "WorkerEnded"
GANG_API_MISSING = "GangApiMissing"
WRITE_FAILED = "WriteFailed"

_PERSISTENT_SYNCS = 3
_PERSISTENT_SECONDS = 10.0
_NAMED = 3
_SERVING_SECONDS = 10.0
"""An sshd that ends sooner has served nobody, although its pod was Ready for a moment."""
_IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_NOT_FOUND_EXIT_CODE = 127
_START_REASONS = frozenset({"StartError", "ContainerCannotRun"})
_INVALID_CODES = frozenset({400, 413, 422})
_FORBIDDEN_CODE = 403
_GANG_KINDS = frozenset({"PodGroup", "Workload"})
_CREATE_FAILED = {"Pod": "worker pod created failed: ", "Job": "launcher pod created failed: "}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a job: `reason` is one of the constants above, `message` a sentence for users."""

    reason: str
    message: str


class ResourceExistsError(Exception):
    """An object with the name of a child exists and does not belong to the job."""

    def __init__(self, kind: str, name: str) -> None:
        """Say which object is in the way."""
        super().__init__(f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob')


class SecretLostError(Exception):
    """The SSH Secret is gone while pods run with its key; new pods with another key could not reach them."""

    def __init__(self, name: str, holders: Sequence[str]) -> None:
        """Say what is gone, which pods hold its key, and what to do."""
        held = ", ".join(holders[:_NAMED]) + (f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else "")
        super().__init__(
            f"Secret {name} is gone, and new pods cannot start without it; {held} still run with its key: "
            "suspend and resume the job, which makes another, or delete it"
        )


class GangApiMissingError(Exception):
    """Gang scheduling is on, but the API server does not serve its objects; the message says what to do."""

    def __init__(self, kind: str, message: str) -> None:
        """Say of which kind the objects are, and what to do."""
        super().__init__(message)
        self.kind = kind


_REASONS: Mapping[type[Exception], str] = {
    ResourceExistsError: RESOURCE_EXISTS,
    SecretLostError: SECRET_LOST,
    GangApiMissingError: GANG_API_MISSING,
}


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A failed write: the kind of the object, the error, and whether it was a create."""

    kind: str
    error: Exception
    is_create: bool = True


def find_problem(observed: Observed, failed: Sequence[FailedWrite]) -> Problem | None:
    """Return the most important problem that a user has to solve; None if there is none."""
    found = (*map(refusal, failed), *_pod_problems(observed))
    return next((problem for problem in found if problem is not None), None)


def ended_worker_problem(job: MPIJob, observed: Observed) -> Problem | None:
    """Return the problem of a launcher that waits for ever: one of its workers has ended, and is not replaced."""
    if job.is_suspended or job.launcher_creation_policy != c.WAIT_FOR_WORKERS_READY or not observed.is_launcher_suspended:
        return None
    workers = filter(None, map(observed.workers.get, names.worker_names(job)))
    ended = [_name(pod) for pod in workers if pods.is_finished(pod) and not is_terminating(pod)]
    message = "has ended, and the launcher waits until it is Ready: look at its log, then delete the pod, and another is made"
    return Problem(WORKER_ENDED, f"worker {ended[0]} {message}") if ended else None


def refusal(failed: FailedWrite) -> Problem | None:
    """Return the problem behind a failed write; None if a retry should succeed.

    No connection, a conflict, a busy server and a terminating namespace are not problems of the job.
    """
    error = failed.error
    if (reason := _REASONS.get(type(error))) is not None:
        return Problem(reason, str(error))
    if not isinstance(error, StatusError) or error.is_terminating_namespace:
        return None
    if error.is_not_found and failed.is_create and failed.kind in _GANG_KINDS:
        return Problem(GANG_API_MISSING, f"no {failed.kind} can be made: {error.status_message}")
    message = (_CREATE_FAILED.get(failed.kind, "") if failed.is_create else "") + error.status_message
    if error.code == _FORBIDDEN_CODE:
        return Problem(QUOTA_EXCEEDED if "exceeded quota" in message else FORBIDDEN, message)
    return Problem(VALIDATION_ERROR, message) if error.code in _INVALID_CODES else None


@dataclass(frozen=True, slots=True)
class _Series:
    """Consecutive syncs in which the same write failed with the same error: which, how many, and since when."""

    what: tuple[str, object]
    syncs: int
    since: float


class PersistentFailures:
    """Tracks for how long retries have failed that should succeed: a webhook may be down for days."""

    def __init__(self) -> None:
        """Start without failures."""
        self._series: dict[Key, _Series] = {}

    def problem(self, job: Key, failed: Sequence[FailedWrite], now_seconds: float) -> Problem | None:
        """Record the failed writes of a sync; return a problem once the same write has failed for several syncs and seconds.

        Args:
            job: Whose sync it was.
            failed: Its failed writes.
            now_seconds: The time, on a clock that never goes back.
        """
        write = next((write for write in failed if _should_pass(write)), None)
        if write is None:
            self.forget(job)
            return None
        what = write.kind, write.error.code if isinstance(write.error, StatusError) else type(write.error)
        series = self._series.get(job)
        if series is None or series.what != what:
            series = _Series(what, 0, now_seconds)
        series = self._series[job] = replace(series, syncs=series.syncs + 1)
        if series.syncs < _PERSISTENT_SYNCS or now_seconds - series.since < _PERSISTENT_SECONDS:
            return None
        words = write.error.status_message if isinstance(write.error, StatusError) else ""
        prefix = _CREATE_FAILED.get(write.kind) if write.is_create else None
        return Problem(WRITE_FAILED, f"{prefix or f'{write.kind}: '}{words or write.error}")

    def forget(self, job: Key) -> None:
        """Forget a job."""
        self._series.pop(job, None)


def _should_pass(failed: FailedWrite) -> bool:
    """Return whether a retry may succeed, because the server or the network was at fault."""
    error = failed.error
    if refusal(failed) is not None or not isinstance(error, KubeError):
        return False
    return not isinstance(error, StatusError) or not (error.code == HTTPStatus.CONFLICT or error.is_terminating_namespace)


def _pod_problems(observed: Observed) -> Iterator[Problem | None]:
    workers = [pod for name, pod in observed.workers.items() if name not in observed.ready_workers]
    for pod in (*workers, *observed.launcher_pods):
        yield _unschedulable(pod)
        yield from (_image_pull(pod, status) for status in pods.container_statuses(pod))
    is_awaited = observed.published_addresses == ""
    for pod in workers:
        yield from (_no_sshd(pod, status, is_awaited=is_awaited) for status in pod.get("status", {}).get("containerStatuses") or ())


def _unschedulable(pod: Object) -> Problem | None:
    row = pods.condition(pod, "PodScheduled")
    if row is None or row.get("status") != "False" or row.get("reason") != "Unschedulable":
        return None
    return Problem(UNSCHEDULABLE, f"pod {_name(pod)} cannot be scheduled: {row.get('message', '')}")


def _image_pull(pod: Object, status: Mapping[str, Any]) -> Problem | None:
    reason = pods.waiting(status).get("reason")
    if reason not in _IMAGE_REASONS:
        return None
    return Problem(IMAGE_PULL, f"pod {_name(pod)} cannot get image {status.get('image', '')}: {reason}")


def _no_sshd(pod: Object, status: Mapping[str, Any], *, is_awaited: bool) -> Problem | None:
    """Recognise a worker whose command does not exist (the default is `/usr/sbin/sshd -De`), or ends before it was needed."""
    for ended in (pods.terminated(status), pods.last_terminated(status)):
        if ended.get("exitCode") == _NOT_FOUND_EXIT_CODE or ended.get("reason") in _START_REASONS:
            what = f"container {status.get('name', '')} of worker {_name(pod)} did not start"
            return Problem(NO_SSHD, f"{what} (exit code {ended.get('exitCode')}): has image {status.get('image', '')} an sshd?")
    is_early = is_awaited or _ran_seconds(pods.terminated(status)) < _SERVING_SECONDS
    if is_early and pods.phase(pod) == "Failed" and not pods.is_evicted(pod) and (code := pods.terminated(status).get("exitCode")):
        what = f"container {status.get('name', '')} of worker {_name(pod)} ended (exit code {code}) before mpirun could reach it"
        return Problem(NO_SSHD, f"{what}: its log says why; sshd needs a host key and may need another port")
    return None


def _ran_seconds(ended: Mapping[str, Any]) -> float:
    started, finished = ended.get("startedAt"), ended.get("finishedAt")
    return (parse_time(finished) - parse_time(started)).total_seconds() if started and finished else float("inf")


def _name(pod: Object) -> str:
    return pod["metadata"].get("name", "")
