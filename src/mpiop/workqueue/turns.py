"""Turns: few expensive syncs run at a time, however many workers a queue has."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from mpiop.workqueue.worker import NotReady

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

RETRY_SECONDS: Final = 1.0
MOST_TURNS: Final = 3
"""Each sync may take some 100 MiB."""


class Turns:
    """Lets in one sync of a namespace at a time, and few of all: a namespace with slow writes delays no other.

    The others are put off, so that no worker waits for a turn while cheap keys are queued.
    """

    def __init__(self) -> None:
        """Let in the first ones."""
        self._taken: set[str] = set()

    @contextmanager
    def take(self, namespace: str) -> Generator[None]:
        """Hold a turn for as long as the block runs.

        Raises:
            NotReady: There is none.
        """
        if namespace in self._taken or len(self._taken) >= MOST_TURNS:
            raise NotReady(RETRY_SECONDS)
        self._taken.add(namespace)
        try:
            yield
        finally:
            self._taken.discard(namespace)


def computing(*, is_large: bool) -> Callable[..., Awaitable[Any]]:
    """Return what calls a pure function: for a large job in a thread, so that the event loop is not blocked."""
    return asyncio.to_thread if is_large else _at_once


async def _at_once(function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
    """Do what `asyncio.to_thread` does, but in this thread."""
    return function(*args, **kwargs)
