"""What a watch event changed, as far as it matters for when a job is synced."""

from enum import Enum, auto
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.controller.observe import pods
from mpiop.informers.store import Notification
from mpiop.kube.objects import Object, annotations_of, is_terminating, uid_of
from mpiop.kube.resources import JOBS, PODS


class WorkerChange(Enum):
    """What happened to a worker."""

    READY = auto()
    STARTING = auto()
    """It was created, scheduled or began to run, and nothing is wrong with it."""
    TERMINATING = auto()
    ENDED = auto()
    """Its containers have ended, or it is gone before anybody saw that."""
    GONE = auto()
    """It had ended, and is gone now."""
    OTHER = auto()


LOSSES: Final = {WorkerChange.TERMINATING, WorkerChange.ENDED, WorkerChange.GONE}


def worker_change(old: Object | None, new: Object | None) -> WorkerChange:
    """Return what happened to a worker between `old` and `new`; None means that it did not or does not exist."""
    had_ended = old is not None and pods.is_finished(old)
    if new is None:
        return WorkerChange.GONE if had_ended else WorkerChange.ENDED
    if pods.is_finished(new):
        return WorkerChange.OTHER if had_ended else WorkerChange.ENDED
    if is_terminating(new):
        return WorkerChange.OTHER if old is not None and is_terminating(old) else WorkerChange.TERMINATING
    if pods.is_ready(new):
        return WorkerChange.OTHER if old is not None and pods.is_ready(old) else WorkerChange.READY
    return WorkerChange.STARTING if pods.is_starting(new) else WorkerChange.OTHER


def is_nothing_new(notification: Notification) -> bool:
    """Return whether only fields changed that the projection leaves out, such as a Job's count of ready pods."""
    old, new = notification.old, notification.new
    return old is not None and new is not None and _without_version(old) == _without_version(new)


def is_by_user(notification: Notification) -> bool:
    """Return whether an MPIJob was created, deleted, or changed in more than its status."""
    old, new = notification.old, notification.new
    obj = new or old
    is_mpijob = obj is not None and obj.get("kind") == c.KIND
    return is_mpijob and (old is None or new is None or _without_status(old) != _without_status(new))


def _without_version(obj: Object) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


def _without_status(mpijob: Object) -> tuple[object, ...]:
    """Return the parts of an MPIJob that decide what to do next: what users write, and whether its end is recorded."""
    metadata, status = mpijob["metadata"], mpijob.get("status") or {}
    return (
        uid_of(mpijob),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        annotations_of(mpijob),
        "completionTime" in status,
    )


def is_launcher_success(notification: Notification) -> bool:
    """Return whether a launcher has succeeded and its Job is not Complete yet: that follows at once, and the operator acts upon it."""
    obj = notification.new
    if obj is None:
        return False
    if obj.get("kind") == JOBS.kind:
        return pods.condition_status(obj, "SuccessCriteriaMet") == "True" and pods.job_outcome(obj) is None
    return pods.role(obj) == c.ROLE_LAUNCHER and pods.phase(obj) == "Succeeded"


def is_launcher_start(notification: Notification) -> bool:
    """Return whether the launcher's Job or Pod was created, or is starting, and nothing is wrong with it."""
    old, new = notification.old, notification.new
    if new is None or (old is not None and not has_same_metadata(old, new)):
        return False
    if new.get("kind") == JOBS.kind:
        return all(_is_new_job(job) for job in (old, new) if job is not None)
    return pods.role(new) == c.ROLE_LAUNCHER and all(pods.is_starting(pod) for pod in (old, new) if pod is not None)


def _is_new_job(job: Object) -> bool:
    """Return whether a Job is not suspended, and none of its Pods has ended."""
    status = job.get("status") or {}
    has_ended = any(status.get(field) for field in ("conditions", "failed", "succeeded"))
    return not (has_ended or pods.is_suspended(job) or is_terminating(job))


def begins_to_run(old: Object | None, new: Object | None) -> bool:
    """Return whether a Pod runs now and did not before."""
    return new is not None and pods.is_running(new) and (old is None or not pods.is_running(old))


def has_same_conditions(old: Object, new: Object) -> bool:
    """Return whether the same conditions of an object are True as before; their messages may count Pods."""
    return _conditions(old) == _conditions(new)


def has_same_metadata(old: Object, new: Object) -> bool:
    """Return whether labels, annotations and all other metadata of an object but its version are as before."""
    return {**old["metadata"], "resourceVersion": ""} == {**new["metadata"], "resourceVersion": ""}


def _conditions(obj: Object) -> object:
    rows = (obj.get("status") or {}).get("conditions") or ()
    return {(row.get("type"), row.get("status")) for row in rows}


def is_worker(obj: Object) -> bool:
    """Return whether an object is a Pod of a worker."""
    return obj.get("kind") == PODS.kind and pods.role(obj) == c.ROLE_WORKER
