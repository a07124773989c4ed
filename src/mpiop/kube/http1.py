"""One connection of an HTTP/1.1 client: a request, its answer, then the next request.

asyncio brings the bytes, httptools parses them (docs/adr/0013-http-client.md); what is kept here is only how far the answer has come.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import httptools

from mpiop.kube.errors import ResetError, TransportError

MOST_UNREAD_BYTES = 2**18
"""Of a stream; beyond it the peer has to wait until somebody reads."""

_BUFFER: Final = memoryview(bytearray(2**18))
"""Where all connections of the process receive: what came is parsed before anything else can come, and nothing is allocated for it."""


class Head(NamedTuple):
    """Status and headers of an answer; names in lower case, of repeated ones the last."""

    status: int
    headers: dict[str, str]


class Connection(asyncio.BufferedProtocol):
    """A connection to one server.

    One request at a time: `send`, `head`, then `body` or `read` to the end. Whoever stops before the end, or is cancelled, must `abort`.

    Attributes:
        bytes_received: All there ever were: tells who looks twice whether something came.
    """

    def __init__(self) -> None:
        """Belong to no transport yet: `connection_made` or `carry` brings it."""
        self.bytes_received = 0
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._lost = self._loop.create_future()
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._headers: dict[str, str] = {}
        self._head: Head | None = None
        self._is_asked = self._is_complete = False
        self._parts: list[bytes] = []
        self._unread_bytes = 0
        self._most_unread_bytes = MOST_UNREAD_BYTES
        self._is_paused = False

    @property
    def transport(self) -> asyncio.Transport:
        """Return what carries the bytes."""
        assert self._transport is not None  # noqa: S101 - for type checkers: who has a connection has made it
        return self._transport

    @property
    def is_reusable(self) -> bool:
        """Return whether another request may be sent: the answer was read to its end, and neither side has ended the connection."""
        return not self._is_asked and not self._parts and self._error is None

    def send(self, request: bytes) -> None:
        """Send a whole request; its answer is what comes next."""
        self._headers, self._head = {}, None
        self._is_asked, self._is_complete = True, False
        self._most_unread_bytes = MOST_UNREAD_BYTES
        self.transport.write(request)

    async def head(self) -> Head:
        """Return status and headers.

        Raises:
            ResetError: The connection ended before.
            TransportError: What came is no HTTP.
        """
        await self._until(lambda: self._head is not None)
        assert self._head is not None  # noqa: S101 - for type checkers
        return self._head

    async def body(self) -> bytes:
        """Return the rest of the answer.

        Raises:
            TransportError: It was cut.
        """
        self._most_unread_bytes = -1
        self._resume()
        await self._until(lambda: self._is_complete)
        return self._taken()

    async def read(self) -> bytes:
        """Return what came of the body since the last call, as soon as there is something; nothing at its end.

        Raises:
            TransportError: It was cut.
        """
        await self._until(lambda: bool(self._parts) or self._is_complete)
        self._resume()
        return self._taken()

    def fail(self, error: Exception) -> None:
        """Let whoever reads fail with `error`, and end the connection."""
        if self._error is None:
            self._error = error
        self._wake()
        self.abort()

    def abort(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()

    async def ended(self) -> None:
        """Wait until the connection has ended and its socket is closed."""
        await asyncio.shield(self._lost)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take what carries the bytes; once more when TLS comes on top of it."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for type checkers
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's parameter
        """Return where to receive."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what was received."""
        self.data_received(_BUFFER[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse what came."""
        self.bytes_received += len(data)
        if not self._is_asked:
            self.fail(TransportError("the server sent what nobody had asked for"))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.fail(TransportError(f"what came is no answer of HTTP/1.1: {' '.join(str(error).split())}"))
        if self._most_unread_bytes >= 0 and self._unread_bytes > self._most_unread_bytes and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end: for an answer whose length nobody told, it is its end too."""
        if self._head and exc is None and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self._is_complete = True
        if self._error is None:
            why = str(exc) if exc else "the server closed it"
            cut, broken = TransportError(f"the answer was cut: {why}"), ResetError(f"connection broken before an answer: {why}")
            self._error = cut if self._head else broken
        self._wake()
        if not self._lost.done():
            self._lost.set_result(None)

    # What httptools calls.

    def on_message_begin(self) -> None:
        """Refuse a second answer: the next request would be given what is not its own."""
        if not self._is_asked:
            raise ValueError("one answer too many")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Let `head` return, unless a better answer is to follow (1xx)."""
        status = self._parser.get_status_code()
        if status >= 200:  # noqa: PLR2004 - HTTP
            self._head = Head(status, self._headers)
            self._wake()
        else:
            self._headers = {}

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body."""
        self._parts.append(part)
        self._unread_bytes += len(part)
        if self._most_unread_bytes >= 0:
            self._wake()

    def on_message_complete(self) -> None:
        """Let `body` return."""
        if self._head is None:
            return  # of an answer before the answer
        self._is_complete = True
        if self._parser.should_keep_alive():
            self._is_asked = False
        self._wake()

    async def _until(self, has_come: Callable[[], bool]) -> None:
        while not has_come():
            if self._error is not None:
                raise self._error
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _taken(self) -> bytes:
        parts, self._parts, self._unread_bytes = self._parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
