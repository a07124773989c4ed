"""Limits concurrent requests and requests a second; flows are served round robin."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple

from mpiop.shares import Shares
from mpiop.token_bucket import TokenBucket


class _Flow(NamedTuple):
    namespace: str
    flow: Hashable


class Throttle:
    """Limits the number of concurrent requests, and optionally the requests a second (token bucket).

    Those that wait begin round robin by flow, which is the job that is synced (API Priority and Fairness uses this term for the clients of
    an API server); within a flow, first come, first served. So a job that deletes a thousand pods delays a write of another job by one
    request. No namespace can occupy all places with slow requests (see `Shares`). Waiting here is not part of a request's deadline: a slow
    server makes the queue longer, not the failures more.
    """

    def __init__(self, most_in_flight: int, qps: float = 0.0, burst: int = 0) -> None:
        """Allow `most_in_flight` concurrent requests, and `qps` a second after a burst of `burst`; qps 0 means unlimited."""
        self._shares = Shares(most_in_flight)
        self._bucket = TokenBucket(qps, max(burst, 1)) if qps > 0 else None
        self._token_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The flow whose turn is next comes first.
        self._waiting: OrderedDict[_Flow, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, namespace: str, flow: Hashable) -> AsyncGenerator[None]:
        """Wait for a turn of `flow` in `namespace`, and keep a place until the end of the block."""
        await self._wait(_Flow(namespace, flow))
        try:
            yield
        finally:
            self._leave(namespace)

    async def _wait(self, flow: _Flow) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(flow, deque()).append(turn)
        self._begin()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn had come at the same moment
                self._leave(flow.namespace)
            raise

    def _leave(self, namespace: str) -> None:
        self._shares.release(namespace)
        self._begin()

    def _begin(self) -> None:
        """Start as many waiting requests as places and tokens allow."""
        while (flow := self._next_flow()) is not None and self._has_token():
            turns = self._waiting.pop(flow)
            turn = turns.popleft()
            if turns:
                self._waiting[flow] = turns
            if not turn.done():  # else its task was cancelled
                turn.set_result(None)
                self._shares.take(flow.namespace)
                self._token_at = None

    def _next_flow(self) -> _Flow | None:
        # A short search: as many jobs send requests as there are syncs at a time.
        return next((flow for flow in self._waiting if self._shares.has_place(flow.namespace)), None)

    def _has_token(self) -> bool:
        """Return whether another request may start now; if not, schedule a check for when it may."""
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
