"""Turns: few expensive syncs run at a time, however many workers a queue has."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from mpiop.workqueue.worker import NotReady

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

RETRY_SECONDS: Final = 1.0
MOST_TURNS: Final = 3
"""Each sync may take some 100 MiB."""
WAITING_SECONDS: Final = 5.0
"""How long a namespace that no longer asks keeps its place."""


class Turns:
    """Lets in one sync of a namespace at a time, and few of all: a namespace with slow writes, or with many jobs, delays no other.

    The others are put off, so that no worker waits for a turn while cheap keys are queued. Namespaces get a turn in the order in which they
    asked for it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Let in the first ones."""
        self._clock = clock
        self._taken: set[str] = set()
        self._asked: dict[str, float] = {}  # when a namespace that waits asked last; who waits longest is first

    @contextmanager
    def take(self, namespace: str) -> Generator[None]:
        """Hold a turn for as long as the block runs.

        Raises:
            NotReady: There is none.
        """
        now = self._clock()
        self._asked = {waiting: asked for waiting, asked in self._asked.items() if now - asked < WAITING_SECONDS}
        self._asked[namespace] = now
        if namespace not in self._next():
            raise NotReady(RETRY_SECONDS)
        del self._asked[namespace]
        self._taken.add(namespace)
        try:
            yield
        finally:
            self._taken.discard(namespace)

    def _next(self) -> list[str]:
        """Return the waiting namespaces that may have a turn now."""
        waiting = [namespace for namespace in self._asked if namespace not in self._taken]
        return waiting[: MOST_TURNS - len(self._taken)]


def computing(*, is_large: bool) -> Callable[..., Awaitable[Any]]:
    """Return what calls a pure function: for a large job in a thread, so that the event loop is not blocked."""
    return asyncio.to_thread if is_large else _at_once


async def _at_once(function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
    """Do what `asyncio.to_thread` does, but in this thread."""
    return function(*args, **kwargs)
