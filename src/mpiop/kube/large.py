"""Reads large texts in a thread, so that the event loop is not blocked."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_Result = TypeVar("_Result")

LARGE_BYTES: Final = 256 * 1024
"""An object of 1.5 MB that is deeply nested takes 0.2 s to read, and anyone who may write objects can make it so."""

_ONE: Final = ThreadPoolExecutor(1, "large texts")
"""One at a time: several threads would hold the interpreter one after the other."""


async def read(function: Callable[[bytes], _Result], text: bytes) -> _Result:
    """Return `function(text)`, which is computed in a thread if the text is large."""
    if len(text) <= LARGE_BYTES:
        return function(text)
    return await asyncio.get_running_loop().run_in_executor(_ONE, function, text)
