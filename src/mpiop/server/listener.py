"""The connections of one port: bound in number and in time, and for one request each.

Any client that reaches the port can open connections and send nothing. Each uses a descriptor, and a leader without
descriptors cannot renew its Lease. So there is a limit; at the limit, a new connection replaces the oldest. A probe is answered within
milliseconds, long before it is the oldest. If new connections were refused instead, the kubelet would restart a healthy Pod.
"""

import asyncio
import contextlib
import socket
import ssl
from http import HTTPStatus
from typing import Any, Final, NoReturn

import structlog
from aiohttp import web

MOST_CONNECTIONS: Final = 128
"""Of one port; a process often has no more than 1,024 descriptors."""
REQUEST_SECONDS: Final = 10.0
"""From the connection to the last byte of the answer, the handshake of TLS included; so long Prometheus waits by default, too."""
_NO_DESCRIPTOR_SECONDS: Final = 1.0
_NO_ACCESS_LOG: Final[dict[str, Any]] = {"access_log": None}
_log = structlog.get_logger(__name__)


class Listener:
    """Accepts the connections of one port and has `server` answer one request on each."""

    def __init__(self, server: web.Server, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Serve what comes in on `listening`, over HTTPS with `tls`."""
        self._server = server
        self._listening = listening
        self._tls = tls
        self._open: dict[asyncio.Task[None], None] = {}
        """By age, the oldest first."""

    async def accept(self) -> NoReturn:
        """Accept connections until cancelled; what is open then stays so."""
        while True:
            await self._accept_one()
            await asyncio.sleep(0)  # one at a time, between what else is to be done: a flood must not keep the Lease waiting

    async def close(self) -> None:
        """End all connections."""
        for task in list(self._open):
            await _end(task)

    async def _accept_one(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = await loop.sock_accept(self._listening)
        except OSError as error:
            _log.warning("cannot accept a connection", error=str(error))
            await asyncio.sleep(_NO_DESCRIPTOR_SECONDS)
            return
        if len(self._open) >= MOST_CONNECTIONS:
            await _end(next(iter(self._open)))
        task = loop.create_task(self._serve(connection), name="connection")
        self._open[task] = None
        task.add_done_callback(self._open.pop)

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        handler = _Handler(self._server, loop)
        transport: asyncio.Transport | None = None
        try:
            # Not our concern and nothing to log: a handshake that fails, a peer that resets, one that is too slow.
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    transport, _ = await loop.connect_accepted_socket(lambda: handler, connection, ssl=self._tls)
                    await handler.has_ended.wait()
        finally:
            if transport is None:
                connection.close()
            else:
                transport.abort()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


class _Handler(web.RequestHandler):
    """Serves one connection, and reports its end."""

    __slots__ = ("has_ended",)

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server, loop=loop, **_NO_ACCESS_LOG)
        self.has_ended = asyncio.Event()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.has_ended.set()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer; log only our own errors, because anybody may send invalid HTTP."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().handle_error(request, status, exc, message)
        return web.Response(status=status, text=message)


async def close_after_answer(_: web.BaseRequest, response: web.StreamResponse) -> None:
    """Let `response` be the last one on its connection (for `on_response_prepare`): an idle connection uses a descriptor, too."""
    response.force_close()
