"""The work queue: a set of keys with an order, and the promise that no key is worked on twice at the same time.

A key is in up to three places. *Dirty*: something about it changed and no worker has looked since. *Queued*: dirty and waiting for a
worker. *Processing*: in the hands of a worker. A key that becomes dirty while it is processed is queued when the worker is done with it:
nothing is lost, nothing is done twice at once, and any number of changes costs one run.

Everything but `get` and `drain` is synchronous and belongs to one event loop. Times are the loop's.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from mpiop.workqueue.measures import NoQueueMetrics, QueueMetrics
from mpiop.workqueue.rate_limiters import RateLimiter, retry_limiter

KeyT = TypeVar("KeyT", bound=Hashable)


class ShutDown(Exception):  # noqa: N818 - no error: the order to a worker to go home
    """The queue is shut down and has nothing more to hand out."""


class WorkQueue(Generic[KeyT]):
    """A queue of distinct keys, first in, first out, with delays and back-off."""

    def __init__(self, limiter: RateLimiter[KeyT] | None = None, metrics: QueueMetrics | None = None) -> None:
        """Make an empty queue.

        Args:
            limiter: Delays of `add_rate_limited`; by default `retry_limiter()`.
            metrics: Where measurements go; by default nowhere.
        """
        self._limiter: RateLimiter[KeyT] = limiter or retry_limiter()
        self._metrics: QueueMetrics = metrics or NoQueueMetrics()
        self._queued: deque[KeyT] = deque()
        self._dirty_since: dict[KeyT, float] = {}
        self._processing_since: dict[KeyT, float] = {}
        self._timers: dict[KeyT, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._drained: asyncio.Future[None] | None = None
        self._is_shut_down = False

    def __len__(self) -> int:
        """Return how many keys wait for a worker; neither those in work nor those delayed."""
        return len(self._queued)

    @property
    def is_shut_down(self) -> bool:
        """Return whether new keys are refused."""
        return self._is_shut_down

    def add(self, key: KeyT) -> None:
        """Ask for a run of `key`, unless one is already asked for or the queue is shut down."""
        if self._is_shut_down or key in self._dirty_since:
            return
        self._metrics.added()
        self._dirty_since[key] = self._now()
        if key not in self._processing_since:
            self._enqueue(key)

    def add_after(self, key: KeyT, delay_seconds: float) -> None:
        """Ask for a run of `key` in `delay_seconds`, or at once when that is not above 0; of two delays the earlier one counts."""
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
        """Ask for a run of `key` after the delay that its failures so far, and those of all, have earned."""
        if not self._is_shut_down:
            self.add_after(key, self._limiter.delay(key, self._now()))

    def forget(self, key: KeyT) -> None:
        """Let the next failure of `key` be its first; what is queued or delayed stays."""
        self._limiter.forget(key)

    def retries(self, key: KeyT) -> int:
        """Return how often `key` was added rate-limited since it was last forgotten."""
        return self._limiter.retries(key)

    async def get(self) -> KeyT:
        """Wait for a key and take it in hand; the caller must call `done` with it, whatever happens.

        What it was to come again for is answered by this run: its delay is dropped.

        Raises:
            ShutDown: There is none and there will be none.
        """
        while not self._queued:
            if self._is_shut_down:
                raise ShutDown
            await self._wait_for_key()
        key = self._queued.popleft()
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        now = self._now()
        self._processing_since[key] = now
        self._metrics.depth(len(self._queued))
        self._metrics.waited(now - self._dirty_since.pop(key))
        return key

    def done(self, key: KeyT) -> None:
        """Give `key` back; it is queued again if it was added while in work.

        Raises:
            ValueError: No worker has it in hand.
        """
        begun = self._processing_since.pop(key, None)
        if begun is None:
            raise ValueError(f"work queue: done({key!r}) without get(): each key that get() returned is given back once")
        self._metrics.worked(self._now() - begun)
        if key in self._dirty_since:
            self._enqueue(key)
        self._settle_drain()

    def shut_down(self) -> None:
        """Refuse new keys, drop delayed ones and end a drain; workers finish what is queued, then `get` raises `ShutDown`."""
        self._close()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def drain(self) -> None:
        """Shut down, and wait until all that was queued or in work is done, or `shut_down` is called.

        Somebody must go on to work: without workers a queue does not drain.
        """
        self._close()
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()
        self._settle_drain()
        await asyncio.shield(self._drained)

    def unfinished_seconds(self) -> float:
        """Return how long the keys now in work have been so, summed up: if it grows, workers are stuck."""
        now = self._now()
        return sum(now - begun for begun in self._processing_since.values())

    def longest_running_seconds(self) -> float:
        """Return how long the key longest in work has been so; 0 when none is."""
        return self._now() - min(self._processing_since.values()) if self._processing_since else 0.0

    def _enqueue(self, key: KeyT) -> None:
        self._queued.append(key)
        self._metrics.depth(len(self._queued))
        self._wake_one()

    def _fire(self, key: KeyT) -> None:
        del self._timers[key]
        self.add(key)

    def _close(self) -> None:
        self._is_shut_down = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _settle_drain(self) -> None:
        idle = not self._queued and not self._processing_since
        if idle and self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
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
                self._wake_one()  # this worker was woken and leaves: the key must not wait for the next event
            raise

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
