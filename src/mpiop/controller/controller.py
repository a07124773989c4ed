"""The controller: watch events become keys, keys become syncs, failing syncs become retries."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, cast

import structlog

from mpiop.api import constants as c
from mpiop.api.names import worker_index
from mpiop.controller.batches import BATCH_SECONDS, Batches, worker_change
from mpiop.controller.errors import WriteError
from mpiop.controller.observe.owners import job_of, may_belong_to
from mpiop.informers.store import Notification
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, Unreadable, annotations_of, key_of, labels_of, uid_of
from mpiop.kube.resources import PODS
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.workqueue import WorkQueue, work

STOP_GRACE_SECONDS: Final = 1.0
_EXPECTED: Final = (KubeError, LeaseLostError, WriteError)

Sync = Callable[[Key], Awaitable[float | None]]
"""Syncs the job of a key and returns the seconds after which to sync it again, or None; raises NotReady to be called later."""


class Controller:
    """Runs syncs while this replica leads.

    On a standby the handlers queue nothing, because nobody would empty the queue. `run` starts by queueing every job in the cache.
    """

    def __init__(self, sync: Sync, queue: WorkQueue[Key], jobs: Callable[[], Collection[Key]], metrics: Metrics, batches: Batches) -> None:
        """Sync the keys of `queue`, delayed as `batches` says; `jobs` returns the keys of all jobs in the cache."""
        self._sync_job = sync
        self._batches = batches
        self._queue = queue
        self._jobs = jobs
        self._metrics = metrics
        self._log = structlog.get_logger(__name__)
        self._is_running = False
        self._in_ending_namespaces: set[Key] = set()

    def handle(self, notification: Notification) -> None:
        """Queue the jobs affected by a change of an MPIJob or of one of its children (the handler of every informer).

        In a namespace that is being deleted, one child after another disappears, and none can be made again: only changes by users count.
        """
        if not self._is_running:
            return
        keys = {key for obj in (notification.old, notification.new) if obj is not None and (key := job_of(obj)) is not None}
        if notification.unreadable is not None:
            keys.update(self._jobs_of(notification.unreadable))
        for key in keys:
            if key in self._in_ending_namespaces and not _is_by_user(notification):
                continue
            if notification.unreadable is not None or self._batches.is_postponed(key):
                self._queue.add(key)
            elif not _is_nothing_new(notification):
                self._queue.add_after(key, self._delay_seconds(key, notification))

    def _jobs_of(self, unreadable: Unreadable) -> Collection[Key]:
        """Return the jobs that an object belongs to which cannot be decoded, or could not before."""
        return [key for key in self._jobs() if may_belong_to(key, unreadable)]

    def _delay_seconds(self, key: Key, notification: Notification) -> float:
        """Return the delay of the sync: changes of workers, and echoes of our own writes, come in bursts and are batched."""
        old, new = notification.old, notification.new
        obj = new or old
        if obj is not None and _is_worker(obj):
            index = worker_index(key.name, key_of(obj).name)
            return self._batches.delay_seconds(key, worker_change(old, new), index)
        return BATCH_SECONDS if obj is not None and obj.get("kind") == c.KIND and not _is_by_user(notification) else 0.0

    async def run(self, workers: int) -> None:
        """Sync up to `workers` jobs at a time until cancelled.

        Running syncs then get a grace period, so that few writes end with an unknown outcome.
        """
        self._is_running = True
        for key in self._jobs():
            self._queue.add(key)
        tasks = [asyncio.create_task(work(self._queue, self._sync, self._failed), name=f"worker {n}") for n in range(workers)]
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

    async def _sync(self, key: Key) -> float | None:
        if not self._is_running:
            return None
        started = time.perf_counter()
        try:
            again_in_seconds = await self._sync_job(key)
        finally:
            self._metrics.sync_duration_seconds.observe(time.perf_counter() - started)
        self._in_ending_namespaces.discard(key)
        return again_in_seconds

    def _failed(self, key: Key, error: Exception) -> None:
        self._metrics.sync_errors.inc()
        if any(isinstance(cause, StatusError) and cause.is_terminating_namespace for cause in _causes(error)):
            self._in_ending_namespaces.add(key)
        retries = self._queue.retries(key)
        if isinstance(error, StatusError) and error.is_forbidden and not error.is_terminating_namespace:
            # Not a child's write, whose refusal the status shows: the status itself was refused, so only the log can tell.
            self._log.warning("the operator lacks a right, will retry", job=str(key), retries=retries, error=_line(error))
        elif is_expected(error):
            self._log.info("sync failed, will retry", job=str(key), retries=retries, error=_line(error))
        else:
            self._log.error("sync failed unexpectedly", job=str(key), retries=retries, error=_line(error), exc_info=error)


def _is_nothing_new(notification: Notification) -> bool:
    """Return whether only fields changed that the projection leaves out, such as a Job's count of ready pods."""
    old, new = notification.old, notification.new
    return old is not None and new is not None and _without_version(old) == _without_version(new)


def _is_by_user(notification: Notification) -> bool:
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


def _is_worker(obj: Object) -> bool:
    return obj.get("kind") == PODS.kind and labels_of(obj).get(c.LABEL_JOB_ROLE) == c.ROLE_WORKER


def is_expected(error: Exception) -> bool:
    """Return whether the cause lies outside (a refused or lost request, a lost lease, a name conflict) and is not a bug of ours."""
    return all(isinstance(cause, _EXPECTED) for cause in _causes(error))


def _causes(error: Exception) -> Sequence[Exception]:
    return cast("ExceptionGroup[Exception]", error).exceptions if isinstance(error, ExceptionGroup) else (error,)


def _line(error: Exception) -> str:
    return "; ".join(map(str, _causes(error)))
