"""An event loop that lets events gather while there are many of them, as network drivers do with interrupts.

To sleep and to wake up costs a process more than most of the events that wake it: its caches are cold, and others want the core. In a
burst of jobs that was a fifth of the operator's processor time (docs/performance.md).
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Final

from mpiop.token_bucket import TokenBucket

GATHERING_SECONDS: Final = 0.04
"""By so much news may be late in a burst: less than one request to the API server takes then."""
WAKES_AT_ONCE: Final = 20
WAKES_A_SECOND: Final = 20
"""So many are not delayed: a job by itself, and whoever leads an idle operator, notice nothing."""


class GatheringSelector(selectors.DefaultSelector):
    """Rests for `GATHERING_SECONDS` before it waits for events, unless it has done so only a few times lately."""

    def __init__(self, now: Callable[[], float] = time.monotonic, rest: Callable[[float], None] = time.sleep) -> None:
        """Tell the time by `now` and rest by `rest`, in seconds."""
        super().__init__()
        self._now = now
        self._rest = rest
        self._wakes = TokenBucket(WAKES_A_SECOND, WAKES_AT_ONCE)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready, waiting `timeout` seconds for it, or a little longer; None is for ever, and 0 never rests."""
        if (timeout is None or timeout > 0) and not self._wakes.take(self._now()):
            self._rest(GATHERING_SECONDS)
            timeout = None if timeout is None else max(0.0, timeout - GATHERING_SECONDS)
        return super().select(timeout)


def gathering_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop with such a selector."""
    return asyncio.SelectorEventLoop(GatheringSelector())
