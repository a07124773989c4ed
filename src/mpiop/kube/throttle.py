"""How many requests may be under way, how many may begin a second, and who is next: flows take turns."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Final

from mpiop.token_bucket import TokenBucket

FLOW: Final[ContextVar[Hashable]] = ContextVar("FLOW", default=None)
"""On whose behalf this task, and those that it starts, send requests: while a job is synced, the job's key.

The word is that of API Priority and Fairness, which does the same among the clients of an API server."""


class Throttle:
    """Bounds how many requests are under way, and optionally how many begin a second (token bucket).

    Those that wait begin round robin by flow; within a flow, first come, first served. So a job that deletes a thousand pods delays a
    write of another job by one request. Waiting here is not part of a request's deadline: a slow server makes the queue longer, not the
    failures more.
    """

    def __init__(self, most_in_flight: int, qps: float = 0.0, burst: int = 0) -> None:
        """Bound requests under way to `most_in_flight`, their rate to `qps` after a burst of `burst`; qps 0 is no bound."""
        self._places = most_in_flight
        self._bucket = TokenBucket(qps, max(burst, 1)) if qps > 0 else None
        self._token_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The flow whose turn is next comes first.
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    async def __aenter__(self) -> None:
        """Wait for a turn and take a place."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(FLOW.get(), deque()).append(turn)
        self._begin()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn had come at the same moment
                self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Leave the place to another."""
        self._leave()

    def _leave(self) -> None:
        self._places += 1
        self._begin()

    def _begin(self) -> None:
        """Let as many begin as there are places and tokens for."""
        while self._places and self._waiting and self._has_token():
            flow, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[flow] = turns
            if not turn.done():  # else its task was cancelled
                turn.set_result(None)
                self._places -= 1
                self._token_at = None

    def _has_token(self) -> bool:
        """Return whether one more may begin now; if not, come back when it may."""
        if self._bucket is None:
            return True
        loop = asyncio.get_running_loop()
        if self._token_at is None:
            self._token_at = loop.time() + self._bucket.reserve(loop.time())
        if self._token_at <= loop.time():
            return True
        if self._timer is None:
            self._timer = loop.call_at(self._token_at, self._token_came)
        return False

    def _token_came(self) -> None:
        self._timer = None
        self._begin()
