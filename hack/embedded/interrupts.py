"""Ctrl-C and its kin: they interrupt a command, but never in the middle of what must be done whole."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def install() -> None:
    """Make each of the signals raise KeyboardInterrupt in the main thread."""
    for number in NUMBERS:
        signal.signal(number, _interrupt)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Run a block to its end whatever signal comes, and be interrupted after it."""
    came: list[int] = []
    previous = [(number, signal.signal(number, lambda received, _: came.append(received))) for number in NUMBERS]
    try:
        yield
    finally:
        for number, handler in previous:
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
