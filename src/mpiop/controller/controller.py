"""The controller: watch events become keys, keys become syncs, failing syncs become retries.

A handler only queues the key of the job, at once or after the delay of `batches`. Several syncs run at a time, but never two of one job.
A sync reads all that it needs from the caches, so the number and order of events do not matter.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, cast

import structlog

from mpiop.controller.batches import Batches
from mpiop.controller.changes import is_by_user
from mpiop.controller.errors import WriteError
from mpiop.controller.observe.owners import job_of, may_belong_to
from mpiop.informers.store import Notification
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Unreadable, key_of
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
        """Sync the keys of `queue`, with the delays of `batches`; `jobs` returns the keys of all jobs in the cache."""
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
            if key in self._in_ending_namespaces and not is_by_user(notification):
                continue
            if notification.unreadable is not None or self._batches.is_postponed(key):
                self._queue.add(key)
            elif (seconds := self._batches.delay_seconds(key, notification)) is not None:
                self._queue.add_after(key, seconds)

    def _jobs_of(self, unreadable: Unreadable) -> Collection[Key]:
        """Return the jobs that an object belongs to which cannot be decoded, or could not before."""
        namespace = key_of(unreadable.object).namespace
        return [key for key in self._jobs() if key.namespace == namespace and may_belong_to(key, unreadable)]

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
            # The status shows refused writes of children. Here the status itself was refused, so only the log can report it.
            self._log.warning("the operator lacks a right, will retry", job=str(key), retries=retries, error=_line(error))
        elif is_expected(error):
            self._log.info("sync failed, will retry", job=str(key), retries=retries, error=_line(error))
        else:
            self._log.error("sync failed unexpectedly", job=str(key), retries=retries, error=_line(error), exc_info=error)


def is_expected(error: Exception) -> bool:
    """Return whether the cause lies outside (a refused or lost request, a lost lease, a name conflict) and is not a bug of ours."""
    return all(isinstance(cause, _EXPECTED) for cause in _causes(error))


def _causes(error: Exception) -> Sequence[Exception]:
    return cast("ExceptionGroup[Exception]", error).exceptions if isinstance(error, ExceptionGroup) else (error,)


def _line(error: Exception) -> str:
    return "; ".join(map(str, _causes(error)))
