"""Ends a stream on which nothing comes any more: one timer that looks, instead of one that is set anew with each chunk."""

import asyncio
from typing import Self

from mpiop.kube.errors import TransportError
from mpiop.kube.http1 import Connection


class Silence:
    """Watches over the bytes of one answer, in a `with` block around its reading."""

    def __init__(self, connection: Connection, seconds: float) -> None:
        """Let reading from `connection` fail with `TransportError` when nothing has come for `seconds`."""
        self._connection = connection
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._bytes_read = connection.bytes_received
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
        self._bytes_read = self._connection.bytes_received

    def _look(self) -> None:
        if self._connection.bytes_received != self._bytes_read:
            self.heard()  # it is there, but not read yet: this process was frozen, or is slow
        left = self._heard_at + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._connection.fail(TransportError(f"timeout: not a byte for {self._seconds:g} s"))
