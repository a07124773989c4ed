"""Requests over HTTP/1.1: credentials, deadlines, retries.

Calls, watches and leases have connections of their own. See docs/adr/0002-transport.md.
"""

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from mpiop.clock import Clock, SystemClock
from mpiop.kube.answers import decode, decode_event
from mpiop.kube.client import Client
from mpiop.kube.config import ClientConfig
from mpiop.kube.connections import Connections, Generation, sending_once
from mpiop.kube.credentials import Authenticator
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.lines import LineSplitter
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request
from mpiop.kube.retry import Throttle, retry_delay_seconds
from mpiop.kube.silence import Silence
from mpiop.kube.tokens import Credential

Observer = Callable[[str, str, int, float], None]
"""Called after each attempt: verb, resource, HTTP status (0: no answer), seconds; of a watch, until it began."""

CONTENT_TYPES = {"PATCH": "application/merge-patch+json"}
MOST_AT_ONCE_BYTES = 2**20
PARTIAL = "application/json;as={kind};g=meta.k8s.io;v=v1"


def _ignore(verb: str, resource: str, code: int, seconds: float) -> None:
    """Observe nothing."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How to treat the API server.

    Attributes:
        deadline_seconds: From sending to the end of the answer, retries included; also the longest silence in a list.
        list_deadline_seconds: The same for lists, which may be long.
        silence_seconds: A watch without a byte for so long is dead: the server sends a bookmark each minute.
        most_in_flight: Calls at a time.
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


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer whose body is still to be read, and what was lent for it."""

    response: aiohttp.ClientResponse
    connections: Connections
    lent: Generation


class HttpTransport:
    """The transport in earnest."""

    def __init__(self, config: ClientConfig, options: TransportOptions, authenticator: Authenticator) -> None:
        """Open no connection yet."""
        self._config = config
        self._options = options
        self._authenticator = authenticator
        self._calls = Connections(options.most_in_flight)
        self._streams = Connections(0)
        self._throttle = Throttle(options.most_in_flight, options.qps, options.burst)
        self._separated: list[HttpTransport] = []
        # Deadlines are ours; aiohttp would set a timer of its own anew for each chunk of an answer.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=options.deadline_seconds)
        self._list_timeout = aiohttp.ClientTimeout(total=None, sock_connect=options.deadline_seconds, sock_read=options.deadline_seconds)

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
            answer = await self._open(request, credential)
        except StatusError as error:
            if not error.is_unauthorized or not await self._authenticator.refresh(credential):
                raise
            credential = await self._authenticator.current()
            answer = await self._open(request, credential)
        try:
            events = self._events(request, answer.response, self._authenticator.context(credential))
            try:
                yield events
            finally:
                await events.aclose()
        finally:
            await self._end(answer)

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
        answer = await self._answer(self._calls, request, credential)
        body = await self._body(request, answer)
        return decode(request, answer.response.status, answer.response.headers, body)

    async def _open(self, request: Request, credential: Credential) -> _Answer:
        """Return the answer to a watch that the server granted, of which only the head was read; `_end` ends it."""
        seconds = self._options.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                answer = await self._answer(self._streams, request, credential)
                if answer.response.status == 200:  # noqa: PLR2004 - HTTP
                    return answer
                body = await self._body(request, answer)
        except TimeoutError as error:
            raise TransportError(f"{request}: no answer within {seconds:g} s") from error
        decode(request, answer.response.status, answer.response.headers, body)
        raise TransportError(f"{request}: {answer.response.status} is no answer to a watch")

    async def _events(
        self, request: Request, response: aiohttp.ClientResponse, context: ssl.SSLContext | None
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events; end with the stream, or after a change of certificates: the watch then goes on over a new connection."""
        lines = LineSplitter()
        with Silence(response.content, self._options.silence_seconds) as silence:
            while True:
                try:
                    chunk = await response.content.readany()
                except _FAILURES as error:
                    raise _told(request, error) from error
                if not chunk:
                    return
                silence.heard()
                for line in lines.feed(chunk):
                    yield decode_event(request, line)
                if not self._authenticator.is_current(context):
                    return

    async def _answer(self, connections: Connections, request: Request, credential: Credential) -> _Answer:
        """Send `request` once and return the answer, of which only the head was read; `_body` or `_end` ends it."""
        loop = asyncio.get_running_loop()
        begun, code = loop.time(), 0
        lent: Generation | None = None
        try:
            lent = await connections.lend(self._authenticator.context(credential))
            response = await self._sent(lent.session, request, credential)
            code = response.status
            return _Answer(response, connections, lent)
        except _FAILURES as error:
            raise _told(request, error) from error
        finally:
            self._options.observer(request.verb, request.resource.plural, code, loop.time() - begun)
            if lent is not None and not code:
                await connections.give_back(lent)

    async def _body(self, request: Request, answer: _Answer) -> bytes:
        """Return the rest of an answer, which ends it."""
        try:
            return await answer.response.read()
        except _FAILURES as error:
            raise _told(request, error) from error
        finally:
            await self._end(answer)

    @staticmethod
    async def _end(answer: _Answer) -> None:
        """Close the connection of an answer that was not read to its end, leave it to others otherwise."""
        answer.response.close()
        await answer.connections.give_back(answer.lent)

    async def _sent(self, session: aiohttp.ClientSession, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        query = f"?{urlencode(request.params)}" if request.params else ""
        return await session.request(
            request.method,
            URL(f"{self._config.server}{request.path}{query}", encoded=True),
            data=_data(request),
            headers=_headers(request, credential),
            middlewares=(sending_once(request.guard),),
            allow_redirects=False,
            proxy=self._config.proxy_url or None,
            server_hostname=self._config.tls.server_name or None,
            timeout=self._list_timeout if request.verb == "list" else self._timeout,
        )


def _data(request: Request) -> bytes | io.BytesIO | None:
    """Return the body, a large one as a stream: aiohttp warns of it in bytes, and a ConfigMap of 10,000 hosts has a mebibyte."""
    if request.body is None:
        return None
    data = msgspec.json.encode(request.body)
    return data if len(data) < MOST_AT_ONCE_BYTES else io.BytesIO(data)


def _headers(request: Request, credential: Credential) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if request.metadata_only:
        kind = "PartialObjectMetadataList" if request.verb == "list" else "PartialObjectMetadata"
        headers["Accept"] = PARTIAL.format(kind=kind)
    if request.body is not None:
        headers["Content-Type"] = CONTENT_TYPES.get(request.method, "application/json")
    if credential.token:
        headers["Authorization"] = f"Bearer {credential.token}"
    return headers


_FAILURES = (TransportError, aiohttp.ClientError, OSError)


def _told(request: Request, error: Exception) -> TransportError:
    """Return what the HTTP library or the operating system raised, one of `_FAILURES`, as one line about `request`."""
    if isinstance(error, TransportError):
        return type(error)(f"{request}: {error}")
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return TransportError(f"{request}: {what}")
