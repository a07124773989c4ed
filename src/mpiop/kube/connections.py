"""Connections to the API server: sockets that notice a dead peer, sessions that end when certificates change.

aiohttp is told to do nothing on its own account: no proxy and no netrc from the environment, no cookies, no redirects, and no
second sending of a request: it would replay GET, PUT and DELETE once when a kept-alive connection turns out to be dead.
"""

import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

import aiohttp

from mpiop import __version__
from mpiop.kube.errors import TransportError
from mpiop.kube.retry import ResetError

IDLE_SECONDS = 30.0
"""Unused connections are closed after this: before the API server (90 s) or a NAT in between (60 s and more) does it."""

KEEPALIVE_IDLE_SECONDS = 30
KEEPALIVE_INTERVAL_SECONDS = 10
KEEPALIVE_PROBES = 3
USER_TIMEOUT_MILLISECONDS = 30_000
"""Sent data that nobody acknowledges for so long breaks the connection."""

HEADERS = {
    "User-Agent": f"mpiop/{__version__}",
    # A compressed list costs the server more processor time than the local network gains.
    "Accept-Encoding": "identity",
}


def open_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket for `address` (a row of `getaddrinfo`) that probes its peer when it is idle."""
    family, kind, protocol = address[:3]
    connection = socket.socket(family, kind, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MILLISECONDS)
    return connection


class GuardedRequest(aiohttp.ClientRequest):
    """A request that is still called off when its connection stands: until then it may have waited, or the process been frozen."""

    guard: Callable[[], None]

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Send it, if its guard allows that."""
        self.guard()
        return await super().send(conn)


def sending_once(guard: Callable[[], None]) -> aiohttp.ClientMiddlewareType:
    """Return how to send a request one time, if `guard` allows that: what aiohttp does not know is not retried by it."""

    async def send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        cast("GuardedRequest", request).guard = guard
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise  # never connected: the message says why
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise ResetError(f"connection broken before an answer: {error}") from error

    return send_once


class Generation:
    """A session of one TLS context, and how many requests it serves."""

    def __init__(self, context: ssl.SSLContext | None, most_connections: int) -> None:
        """Connect with `context` (None: no TLS), at most `most_connections` times at once; 0 is any number."""
        self.context = context
        self.users = 0
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=context if context is not None else True,
                limit=most_connections,
                keepalive_timeout=IDLE_SECONDS,
                socket_factory=open_socket,
            ),
            headers=HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=GuardedRequest,
            trust_env=False,
            auto_decompress=True,
        )


class Connections:
    """A pool of connections; a new TLS context begins a new pool, and the old one is closed with its last request."""

    def __init__(self, most_connections: int) -> None:
        """Open nothing yet; allow `most_connections` at a time, 0 is any number."""
        self._most_connections = most_connections
        self._newest: Generation | None = None
        self._is_closed = False

    async def lend(self, context: ssl.SSLContext | None) -> Generation:
        """Lend the session whose connections were made with `context` (None: no TLS), until `give_back`.

        Raises:
            TransportError: The pool was closed.
        """
        if self._is_closed:
            raise TransportError("the client was closed")
        old = self._newest
        if old is None or old.context is not context:
            self._newest = Generation(context, self._most_connections)
            if old is not None and not old.users:
                await old.session.close()
        generation = self._newest
        assert generation is not None  # noqa: S101 - for type checkers: set above
        generation.users += 1
        return generation

    async def give_back(self, generation: Generation) -> None:
        """Take back what was lent."""
        generation.users -= 1
        if not generation.users and generation is not self._newest:
            await generation.session.close()

    async def close(self) -> None:
        """Close all idle connections now, and the others when their requests fail or end."""
        self._is_closed = True
        newest, self._newest = self._newest, None
        if newest is not None:
            await newest.session.close()
