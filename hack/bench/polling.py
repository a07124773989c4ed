"""Waiting for what nobody tells of."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(is_so: Callable[[], Awaitable[bool]], *, seconds: float, look_seconds: float = 0.1) -> None:
    """Wait until `is_so`, asked every `look_seconds`.

    Raises:
        TimeoutError: It was not within `seconds`.
    """
    async with asyncio.timeout(seconds):
        while True:
            if await is_so():
                return
            await asyncio.sleep(look_seconds)
