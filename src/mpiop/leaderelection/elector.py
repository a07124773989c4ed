"""LeaderElector runs work while this process holds the lease; if it loses the lease, it raises LeaseLostError.

L60 to L66 are invariants (docs/reference/invariants.md).
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Never

import structlog

from mpiop.backoff import every
from mpiop.clock import Clock
from mpiop.kube.errors import CalledOffError, KubeError, StatusError
from mpiop.kube.objects import WatchEvent
from mpiop.leaderelection.config import ElectionConfig
from mpiop.leaderelection.lock import LeaseClient, LeaseLock
from mpiop.leaderelection.record import Observation, holder_of

_LOST_WORK_GRACE_SECONDS = 1.0
_SHORTEST_PAUSE_SECONDS = 0.05
_CLOCK_TOLERANCE_SECONDS = 0.001


class LeaseLostError(CalledOffError):
    """The lease was lost: this process must end at once."""


class LeaderElector:
    """Acquires and renews the Lease; the rules are in the package's docstring."""

    def __init__(self, config: ElectionConfig, client: LeaseClient, clock: Clock, identity: str) -> None:
        """Prepare to stand for election as `identity`, which no other process may share.

        Raises:
            ValueError: `identity` is empty (L60).
        """
        if not identity:
            raise ValueError("leader election needs an identity of its own for each process, and it is empty")
        self._config = config
        self._lock = LeaseLock(config, client, clock, identity)
        self._clock = clock
        self._identity = identity
        self._log = structlog.get_logger(__name__).bind(lease=str(config.key), identity=identity)
        self._observed = Observation(clock, fallback_duration_seconds=config.lease_duration_seconds)
        self._renewed_at: float | None = None  # when the last successful renewal was sent; None while not leading
        self._may_hold = False  # a write that makes us the holder was sent, whatever became of it
        self._is_lost = False  # for good
        self._changed = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        """Return whether writes are allowed now."""
        return self._remaining_seconds() > 0

    @property
    def has_lost(self) -> bool:
        """Return whether this process led and lost the lease, noticed or not: it must not write anything any more, not even events."""
        return self._is_lost or (self._renewed_at is not None and not self.is_leader)

    def assert_leading(self) -> None:
        """Call just before each write for a job.

        Raises:
            LeaseLostError: The renew deadline has passed, for whatever reason: the network, a blocked event loop, a suspended machine.
        """
        if not self.is_leader:
            raise self._lost("the renew deadline has passed")

    def assert_not_lost(self) -> None:
        """Call just before the writes that are still allowed after an orderly release of the lease: those of events.

        Raises:
            LeaseLostError: This process led and lost the lease.
        """
        if self.has_lost:
            raise self._lost("it was not renewed in time, or taken")

    def check(self) -> list[str]:
        """Return what is wrong, for the liveness probe: only that a leader without a lease did not end (L66)."""
        if self._renewed_at is None:
            return []
        age_seconds = self._clock.monotonic() - self._renewed_at
        tolerance_seconds = self._config.lease_duration_seconds
        if age_seconds <= self._config.lease_duration_seconds + tolerance_seconds:
            return []
        return [f"leader for {age_seconds:.0f}s without a renewal of Lease {self._config.key}"]

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run `work` while it holds; return when `work` does.

        When this is cancelled, or `work` ends by itself, the work has ended before the lease is released.

        Raises:
            LeaseLostError: The lease was lost; `work` was cancelled and nothing released.
        """
        watch = asyncio.create_task(self._watch(), name="lease watch")
        watch.add_done_callback(lambda _: self._changed.set())
        try:
            await self._acquire(watch)
            self._log.info("started leading")
            await self._work_and_renew(work, watch)
        finally:
            await _end(watch)
            await self._release()

    # Standing by

    async def _acquire(self, watch: asyncio.Task[Never]) -> None:
        self._log.info("waiting for the lease")
        while not await self._try_to_acquire():
            if watch.done():
                watch.result()
            await self._pause(self._seconds_to_next_attempt())

    def _seconds_to_next_attempt(self) -> float:
        poll = self._retry_seconds()
        remaining = self._observed.remaining_seconds()
        return min(poll, max(remaining, _SHORTEST_PAUSE_SECONDS)) if remaining > 0 else poll

    async def _try_to_acquire(self) -> bool:
        try:
            await self._acquire_once()
        except KubeError as error:
            self._log.info("lease not acquired", error=str(error))
        if not self.is_leader:
            self._renewed_at = None  # an answer that came after its own deadline does not count
        return self.is_leader

    async def _acquire_once(self) -> None:
        lease = await self._lock.read()
        if lease is None:
            await self._hold(self._lock.create())
            return
        if self._observed.note(lease) and holder_of(lease):
            self._log.debug("lease is held", holder=holder_of(lease))
        if holder_of(lease) in {"", self._identity} or self._observed.remaining_seconds() <= 0:
            await self._hold(self._lock.take(lease))

    async def _watch(self) -> Never:
        """Watch the Lease, to see changes sooner than by polling."""
        while True:
            began_at = self._clock.monotonic()
            try:
                async with self._lock.watch() as events:
                    async for event in events:
                        self._notice(event)
            except KubeError as error:
                self._log.info("watch of the lease ended", error=str(error))
            # A watch that lasted is opened again at once, to see a release soon. One that ended early waits, so that the loop cannot spin.
            if self._clock.monotonic() - began_at < self._config.retry_period_seconds:
                await asyncio.sleep(self._retry_seconds())

    def _notice(self, event: WatchEvent) -> None:
        """Note an event, and wake the waiter if there is something to do. It may be old, so nothing is decided here."""
        if event["type"] == "DELETED":
            self._changed.set()
        elif event["type"] in {"ADDED", "MODIFIED"}:
            self._observed.note(event["object"])
            is_ours = holder_of(event["object"]) == self._identity
            is_free = not holder_of(event["object"])
            if (not is_ours) if self.is_leader else (is_ours or is_free):
                self._changed.set()

    # Leading

    async def _work_and_renew(self, work: Callable[[], Awaitable[None]], watch: asyncio.Task[Never]) -> None:
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew(watch), name="lease renewal")
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            working.cancel()
            # The lease is renewed until the work has ended, however long that takes.
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            raise
        finally:
            await self._stop_leading(working, renewing)
            if not working.cancelled():
                working.result()  # an error of the work comes first, and is never lost

    async def _stop_leading(self, working: asyncio.Future[None], renewing: asyncio.Task[Never]) -> None:
        if renewing.done():
            working.cancel()
            _, still_working = await asyncio.wait({working}, timeout=_LOST_WORK_GRACE_SECONDS)
            if still_working:
                self._may_hold = False
                self._log.error("work continues without the lease; the process ends anyway", grace_seconds=_LOST_WORK_GRACE_SECONDS)
            elif not working.cancelled() and (error := working.exception()):
                self._log.info("work ended after the lease was lost", error=str(error))
            renewing.result()
        await _end(renewing)
        if not working.done():
            self._may_hold = False  # stopped twice: the work may continue, so the lease is left to expire
            raise asyncio.CancelledError

    async def _renew(self, watch: asyncio.Task[Never]) -> Never:
        """Renew the lease until that fails for good, then raise LeaseLostError."""
        tried_at = self._clock.monotonic()
        self._changed.clear()  # the change was our own acquisition
        while True:
            pause = max(_SHORTEST_PAUSE_SECONDS, tried_at + self._config.retry_period_seconds - self._clock.monotonic())
            # The event loop's clock and ours differ slightly. The tolerance keeps this loop from spinning just before the deadline.
            await self._pause(min(pause, self._remaining_seconds() + _CLOCK_TOLERANCE_SECONDS))
            self.assert_leading()
            if watch.done():
                watch.result()
            tried_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(self._remaining_seconds()):  # a request that hangs must not outlive the deadline
                    await self._renew_once()
            except (KubeError, TimeoutError) as error:
                self._log.warning("lease not renewed", error=str(error) or "no answer", seconds_left=round(self._remaining_seconds(), 1))

    async def _renew_once(self) -> None:
        if self._lock.written is not None:
            try:
                await self._hold(self._lock.take(self._lock.written))
            except StatusError as error:
                if not (error.is_conflict or error.is_not_found):
                    raise
                # Somebody touched the Lease, or our own write took effect without an answer.
            else:
                return
        lease = await self._lock.read()
        if lease is None:
            await self._hold(self._lock.create())
        elif holder_of(lease) in {"", self._identity}:
            await self._hold(self._lock.take(lease))
        else:
            raise self._lost(f"{holder_of(lease)} holds it now")

    def _lost(self, why: str) -> LeaseLostError:
        """Stop leading at this instant; nothing is released after a loss (L65)."""
        self._is_lost = True
        self._renewed_at = None
        self._changed.set()
        return LeaseLostError(f"Lease {self._config.key} is lost: {why}")

    async def _hold(self, writing: Awaitable[None]) -> None:
        """Count the lease from before the write was sent: another replica may have seen it before we got the answer."""
        self._may_hold = True
        sent_at = self._clock.monotonic()
        await writing
        if not self._is_lost and (self._renewed_at is None or self.is_leader):  # an answer after the deadline does not restore a lost lease
            self._renewed_at = sent_at

    async def _release(self) -> None:
        """Release the lease if it is still ours; not after a loss."""
        self._is_lost = self.has_lost
        self._renewed_at = None
        if self._is_lost or not self._may_hold:
            return
        releasing = asyncio.create_task(self._release_and_log(), name="lease release")
        try:
            await asyncio.wait({releasing}, timeout=self._config.renew_deadline_seconds / 2)
        finally:
            await _end(releasing)

    async def _release_and_log(self) -> None:
        try:
            if await self._lock.release():
                self._log.info("lease released")
        except KubeError as error:
            self._log.warning("lease not released; others have to wait for its end", error=str(error))

    # Time

    def _retry_seconds(self) -> float:
        return every(self._config.retry_period_seconds).delay_seconds(0, random.random())  # noqa: S311 - spreads requests, protects nothing

    def _remaining_seconds(self) -> float:
        if self._renewed_at is None:
            return 0.0
        return self._renewed_at + self._config.renew_deadline_seconds - self._clock.monotonic()

    async def _pause(self, seconds: float) -> None:
        """Wait for so long, or until the Lease changes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()


async def _end(task: asyncio.Task[Never] | asyncio.Task[None]) -> None:
    """Cancel `task` and wait for its end, however it ends."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # else asyncio reports it as never retrieved
