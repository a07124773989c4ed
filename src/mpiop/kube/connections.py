"""Connections to the API server: how they are opened, and which may be used once more.

Nothing of the environment counts here, neither proxies nor netrc; there are no cookies and no redirects.
"""

import asyncio
import base64
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from mpiop.kube.errors import TransportError
from mpiop.kube.http1 import Connection
from mpiop.kube.tls_transport import TLSTransport

IDLE_SECONDS = 30.0
"""Unused connections are closed after this: before the API server (90 s) or a NAT in between (60 s and more) does it."""

HAPPY_EYEBALLS_SECONDS = 0.25
"""RFC 8305's delay: after it the next address of a name is tried beside the one before."""

SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    # Sent data that nobody acknowledges for so many milliseconds breaks the connection.
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
"""A peer that is gone is noticed within a minute."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a server.

    Attributes:
        server: Its URL, perhaps with a path.
        proxy_url: The HTTP proxy in between; "" is none.
        server_name: Name to expect in the server's certificate, instead of the URL's host.
    """

    server: str
    proxy_url: str = ""
    server_name: str = ""

    async def open(self, context: ssl.SSLContext | None) -> Connection:
        """Return a new connection, with TLS by `context` (None: no TLS).

        Raises:
            TransportError: The message says to where, and why not.
        """
        server = urlsplit(self.server)
        if not self.proxy_url:
            return await _connected(server, context, self.server_name)
        proxy = urlsplit(self.proxy_url)
        proxy_context = (context or ssl.create_default_context()) if proxy.scheme == "https" else None
        connection = await _connected(proxy, proxy_context)
        return connection if context is None else await self._tunnelled(connection, server, context)

    async def _tunnelled(self, outer: Connection, server: SplitResult, context: ssl.SSLContext) -> Connection:
        """Return a connection with TLS to `server` through the proxy at the end of `outer` (RFC 9110, CONNECT)."""
        authority = f"{_bracketed(server)}:{_port(server)}"
        inner = Connection()
        try:
            outer.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{self.proxy_authorization}\r\n".encode())
            self._check_tunnel((await outer.head()).status, authority)
            tls = TLSTransport(inner, context, self.server_name or server.hostname or "")
            outer.transport.set_protocol(tls)
            tls.connection_made(outer.transport)
            await tls.established()
        except OSError as error:
            outer.abort()
            raise _no_connection(server, error) from error
        except BaseException:
            outer.abort()
            raise
        return inner

    def _check_tunnel(self, status: int, authority: str) -> None:
        if not 200 <= status < 300:  # noqa: PLR2004 - HTTP
            raise TransportError(f"the proxy {urlsplit(self.proxy_url).hostname} answered {status} when asked for {authority}")

    @property
    def proxy_authorization(self) -> str:
        """Return the header, with its line end, that names the user whom the proxy's URL has; "" when it has none."""
        proxy = urlsplit(self.proxy_url)
        if not proxy.username:
            return ""
        user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        return f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}\r\n"


class Connections:
    """Connections of one route; those of an older TLS context are not used again, and closed when nobody uses them."""

    def __init__(self, route: Route) -> None:
        """Open nothing yet."""
        self._route = route
        self._context: ssl.SSLContext | None = None
        self._idle: list[tuple[float, Connection]] = []
        self._lent: dict[Connection, ssl.SSLContext | None] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def lend(self, context: ssl.SSLContext | None) -> Connection:
        """Lend a connection made with `context` (None: no TLS), until `give_back`.

        Raises:
            TransportError: There is none to be had, or the pool was closed.
        """
        if self._is_closed:
            raise TransportError("the client was closed")
        if context is not self._context:
            self._context = context
            self._drop_idle()
        while self._idle and not self._idle[-1][1].is_reusable:
            self._idle.pop()
        connection = self._idle.pop()[1] if self._idle else await self._route.open(context)
        self._lent[connection] = context
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take back what was lent: for others, or to its end when its answer was not read or its TLS context is an old one."""
        context = self._lent.pop(connection)
        if self._is_closed or context is not self._context or not connection.is_reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((loop.time(), connection))
        if self._sweeper is None:
            self._sweeper = loop.call_later(IDLE_SECONDS, self._sweep)

    async def close(self) -> None:
        """Close all connections that nobody uses now, and the others when their requests fail or end."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._drop_idle():
            await connection.ended()

    def _drop_idle(self) -> list[Connection]:
        dropped, self._idle = [connection for _, connection in self._idle], []
        for connection in dropped:
            connection.abort()
        return dropped

    def _sweep(self) -> None:
        """Close what was not used for long, and look again when the next one will be that old."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and loop.time() - self._idle[0][0] >= IDLE_SECONDS:
            self._idle.pop(0)[1].abort()
        if self._idle:
            self._sweeper = loop.call_at(self._idle[0][0] + IDLE_SECONDS, self._sweep)


async def _connected(server: SplitResult, context: ssl.SSLContext | None, server_name: str = "") -> Connection:
    """Return a connection to the host of the URL `server`."""
    host, connection = server.hostname or "", Connection()
    tls = None if context is None else TLSTransport(connection, context, server_name or host)
    try:
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: tls or connection, host, _port(server), happy_eyeballs_delay=HAPPY_EYEBALLS_SECONDS
        )
        keep_watch(transport.get_extra_info("socket"))
        if tls is not None:
            await tls.established()
    except OSError as error:
        raise _no_connection(server, error) from error
    return connection


def keep_watch(connection: socket.socket) -> None:
    """Let the kernel probe the peer of `connection` when it is silent."""
    for level, option, value in SOCKET_OPTIONS:
        connection.setsockopt(level, option, value)


def _no_connection(server: SplitResult, error: OSError) -> TransportError:
    return TransportError(f"no connection to {_bracketed(server)}:{_port(server)}: {type(error).__name__}: {error}")


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _bracketed(url: SplitResult) -> str:
    host = url.hostname or ""
    return f"[{host}]" if ":" in host else host
