"""Requests over HTTP/1.1: credentials, deadlines, retries.

Calls, watches and leases have connections of their own. See docs/adr/0002-transport.md.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from mpiop.clock import Clock, SystemClock
from mpiop.kube.answers import decode, decode_event
from mpiop.kube.client import Client
from mpiop.kube.config import ClientConfig
from mpiop.kube.connections import Connections, Route
from mpiop.kube.credentials import Authenticator
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.http1 import Connection, Head
from mpiop.kube.lines import LineSplitter
from mpiop.kube.messages import Messages
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request
from mpiop.kube.retry import retry_delay_seconds
from mpiop.kube.silence import Silence
from mpiop.kube.throttle import Throttle
from mpiop.kube.tokens import Credential

Observer = Callable[[str, str, int, float], None]
"""Called after each attempt: verb, resource, HTTP status (0: no answer), seconds; of a watch, until it began."""


def _ignore(verb: str, resource: str, code: int, seconds: float) -> None:
    """Observe nothing."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How to treat the API server.

    Attributes:
        deadline_seconds: From sending to the end of the answer, retries included; also the longest silence in a list.
        list_deadline_seconds: The same for lists, which may be long.
        silence_seconds: A watch without a byte for so long is dead: the server sends a bookmark each minute.
        most_in_flight: Calls at a time; those that wait take turns by `FLOW`.
        qps: Calls a second; 0 is no bound.
        burst: Calls at once before `qps` counts.
        observer: Told of each attempt, for metrics.
    """

    deadline_seconds: float = 10.0
    list_deadline_seconds: float = 60.0
    silence_seconds: float = 150.0
    most_in_flight: int = 32
    qps: float = 0.0
    burst: int = 0
    observer: Observer = _ignore


DEFAULTS = TransportOptions()


async def connect(config: ClientConfig, options: TransportOptions = DEFAULTS, clock: Clock | None = None) -> Client:
    """Return a client for the API server of `config`; nothing is sent yet.

    Raises:
        ConfigError: A certificate, token file or credential plug-in cannot be used.
    """
    authenticator = Authenticator(config, clock or SystemClock())
    await authenticator.current()
    return Client(HttpTransport(config, options, authenticator))


class HttpTransport:
    """The transport in earnest."""

    def __init__(self, config: ClientConfig, options: TransportOptions, authenticator: Authenticator) -> None:
        """Open no connection yet."""
        self._config = config
        self._options = options
        self._authenticator = authenticator
        route = Route(config.server, config.proxy_url, config.tls.server_name)
        self._calls = Connections(route)
        self._streams = Connections(route)
        self._messages = Messages(route)
        self._throttle = Throttle(options.most_in_flight, options.qps, options.burst)
        self._separated: list[HttpTransport] = []

    async def call(self, request: Request) -> dict[str, Any]:
        """Send `request`, as often as the rules allow, and return the decoded answer (see `Transport.call`)."""
        async with self._throttle:
            credential = await self._authenticator.current()
            try:
                return await self._within_deadline(request, credential)
            except StatusError as error:
                if not error.is_unauthorized or not await self._authenticator.refresh(credential):
                    raise
            return await self._within_deadline(request, await self._authenticator.current())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[WatchEvent]]:
        """Open the watch `request` and yield its events (see `Transport.stream`)."""
        credential = await self._authenticator.current()
        try:
            connection = await self._open(request, credential)
        except StatusError as error:
            if not error.is_unauthorized or not await self._authenticator.refresh(credential):
                raise
            credential = await self._authenticator.current()
            connection = await self._open(request, credential)
        try:
            events = self._events(request, connection, self._authenticator.context(credential))
            try:
                yield events
            finally:
                await events.aclose()
        finally:
            self._streams.give_back(connection)

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
        await self._calls.close()
        await self._streams.close()

    async def _within_deadline(self, request: Request, credential: Credential) -> dict[str, Any]:
        seconds = self._options.list_deadline_seconds if request.verb == "list" else self._options.deadline_seconds
        try:
            async with asyncio.timeout(seconds) as deadline:
                return await self._with_retries(request, credential, deadline.when() or float("inf"))
        except TimeoutError as error:
            raise TransportError(f"{request}: no answer within {seconds:g} s") from error

    async def _with_retries(self, request: Request, credential: Credential, until: float) -> dict[str, Any]:
        retries = 0
        while True:
            try:
                return await self._attempt(request, credential)
            except KubeError as error:
                delay_seconds = retry_delay_seconds(request, error, retries)
                if delay_seconds is None or asyncio.get_running_loop().time() + delay_seconds >= until:
                    raise
            retries += 1
            await asyncio.sleep(delay_seconds)

    async def _attempt(self, request: Request, credential: Credential) -> dict[str, Any]:
        connection, head = await self._asked(self._calls, request, credential)
        return decode(request, head, await self._body(self._calls, connection, request))

    async def _open(self, request: Request, credential: Credential) -> Connection:
        """Return a lent connection that a watch has begun on: the server granted it, and its events are still to be read."""
        seconds = self._options.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                connection, head = await self._asked(self._streams, request, credential)
                if head.status == HTTPStatus.OK:
                    return connection
                body = await self._body(self._streams, connection, request)
        except TimeoutError as error:
            raise TransportError(f"{request}: no answer within {seconds:g} s") from error
        decode(request, head, body)
        raise TransportError(f"{request}: {head.status} is no answer to a watch")

    async def _events(self, request: Request, connection: Connection, context: ssl.SSLContext | None) -> AsyncGenerator[WatchEvent]:
        """Yield the events; end with the stream, or after a change of certificates: the watch then goes on over a new connection."""
        lines = LineSplitter()
        with Silence(connection, self._options.silence_seconds) as silence:
            while True:
                try:
                    chunk = await connection.read()
                    silence.heard()
                    complete = lines.feed(chunk)
                except TransportError as error:
                    raise _told(request, error) from error
                if not chunk:
                    return
                for line in complete:
                    yield decode_event(request, line)
                if not self._authenticator.is_current(context):
                    return

    async def _asked(self, connections: Connections, request: Request, credential: Credential) -> tuple[Connection, Head]:
        """Send `request` once; return the connection that was lent for it, to be given back, and the head of the answer."""
        loop = asyncio.get_running_loop()
        begun, code = loop.time(), 0
        connection: Connection | None = None
        try:
            connection = await connections.lend(self._authenticator.context(credential))
            # Only now: until it stands, the process may have been frozen.
            request.guard()
            connection.send(self._messages.message(request, credential.token))
            with self._silence(request, connection):
                head = await connection.head()
        except TransportError as error:
            raise _told(request, error) from error
        else:
            code = head.status
            return connection, head
        finally:
            self._options.observer(request.verb, request.resource.plural, code, loop.time() - begun)
            if connection is not None and not code:
                connections.give_back(connection)

    async def _body(self, connections: Connections, connection: Connection, request: Request) -> bytes:
        """Return the rest of an answer, and give the connection back."""
        try:
            with self._silence(request, connection):
                return await connection.body()
        except TransportError as error:
            raise _told(request, error) from error
        finally:
            connections.give_back(connection)

    def _silence(self, request: Request, connection: Connection) -> AbstractContextManager[object]:
        """Bound the silence of a list, whose deadline is long; that of other calls is bound by their deadline."""
        return Silence(connection, self._options.deadline_seconds) if request.verb == "list" else nullcontext()


def _told(request: Request, error: TransportError) -> TransportError:
    """Return `error` as one line about `request`."""
    return type(error)(f"{request}: {error}")
