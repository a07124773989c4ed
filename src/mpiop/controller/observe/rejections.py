"""Workers that a kubelet rejected: they have failed before any container started, so nothing is lost if they are created again.

A Pod whose node has no room would be rejected over and over, for example one with a `nodeName`. So each new Pod of a name notes how many in
a row were rejected before it, and waits twice as long as the last one.
"""

from datetime import datetime, timedelta
from typing import Final

from mpiop.backoff import REJECTED_WORKER
from mpiop.clock import format_time
from mpiop.controller import causes, names
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.kube.objects import Object, annotations_of, creation_time, is_terminating
from mpiop.kube.text import truncated, whole_number

_OTHER_ENDS: Final = frozenset({"Evicted", "Preempting", "DeadlineExceeded", "Terminated", "Shutdown"})
"""Reasons for which the kubelet ends a Pod that it has accepted, or, for want of memory or disk, has not: an eviction ends the job.

Source: kubernetes pkg/kubelet (eviction, preemption, active_deadline, nodeshutdown).
"""
_WORDS_BYTES: Final = 400
"""Of a kubelet's message: what follows it must stay whole."""


def is_rejected(worker: Object) -> bool:
    """Return whether a kubelet rejected the worker: it has failed for a reason of its own, and no container has a status."""
    if pods.phase(worker) != "Failed":
        return False
    reason = worker.get("status", {}).get("reason")
    is_other = not reason or reason in _OTHER_ENDS or pods.disruption(worker) is not None
    return not is_other and not any(pods.container_statuses(worker))


def rejections(worker: Object) -> int:
    """Return how many Pods of the worker's name were rejected in a row, this one included."""
    return _noted(worker) + is_rejected(worker)


def rejections_before(observed: Observed, name: str) -> int:
    """Return how many Pods of that name were rejected in a row before the one that is created next."""
    last = observed.workers.get(name) or observed.deleted_workers.get(name)
    return rejections(last) if last is not None and is_rejected(last) else 0


def goes_at_once(worker: Object) -> bool:
    """Return whether the worker is gone as soon as it is deleted, so that the next Pod of its name can be created in the same sync.

    Then the count of rejections cannot get lost in between.
    """
    return is_rejected(worker) and not is_terminating(worker) and not worker["metadata"].get("finalizers")


def least_age_seconds(worker: Object) -> float:
    """Return the age at which a worker that has ended may be replaced: 10 s; 20 s, 40 s … 5 minutes if others were rejected before it."""
    return REJECTED_WORKER.delay_seconds(_noted(worker) if is_rejected(worker) else 0)


def time_of_next(worker: Object) -> datetime | None:
    """Return when a worker that was rejected is created again; None if it has no creationTimestamp."""
    created = creation_time(worker)
    return None if created is None else created + timedelta(seconds=least_age_seconds(worker))


def rejected_problem(worker: Object) -> Problem:
    """Return the problem of a worker that its kubelet rejected, in the kubelet's words, and when the next Pod is created."""
    status, count, due = worker.get("status", {}), rejections(worker), time_of_next(worker)
    what = f"worker {worker['metadata'].get('name', '')} was rejected"
    what += f" by the kubelet of node {pods.node(worker)}" if pods.node(worker) else ""
    what += f", {count} times in a row" if count > 1 else ""
    next_pod = f". The next Pod is created at {format_time(due)}" if due is not None else ""
    words = truncated(str(status.get("message") or "").rstrip(". "), _WORDS_BYTES)
    return problem(causes.WORKER_REJECTED, f"{what}: {status['reason']}: {words}{next_pod}")


def is_awaited_again(observed: Observed, name: str) -> bool:
    """Return whether the last Pod of that name was rejected, and no kubelet has accepted the next one yet."""
    worker = observed.workers.get(name)
    if worker is None or is_rejected(worker):
        return bool(rejections_before(observed, name))
    return bool(_noted(worker)) and pods.phase(worker) == "Pending" and not any(pods.container_statuses(worker))


def _noted(worker: Object) -> int:
    return whole_number(annotations_of(worker).get(names.ANNOTATION_REJECTIONS, "")) or 0
