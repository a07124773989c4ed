"""TLS between a transport and a protocol of asyncio, for clients.

asyncio's own takes most of a small request's time (docs/adr/0015-tls-transport.md). Cryptography, records and alerts are OpenSSL's in
both: what is kept here is only which bytes go where.
"""

import asyncio
import ssl
from typing import cast


class TLSTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """Carries `protocol` over another transport, whose protocol it is: TLS within TLS is one over another.

    Of asyncio's methods those are here that a `Connection` calls. The only end from this side is `abort`: no goodbye is said, for
    nothing is on its way any more, or nobody wants it.
    """

    def __init__(self, protocol: asyncio.BufferedProtocol, context: ssl.SSLContext, server_name: str) -> None:
        """Wait for the transport below (`connection_made`); the server is to prove that it is `server_name`."""
        super().__init__()
        self._protocol = protocol
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._established: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = memoryview(b"")
        self._error: Exception | None = None
        self._has_ended = self._is_goodbye = False

    async def established(self) -> None:
        """Wait until both sides agree; `protocol` has this transport then. What fails, or is cancelled, ends the connection.

        Raises:
            OSError: They do not, the certificate is refused (`ssl.SSLError`), or the connection was lost.
        """
        try:
            await self._established
        except BaseException:
            self.abort()
            raise

    # What the protocol above calls.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send `data`, encrypted."""
        if not self._has_ended:
            self._tls.write(data)
            self._send()

    def pause_reading(self) -> None:
        """Receive no more; what was received already still comes, less than a buffer."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        self._below.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Carry another protocol from now on."""
        assert isinstance(protocol, asyncio.BufferedProtocol)  # noqa: S101 - for type checkers
        self._protocol = protocol

    def abort(self) -> None:
        """End the connection now."""
        self._has_ended = True
        self._below.abort()

    # What the transport below calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello over `transport`."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for type checkers
        self._below = transport
        self._advance()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to receive: the buffer of the protocol above, which is empty whenever something comes."""
        self._buffer = memoryview(self._protocol.get_buffer(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt what was received, and hand it on."""
        self._incoming.write(self._buffer[:nbytes])
        self._advance()

    def eof_received(self) -> None:
        """Note the end: without a goodbye, somebody in between may have made it."""
        if not self._is_goodbye:
            self._error = self._error or ConnectionResetError("the server closed it without a goodbye")

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand the end on."""
        self._has_ended = True
        error = self._error or exc
        if self._established.done():
            self._protocol.connection_lost(error)
        else:
            self._established.set_exception(error or ConnectionAbortedError("ended while the two sides were to agree on TLS"))
            self._established.exception()  # nobody may be waiting any more

    def _advance(self) -> None:
        try:
            if not self._established.done():
                self._tls.do_handshake()
                self._established.set_result(None)
                self._protocol.connection_made(self)
            self._deliver()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._error = error
        self._send()  # also the alert that tells the server what is wrong
        if self._error is not None:
            self.abort()

    def _deliver(self) -> None:
        """Hand on record after record; asking for one more than there are would cost an exception."""
        while self._incoming.pending and not self._has_ended:
            count = cast("int", self._tls.read(len(self._buffer), self._buffer))  # bytes without a buffer, of which alone types know
            if not count:
                self._is_goodbye = True
                self.abort()
                return
            self._protocol.buffer_updated(count)

    def _send(self) -> None:
        if self._outgoing.pending and not self._has_ended:
            self._below.write(self._outgoing.read())
