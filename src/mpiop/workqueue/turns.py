"""Turns: expensive syncs run one at a time, however many workers a queue has."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from mpiop.workqueue.worker import NotReady

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

RETRY_SECONDS: Final = 1.0


class Turns:
    """Lets in one sync at a time. The others are put off, so that no worker waits for a turn while cheap keys are queued."""

    def __init__(self) -> None:
        """Let in the first one."""
        self._is_taken = False

    @contextmanager
    def take(self) -> Generator[None]:
        """Hold the turn for as long as the block runs.

        Raises:
            NotReady: Another sync has it.
        """
        if self._is_taken:
            raise NotReady(RETRY_SECONDS)
        self._is_taken = True
        try:
            yield
        finally:
            self._is_taken = False


def computing(*, is_large: bool) -> Callable[..., Awaitable[Any]]:
    """Return what calls a pure function: for a large job in a thread, so that the event loop goes on."""
    return asyncio.to_thread if is_large else _at_once


async def _at_once(function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
    """Do what `asyncio.to_thread` does, but in this thread."""
    return function(*args, **kwargs)
