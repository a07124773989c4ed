"""The controller: watch events become keys, keys become syncs, failing syncs become retries."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

import structlog

from mpiop.api import constants as c
from mpiop.controller import pods
from mpiop.controller.apply import PredecessorError
from mpiop.controller.rest import Rest
from mpiop.informers.store import Notification
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, Object, controller_id, controller_of, key_of, labels_of, uid_of
from mpiop.kube.resources import JOBS
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.workqueue import Lane, WorkQueue, work

STOP_GRACE_SECONDS: Final = 1.0

Sync = Callable[[Key], Awaitable[float | None]]
"""Syncs the job of a key and returns the seconds after which to look again, or None."""


class Controller:
    """Runs syncs for as long as it leads.

    Standing by, its handlers queue nothing: a queue that nobody empties would grow. `run` begins with all jobs that there are.
    """

    def __init__(self, sync: Sync, queue: WorkQueue[Key], jobs: Callable[[], Collection[Key]], metrics: Metrics, rest: Rest) -> None:
        """Prepare to `sync` the keys of `queue`, but none that rests; `jobs` returns those of all jobs in the cache."""
        self._sync_job = sync
        self._queue = queue
        self._jobs = jobs
        self._metrics = metrics
        self._rest = rest
        self._log = structlog.get_logger(__name__)
        self._is_running = False

    def handle(self, notification: Notification) -> None:
        """Queue the job that a change of itself or of one of its children concerns (a handler for every informer).

        What somebody waits for goes first, what has not begun or is to be cleaned up in the usual order (`Lane`).
        """
        if not self._is_running or _is_nothing_new(notification):
            return
        is_pressing_news = self._is_pressing(notification)
        for obj in (notification.old, notification.new):
            if obj is not None and (key := job_of(obj)) is not None:
                is_pressing = is_pressing_news or self._rest.was_missed(key)
                lane = Lane.USUAL if not _is_news(obj) else Lane.PRESSING if is_pressing else Lane.NEWS
                self._ask(key, lane, is_pressing=is_pressing)

    def _is_pressing(self, notification: Notification) -> bool:
        old, new = notification.old, notification.new
        if _pressing_part(old) != _pressing_part(new):
            return True
        key = job_of(new) if new is not None and _is_ready_worker(new) and not (old is not None and _is_ready_worker(old)) else None
        return key is not None and self._rest.note_ready(key)

    def _ask(self, key: Key, lane: Lane, *, is_pressing: bool) -> None:
        if wait_seconds := self._rest.remaining_seconds(key, is_pressing=is_pressing):
            self._queue.add_after(key, wait_seconds, lane)
        else:
            self._queue.add(key, lane)

    async def run(self, workers: int) -> None:
        """Sync, `workers` jobs at a time, until cancelled.

        A sync that is under way then may end within the grace period, so that as few writes as possible have an unknown outcome.
        """
        self._is_running = True
        for key in self._jobs():
            self._queue.add(key)
        tasks = [asyncio.create_task(work(self._queue, self._sync, self._failed, self._lane), name=f"worker {n}") for n in range(workers)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._is_running = False
            self._queue.shut_down()
            _, late = await asyncio.wait(tasks, timeout=STOP_GRACE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _lane(self, key: Key) -> Lane:
        """Return the lane of a look that the last one asked for."""
        return Lane.USUAL if self._rest.has_ended(key) else Lane.NEWS

    async def _sync(self, key: Key) -> float | None:
        if not self._is_running:
            return None
        started = time.perf_counter()
        try:
            return await self._sync_job(key)
        finally:
            self._metrics.sync_duration_seconds.observe(time.perf_counter() - started)

    def _failed(self, key: Key, error: Exception) -> None:
        self._metrics.sync_errors.inc()
        retries = self._queue.retries(key)
        if is_expected(error):
            self._log.info("sync to be repeated", job=str(key), retries=retries, error=_line(error))
        else:
            self._log.error("sync failed", job=str(key), retries=retries, error=_line(error), exc_info=error)


def _is_news(obj: Object) -> bool:
    """Tell whether `obj` is about a job that has begun and not ended: a child, or the MPIJob whose change the next look may wait for."""
    status: Mapping[str, Any] = obj.get("status") or {}
    return obj.get("kind") != c.KIND or (bool(status.get("conditions")) and not _has_ended(obj))


def _has_ended(mpijob: Object) -> bool:
    return "completionTime" in (mpijob.get("status") or {})


def _is_nothing_new(notification: Notification) -> bool:
    """Tell whether nothing that we read of the object changed: a Job tells how many of its pods are ready, a Pod since when it is."""
    old, new = notification.old, notification.new
    return old is not None and new is not None and _without_version(old) == _without_version(new)


def _without_version(obj: Object) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


def _pressing_part(obj: Object | None) -> object:
    """Return what of `obj` is pressing news when it changes: the user's word, how the launcher gets on, an eviction.

    Of the workers, who may be thousands, and of what we made nothing else is.
    """
    if obj is None:
        return None
    if obj.get("kind") == c.KIND:
        return uid_of(obj), obj["metadata"].get("generation"), _has_ended(obj)
    if obj.get("kind") == JOBS.kind:
        return pods.job_outcome(obj)
    if labels_of(obj).get(c.LABEL_JOB_ROLE) == c.ROLE_LAUNCHER:
        return pods.phase(obj), pods.has_begun(obj)
    return pods.is_evicted(obj) or None


def _is_ready_worker(obj: Object) -> bool:
    return labels_of(obj).get(c.LABEL_JOB_ROLE) == c.ROLE_WORKER and pods.is_ready(obj)


def job_of(obj: Object) -> Key | None:
    """Return the key of the job that `obj` is, or that its controller (or, for the launcher's pod, its label) names."""
    if obj.get("kind") == c.KIND:
        return key_of(obj)
    reference, controller = controller_of(obj), controller_id(obj)
    is_child = controller is not None and (controller.group, controller.kind) == (c.GROUP, c.KIND)
    name = reference["name"] if reference is not None and is_child else labels_of(obj).get(c.LABEL_JOB_NAME)
    return None if name is None else Key(obj["metadata"].get("namespace", ""), name)


def is_expected(error: Exception) -> bool:
    """Tell whether the failure is the world's (a refused or lost request, a lost lease) and not a defect of ours."""
    return all(isinstance(cause, KubeError | PredecessorError | LeaseLostError) for cause in _causes(error))


def _causes(error: Exception) -> Sequence[Exception]:
    return cast("ExceptionGroup[Exception]", error).exceptions if isinstance(error, ExceptionGroup) else (error,)


def _line(error: Exception) -> str:
    return "; ".join(map(str, _causes(error)))
