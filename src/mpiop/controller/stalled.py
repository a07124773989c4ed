"""Why a job does not get on: refused writes and what its pods say, as one reason and one sentence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpiop.controller import pods
from mpiop.controller.observed import Observed
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Object

VALIDATION_ERROR = "ValidationError"
RESOURCE_EXISTS = "ResourceExists"
QUOTA_EXCEEDED = "QuotaExceeded"
FORBIDDEN = "Forbidden"
UNSCHEDULABLE = "Unschedulable"
IMAGE_PULL = "ImagePull"
NO_SSHD = "NoSshd"

_IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_NOT_FOUND_EXIT_CODE = 127
_START_REASONS = frozenset({"StartError", "ContainerCannotRun"})
_INVALID_CODES = frozenset({400, 413, 422})
_FORBIDDEN_CODE = 403
_CREATE_FAILED = {"Pod": "worker pod created failed: ", "Job": "launcher pod created failed: "}


@dataclass(frozen=True, slots=True)
class Problem:
    """What stands in a job's way: `reason` is one of the constants above, `message` a sentence for people."""

    reason: str
    message: str


class ResourceExistsError(Exception):
    """An object of a wanted name exists and is not the job's."""

    def __init__(self, kind: str, name: str) -> None:
        """Say which object is in the way."""
        super().__init__(f'Resource "{name}" of Kind "{kind}" already exists and is not managed by MPIJob')


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A write that did not succeed: of which kind the object was, why, and whether it was to be made."""

    kind: str
    error: Exception
    is_create: bool = True


def find_problem(observed: Observed, failed: Sequence[FailedWrite]) -> Problem | None:
    """Return what most needs somebody's attention; None when all that is missing is time."""
    found = (*map(refusal, failed), *_pod_problems(observed))
    return next((problem for problem in found if problem is not None), None)


def refusal(failed: FailedWrite) -> Problem | None:
    """Return the problem that a failed write points at, or None when it passes by itself.

    No connection, a conflict, a busy server and a namespace on its way out pass by themselves.
    """
    error = failed.error
    if isinstance(error, ResourceExistsError):
        return Problem(RESOURCE_EXISTS, str(error))
    if not isinstance(error, StatusError) or error.is_terminating_namespace:
        return None
    message = (_CREATE_FAILED.get(failed.kind, "") if failed.is_create else "") + error.status_message
    if error.code == _FORBIDDEN_CODE:
        return Problem(QUOTA_EXCEEDED if "exceeded quota" in message else FORBIDDEN, message)
    return Problem(VALIDATION_ERROR, message) if error.code in _INVALID_CODES else None


def _pod_problems(observed: Observed) -> Iterator[Problem | None]:
    for pod in (*observed.workers.values(), *observed.launcher_pods):
        yield _unschedulable(pod)
        yield from (_image_pull(pod, status) for status in pods.container_statuses(pod))
    for pod in observed.workers.values():
        yield from (_no_sshd(pod, status) for status in pod.get("status", {}).get("containerStatuses") or ())


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


def _no_sshd(pod: Object, status: Mapping[str, Any]) -> Problem | None:
    """Recognise the image whose start command is not there; the default one is `/usr/sbin/sshd -De`."""
    for ended in (pods.terminated(status), pods.last_terminated(status)):
        if ended.get("exitCode") == _NOT_FOUND_EXIT_CODE or ended.get("reason") in _START_REASONS:
            what = f"container {status.get('name', '')} of worker {_name(pod)} did not start"
            return Problem(NO_SSHD, f"{what} (exit code {ended.get('exitCode')}): has image {status.get('image', '')} an sshd?")
    return None


def _name(pod: Object) -> str:
    return pod["metadata"].get("name", "")
