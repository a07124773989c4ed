"""Requests over HTTP/1.1: credentials, deadlines, retries.

Calls, watches and leases have connections of their own. See docs/adr/0002-transport.md.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp

from mpiop.clock import Clock, SystemClock
from mpiop.kube import large
from mpiop.kube.answers import Head, decode, decode_event, warning_texts
from mpiop.kube.async_credentials import AsyncAuthenticator
from mpiop.kube.client import Client
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import KubeError, StatusError, TooLargeError, TransportError
from mpiop.kube.lines import LineSplitter
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request
from mpiop.kube.retry import retry_delay_seconds
from mpiop.kube.session import FAILURES, FencedBody, abort, headers_of, open_session, transport_error, url_of
from mpiop.kube.throttle import Throttle
from mpiop.kube.tokens import Credential

_Answer = TypeVar("_Answer")

Observer = Callable[[str, str, int, float], None]
"""Called after each attempt with verb, resource, HTTP status (0: no answer) and seconds (of a watch: until its first byte)."""


def _ignore(verb: str, resource: str, code: int, seconds: float) -> None:
    """Observe nothing."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Settings of a transport.

    Attributes:
        deadline_seconds: From sending to the end of the answer, retries included; also the idle timeout of a list.
        list_deadline_seconds: The same for lists, which may be long.
        idle_timeout_seconds: A watch without a byte for so long is dead: the server sends a bookmark each minute.
        connect_seconds: How long a connection may take to be made.
        most_in_flight: Calls at a time; those that wait take turns by the flow of the request.
        qps: Calls a second; 0 means unlimited.
        burst: Calls at once before `qps` counts.
        observer: Called after each attempt, for metrics.
    """

    deadline_seconds: float = 10.0
    list_deadline_seconds: float = 60.0
    idle_timeout_seconds: float = 150.0
    connect_seconds: float = 5.0
    most_in_flight: int = 32
    qps: float = 0.0
    burst: int = 0
    observer: Observer = _ignore


DEFAULTS = TransportOptions()
BODY_LIMIT_BYTES = 32 * 1024 * 1024
"""What is read of an answer. One object has 3 MiB at most, and some 7,000 Pods fit into one list; a list of more is read in pages."""


async def connect(config: ClientConfig, options: TransportOptions = DEFAULTS, clock: Clock | None = None) -> Client:
    """Return a client for the API server of `config`; nothing is sent yet.

    Raises:
        ConfigError: A certificate, token file or credential plug-in cannot be used.
    """
    authenticator = AsyncAuthenticator(config, clock or SystemClock())
    await authenticator.current()
    return Client(HttpTransport(config, options, authenticator))


class HttpTransport:
    """The transport that is used outside tests."""

    def __init__(self, config: ClientConfig, options: TransportOptions, authenticator: AsyncAuthenticator) -> None:
        """Open no connection yet."""
        self._config = config
        self._options = options
        self._authenticator = authenticator
        self._session = open_session()
        self._throttle = Throttle(options.most_in_flight, options.qps, options.burst)
        self._separated: list[HttpTransport] = []
        # Deadlines are ours. What may take longer than a deadline is bound by aiohttp's timeout between two reads.
        timeout = partial(aiohttp.ClientTimeout, total=None, connect=options.connect_seconds)
        self._timeout = timeout()
        self._timeouts = {"list": timeout(sock_read=options.deadline_seconds), "watch": timeout(sock_read=options.idle_timeout_seconds)}

    async def call(self, request: Request) -> dict[str, Any]:
        """Send `request`, with the allowed retries, and return the decoded answer (see `Transport.call`)."""
        seconds = self._options.list_deadline_seconds if request.verb == "list" else self._options.deadline_seconds
        async with self._throttle.turn(request.key.namespace, request.flow):
            return await self._authenticated(lambda credential: self._with_retries(request, credential, seconds))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[WatchEvent]]:
        """Open the watch `request` and yield its events (see `Transport.stream`)."""
        response, context = await self._authenticated(lambda credential: self._open(request, credential))
        async with response, aclosing(self._events(request, response, context)) as events:
            try:
                yield events
            finally:
                abort(response)

    def separate(self, deadline_seconds: float) -> "HttpTransport":
        """Return a transport with connections of its own, no rate limit, and the same credentials."""
        options = replace(self._options, deadline_seconds=deadline_seconds, list_deadline_seconds=deadline_seconds, qps=0.0)
        separated = HttpTransport(self._config, options, self._authenticator)
        self._separated.append(separated)
        return separated

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._separated:
            await transport.close()
        await self._session.close()

    async def _authenticated(self, send: Callable[[Credential], Awaitable[_Answer]]) -> _Answer:
        """Return the answer to `send`; after a 401 it is called once more if there may be a newer credential."""
        credential = await self._authenticator.current()
        try:
            return await send(credential)
        except StatusError as error:
            if not error.is_unauthorized or not await self._authenticator.refresh(credential):
                raise
        return await send(await self._authenticator.current())

    async def _with_retries(self, request: Request, credential: Credential, seconds: float) -> dict[str, Any]:
        loop, retries = asyncio.get_running_loop(), 0
        async with _deadline(request, seconds):
            until = loop.time() + seconds
            while True:
                try:
                    return await self._attempt(request, credential)
                except KubeError as error:
                    delay_seconds = retry_delay_seconds(request, error, retries)
                    if delay_seconds is None or loop.time() + delay_seconds >= until:
                        raise
                retries += 1
                await asyncio.sleep(delay_seconds)

    async def _attempt(self, request: Request, credential: Credential) -> dict[str, Any]:
        async with await self._send(request, credential, self._authenticator.context(credential)) as response:
            return await _decoded(request, response)

    async def _open(self, request: Request, credential: Credential) -> tuple[aiohttp.ClientResponse, ssl.SSLContext | None]:
        """Return a watch that the server granted, whose events are still to be read, and the TLS context that it was opened with."""
        context = self._authenticator.context(credential)
        async with _deadline(request, self._options.deadline_seconds):
            response = await self._send(request, credential, context)
            if response.status == HTTPStatus.OK:
                return response, context
            async with response:
                await _decoded(request, response)
        raise TransportError(f"{request}: invalid answer {response.status} to a watch")

    async def _events(
        self, request: Request, response: aiohttp.ClientResponse, context: ssl.SSLContext | None
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events; end with the stream, or after a change of certificates: the watch then continues over a new connection."""
        lines = LineSplitter()
        while True:
            try:
                chunk = await response.content.readany()
                complete = lines.feed(chunk)
            except FAILURES as error:
                raise transport_error(request, error) from error
            if not chunk:
                return
            for line in complete:
                yield await large.read(partial(decode_event, request), line)
            if not self._authenticator.is_current(context):
                return

    async def _send(self, request: Request, credential: Credential, context: ssl.SSLContext | None) -> aiohttp.ClientResponse:
        """Send `request` once; return the answer, of which only the head was read, to be used as a context."""
        loop = asyncio.get_running_loop()
        begun, code = loop.time(), 0
        if self._session.closed:
            raise TransportError(f"{request}: the client was closed")
        try:
            response = await self._session.request(
                request.method,
                url_of(self._config.server, request),
                data=None if request.body is None else FencedBody(request),
                headers=headers_of(request, credential.token, self._config.headers),
                allow_redirects=False,
                proxy=self._config.proxy_url or None,
                ssl=context or True,
                server_hostname=self._config.tls.server_name or None,
                timeout=self._timeouts.get(request.verb, self._timeout),
            )
            code = response.status
        except FAILURES as error:
            raise transport_error(request, error) from error
        else:
            return response
        finally:
            self._options.observer(request.verb, request.resource.plural, code, loop.time() - begun)


@asynccontextmanager
async def _deadline(request: Request, seconds: float) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TransportError(f"{request}: no answer within {seconds:g} s") from error


async def _decoded(request: Request, response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the object in `response`, or raise the error that the server returned instead (see `decode`)."""
    answer = await large.read(partial(decode, request, Head(response.status, response.headers)), await _body(request, response))
    for header in response.headers.getall("Warning", ()):
        for text in warning_texts(header):
            request.warn(text)
    return answer


async def _body(request: Request, response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    length = 0
    try:
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            length += len(chunk)
            if length > BODY_LIMIT_BYTES:
                abort(response)
                raise TooLargeError(f"the answer has more than {BODY_LIMIT_BYTES} bytes")
    except FAILURES as error:
        raise transport_error(request, error) from error
    return b"".join(chunks)
