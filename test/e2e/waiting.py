"""Waiting, in async code, for what can only be asked for again."""

import asyncio
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 0.1


async def until(
    what: str, is_seen: Callable[[], Awaitable[bool]], *, timeout_seconds: float = 60, look_seconds: float = LOOK_SECONDS
) -> None:
    """Return as soon as `is_seen` says so.

    Raises:
        AssertionError: It did not within `timeout_seconds`; the message is `what`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while not await is_seen():
        assert loop.time() < deadline, f"not seen in {timeout_seconds:g} s: {what}"
        await asyncio.sleep(look_seconds)
