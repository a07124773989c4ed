"""Waiting for what can only be asked for again."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 0.1


async def until(
    what: str, is_seen: Callable[[], Awaitable[bool]], *, timeout_seconds: float = 60, look_seconds: float = LOOK_SECONDS
) -> None:
    """Return as soon as `is_seen` reports it.

    Raises:
        TimeoutError: It did not within `timeout_seconds`; the message has `what`.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                if await is_seen():
                    return
                await asyncio.sleep(look_seconds)
    except TimeoutError as error:
        raise TimeoutError(f"not seen in {timeout_seconds:g} s: {what}") from error


def wait_until(what: str, is_seen: Callable[[], bool], *, timeout_seconds: float = 60, look_seconds: float = LOOK_SECONDS) -> None:
    """Return as soon as `is_seen` reports it, in code that is not async.

    Raises:
        TimeoutError: It did not within `timeout_seconds`; the message has `what`.
    """
    deadline = time.monotonic() + timeout_seconds
    while not is_seen():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not seen in {timeout_seconds:g} s: {what}")
        time.sleep(look_seconds)
