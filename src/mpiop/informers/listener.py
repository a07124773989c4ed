"""The buffer between an informer and one handler, so that a slow handler does not delay the others (see docs/adr/0003)."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from mpiop.informers.store import Notification
from mpiop.kube.objects import Object, key_of

log = structlog.get_logger(__name__)

Handler = Callable[[Notification], None]

SLICE_SECONDS = 0.005
"""How long a handler may process its backlog before it yields to other tasks."""


class Registration(Protocol):
    """The handle that `add_handler` returns."""

    @property
    def has_synced(self) -> bool:
        """Return whether the handler was called for each object of the first list, or of the store when it was added."""
        ...

    @property
    def backlog(self) -> int:
        """Return the number of buffered notifications."""
        ...

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        ...

    def remove(self) -> None:
        """Never call the handler again; may be called repeatedly, also by the handler."""
        ...


class Listener:
    """Buffers notifications and calls one handler with each, in order, on the event loop."""

    def __init__(self, handler: Handler, resync_seconds: float, removed: Callable[["Listener"], None]) -> None:
        """Call `handler`, and `removed` when the handler is removed; `resync_seconds` 0 is never."""
        self._handler = handler
        self._removed = removed
        self._buffer: deque[Notification] = deque()
        self._initial_left: int | None = None
        self._synced = asyncio.Event()
        self._drain_handle: asyncio.Handle | None = None
        self._is_closed = False
        self.resync_seconds = resync_seconds

    @property
    def has_synced(self) -> bool:
        """Return whether the handler was called for each initial object."""
        return self._synced.is_set()

    @property
    def backlog(self) -> int:
        """Return the number of buffered notifications."""
        return len(self._buffer)

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    def push(self, notifications: Iterable[Notification]) -> None:
        """Append `notifications` to the buffer; the handler is called later."""
        if not self._is_closed:
            self._buffer.extend(notifications)
            self._schedule()

    def push_initial(self, notifications: Iterable[Notification]) -> None:
        """Append the last initial notifications; once they are handled, the listener has synced."""
        self.push(notifications)
        self._initial_left = len(self._buffer)
        self._count_initial(0)

    def resync(self, objects: Iterable[Object]) -> None:
        """Notify the handler of each of `objects` as an unchanged update, except those with a notification in the buffer."""
        waiting = {notification.key for notification in self._buffer}
        self.push([Notification(obj, obj) for obj in objects if key_of(obj) not in waiting])

    def remove(self) -> None:
        """Never call the handler again."""
        self.close()
        self._synced.set()  # release those who wait for it
        self._removed(self)

    def close(self) -> None:
        """Drop the buffer and ignore later notifications."""
        self._is_closed = True
        self._buffer.clear()

    def _schedule(self) -> None:
        if self._buffer and self._drain_handle is None:
            self._drain_handle = asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        now = asyncio.get_running_loop().time
        until = now() + SLICE_SECONDS
        while self._buffer:
            call(self._handler, self._buffer.popleft())
            self._count_initial(1)
            if now() >= until:
                break
        self._drain_handle = None
        self._schedule()

    def _count_initial(self, handled: int) -> None:
        if self._initial_left is None or self._is_closed:
            return
        self._initial_left -= handled
        if self._initial_left <= 0:
            self._initial_left = None
            self._synced.set()


def call(handler: Handler, notification: Notification) -> None:
    """Call `handler`; if it fails, it loses this notification and nothing else (client-go recovers the panic the same way)."""
    try:
        handler(notification)
    except Exception:
        log.exception("handler failed", object=str(notification.key))
