"""The HTTP session of a transport: aiohttp's client without its automatic features.

No proxy and no password from the environment, no cookies, no redirects, no decompression, and no request sent twice.
"""

import io
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from mpiop import __version__
from mpiop.kube.errors import CalledOffError, ResetError, TransportError
from mpiop.kube.request import Request

IDLE_SECONDS = 30.0
"""Unused connections are closed after this: before the API server (90 s) or a NAT in between (60 s and more) does it."""

SOCKET_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    # Sent data that nobody acknowledges for so many milliseconds breaks the connection.
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
"""A peer that is gone is noticed within a minute."""

HEADERS = {
    "User-Agent": f"mpiop/{__version__}",
    # A compressed list costs the server more processor time than the local network gains.
    "Accept-Encoding": "identity",
}
PARTIAL = "application/json;as={kind};g=meta.k8s.io;v=v1"

FAILURES = (TransportError, aiohttp.ClientError, OSError)
"""What sending a request and reading its answer raise."""


def open_session() -> aiohttp.ClientSession:
    """Return a session with connections of its own; requests bring their TLS context, and each context has its own connections.

    It has no limit and no deadline: those are the transport's.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=open_socket),
        headers=HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(_send_once,),
        auto_decompress=False,
    )


def open_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket for `address` (a row of `getaddrinfo`) whose peer the kernel probes when it is silent."""
    family, kind, protocol = address[:3]
    connection = socket.socket(family, kind, protocol)
    for level, option, value in SOCKET_OPTIONS:
        connection.setsockopt(level, option, value)
    return connection


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a request again on a new connection when a reused one is dead: it retries only errors that it knows."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # never connected
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError) as error:
        raise ResetError(f"connection broken before an answer: {error}") from error
    except aiohttp.ClientConnectionError as error:
        if isinstance(error.__cause__, CalledOffError):
            raise error.__cause__ from None
        raise


def url_of(server: str, request: Request) -> URL:
    """Return where `request` goes, exactly as it is written: a name is never read as a part of a path."""
    query = f"?{urlencode(request.params)}" if request.params else ""
    return URL(f"{server}{request.path}{query}", encoded=True)


def headers_of(request: Request, token: str, extra: Sequence[tuple[str, str]] = ()) -> Sequence[tuple[str, str]]:
    """Return the headers of `request`, with the bearer token `token` if there is one, and those of the configuration."""
    headers = {"Accept": "application/json"}
    if request.metadata_only:
        headers["Accept"] = PARTIAL.format(kind="PartialObjectMetadataList" if request.verb == "list" else "PartialObjectMetadata")
    if request.body is not None:
        headers["Content-Type"] = "application/merge-patch+json" if request.method == "PATCH" else "application/json"
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return [*headers.items(), *extra]


class FencedBody(aiohttp.BytesIOPayload):
    """The body of a request; it asks the fencing once the connection is open, right before it and the headers are written to the socket.

    A stream, for aiohttp warns of large bytes: a ConfigMap may have a mebibyte.
    """

    def __init__(self, request: Request) -> None:
        """Encode the body of `request`."""
        super().__init__(io.BytesIO(msgspec.json.encode(request.body)))
        self._fencing = request.fencing

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body; aiohttp raises what the fencing raises as the cause of a ClientConnectionError."""
        self._fencing()
        await super().write_with_length(writer, content_length)


def abort(response: aiohttp.ClientResponse) -> None:
    """End a connection whose answer nobody wants any more, without the farewell of TLS: a frozen server would hold its socket for 30 s."""
    if (connection := response.connection) is not None and connection.transport is not None:
        connection.transport.abort()


def transport_error(request: Request, error: Exception) -> TransportError:
    """Return `error`, one of `FAILURES`, as one line about `request`."""
    if isinstance(error, TransportError):
        return type(error)(f"{request}: {error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        host, why = f"[{error.host}]" if ":" in error.host else error.host, error.os_error
        text = f"no connection to {host}:{error.port}: {type(why).__name__}: {why}"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"the proxy answered {error.status} {error.message}"  # aiohttp's text shows the password in the proxy's URL
    else:
        text = f"{type(error).__name__}: {error}"
    return TransportError(" ".join(f"{request}: {text}".split()))
