"""Ends a stream on which nothing comes any more: one timer that looks, instead of one that is set anew with each chunk."""

import asyncio
from typing import Self

import aiohttp


class Silence:
    """Watches over the bytes of one answer, in a `with` block around its reading."""

    def __init__(self, content: aiohttp.StreamReader, seconds: float) -> None:
        """Let reading from `content` fail with `TimeoutError` when nothing has come for `seconds`."""
        self._content = content
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._bytes_read = content.total_bytes
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def heard(self) -> None:
        """Note that a chunk was read just now."""
        self._heard_at = self._loop.time()
        self._bytes_read = self._content.total_bytes

    def _look(self) -> None:
        if self._content.total_bytes != self._bytes_read:
            self.heard()  # it is there, but not read yet: this process was frozen, or is slow
        left = self._heard_at + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._content.set_exception(TimeoutError(f"timeout: not a byte for {self._seconds:g} s"))
