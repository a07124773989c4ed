"""The work queue: an ordered set of keys, none of which is processed by two workers at the same time.

A key has up to three states. *Dirty*: it was added and needs processing. *Queued*: it is dirty and waits for a worker. *Processing*: a
worker has it. A key that becomes dirty while it is processed is queued when the worker is done: no change is lost, and any number of
changes costs one run. Source: client-go util/workqueue.

Unlike there, keys are handed out round robin by namespace, and no namespace can occupy all workers (see `Shares`).

All methods but `get` are synchronous and must be called on one event loop. Times are the loop's.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from mpiop.shares import Shares
from mpiop.workqueue.measures import NoQueueMetrics, QueueMetrics
from mpiop.workqueue.rate_limiters import RateLimiter, retry_limiter
from mpiop.workqueue.waiting import WaitingKeys

KeyT = TypeVar("KeyT", bound=Hashable)


class ShutDown(Exception):  # noqa: N818 - a signal, not an error
    """The queue is shut down and empty."""


class WorkQueue(Generic[KeyT]):
    """A queue of distinct keys, with delayed and rate-limited adds."""

    def __init__(
        self,
        limiter: RateLimiter[KeyT] | None = None,
        metrics: QueueMetrics | None = None,
        *,
        namespace_of: Callable[[KeyT], Hashable] = lambda _key: "",
        limit: float = math.inf,
    ) -> None:
        """Create an empty queue.

        Args:
            limiter: Delays of `add_rate_limited`; by default `retry_limiter()`.
            metrics: Receives the queue's metrics; by default they are discarded.
            namespace_of: Returns the namespace of a key; by default all keys have the same.
            limit: Keys that are processed at a time, besides one each of up to `RESERVED` namespaces with no other.
        """
        self._limiter: RateLimiter[KeyT] = limiter or retry_limiter()
        self._metrics: QueueMetrics = metrics or NoQueueMetrics()
        self._queued = WaitingKeys[KeyT](namespace_of, Shares(limit))
        self._dirty_since: dict[KeyT, float] = {}
        self._processing_since: dict[KeyT, float] = {}
        self._timers: dict[KeyT, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_shut_down = False

    def __len__(self) -> int:
        """Return the number of queued keys, without those being processed or delayed."""
        return len(self._queued)

    def add(self, key: KeyT) -> None:
        """Mark `key` as dirty, and queue it unless it is queued or being processed; ignored after a shutdown."""
        if self._is_shut_down or key in self._dirty_since:
            return
        self._metrics.added()
        self._dirty_since[key] = self._now()
        if key not in self._processing_since:
            self._enqueue(key)

    def add_after(self, key: KeyT, delay_seconds: float) -> None:
        """Add `key` after `delay_seconds`, at once if that is 0 or less; of two pending delays the earlier one wins."""
        if self._is_shut_down:
            return
        self._metrics.retried()
        if delay_seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_seconds
        pending = self._timers.get(key)
        if pending is not None:
            if pending.when() <= due:
                return
            pending.cancel()
        self._timers[key] = loop.call_at(due, self._fire, key)

    def add_rate_limited(self, key: KeyT) -> None:
        """Add `key` after the delay that the rate limiter sets."""
        if not self._is_shut_down:
            self.add_after(key, self._limiter.delay(key, self._now()))

    def forget(self, key: KeyT) -> None:
        """Reset the failures of `key` in the rate limiter; a queued or delayed key stays."""
        self._limiter.forget(key)

    def retries(self, key: KeyT) -> int:
        """Return the number of rate-limited adds of `key` since its last `forget`."""
        return self._limiter.retries(key)

    async def get(self) -> KeyT:
        """Wait for a key and mark it as being processed; the caller must call `done` with it, whatever happens.

        This drops a pending delay of the key, because the run takes its place.

        Raises:
            ShutDown: There is none and there will be none.
        """
        while not self._queued.has_next():
            if self._is_shut_down and not self._queued:
                raise ShutDown
            await self._wait_for_key()
        key = self._queued.take()
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        now = self._now()
        self._processing_since[key] = now
        self._metrics.depth(len(self._queued))
        self._metrics.waited(now - self._dirty_since.pop(key))
        return key

    def done(self, key: KeyT) -> None:
        """Mark `key` as processed; it is queued again if it was added meanwhile.

        Raises:
            ValueError: `key` is not being processed.
        """
        begun = self._processing_since.pop(key, None)
        if begun is None:
            raise ValueError(f"work queue: done({key!r}) without get(): call done() once for each key that get() returned")
        self._metrics.worked(self._now() - begun)
        self._queued.release(key)
        if key in self._dirty_since:
            self._enqueue(key)
        self._wake()

    def shut_down(self) -> None:
        """Ignore new keys and drop delayed ones; once the queue is empty, `get` raises `ShutDown`."""
        self._is_shut_down = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._wake()

    def unfinished_seconds(self) -> float:
        """Return the sum of the seconds for which keys have been processed so far; it grows if workers are stuck."""
        now = self._now()
        return sum(now - begun for begun in self._processing_since.values())

    def longest_running_seconds(self) -> float:
        """Return the seconds of the longest running processing; 0 if there is none."""
        return self._now() - min(self._processing_since.values()) if self._processing_since else 0.0

    def _enqueue(self, key: KeyT) -> None:
        self._queued.append(key)
        self._metrics.depth(len(self._queued))
        self._wake()

    def _fire(self, key: KeyT) -> None:
        del self._timers[key]
        self.add(key)

    def _wake(self) -> None:
        """Wake a worker if there is a key for it; wake all after a shutdown, because each may be the last."""
        while self._waiters and (self._is_shut_down or self._queued.has_next()):
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if not self._is_shut_down:
                    return

    async def _wait_for_key(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self._wake()  # this worker was woken, but is cancelled: another one takes the key
            raise

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
