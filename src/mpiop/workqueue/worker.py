"""The loop of a worker."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from mpiop.workqueue.queue import ShutDown, WorkQueue

KeyT = TypeVar("KeyT", bound=Hashable)


class NotReady(Exception):  # noqa: N818 - a signal, not an error
    """A key cannot be synced yet; its failures are not reset."""

    def __init__(self, seconds: float) -> None:
        """Retry after so many seconds, unless an event queues the key before."""
        super().__init__(f"not ready, to be tried again in {seconds:.1f} s")
        self.seconds = seconds


async def work(queue: WorkQueue[KeyT], sync: Callable[[KeyT], Awaitable[float | None]], failed: Callable[[KeyT, Exception], None]) -> None:
    """Take keys from `queue` and `sync` them, one at a time, until the queue is shut down and empty.

    A sync that succeeds makes the queue forget the key's failures; if it returns a number, the key comes again in so many seconds.
    If it raises, the key is added again, rate-limited. `done` is called in any case, also when this task is cancelled.

    Args:
        queue: Where keys come from. Several workers may share it.
        sync: Does the work for a key and returns the seconds until it wants to be called again, or None; raises `NotReady` to be put off.
        failed: Called with each exception, which is not raised further. Must not raise.
    """
    while True:
        # A key that is due and a sync that sends nothing suspend nobody: without this, such keys would stop the process.
        await asyncio.sleep(0)
        try:
            key = await queue.get()
        except ShutDown:
            return
        try:
            again_in_seconds = await sync(key)
        except NotReady as wait:
            queue.add_after(key, wait.seconds)
        except Exception as error:  # noqa: BLE001 - the one place where any failure of a sync becomes a retry
            failed(key, error)
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
            if again_in_seconds is not None:
                queue.add_after(key, again_in_seconds)
        finally:
            queue.done(key)
