"""TLS by itself, against OpenSSL's other side: bytes in pieces, refusals, and each way to end."""

import asyncio
import ssl

import pytest

from fakes.certificates import Authority
from fakes.http_server import server_context
from fakes.line import Line
from mpiop.kube.errors import TransportError
from mpiop.kube.http1 import Connection
from mpiop.kube.tls import TLSConfig, build_context
from mpiop.kube.tls_transport import TLSTransport

UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\nhi"


class Pair:
    """A connection, and the server at the end of its line."""

    def __init__(self, authority: Authority, trusted: Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        context = build_context(TLSConfig(ca_data=trusted.certificate), None)
        context.maximum_version = version
        self.connection = Connection()
        self.tls = TLSTransport(self.connection, context, "127.0.0.1")
        self.line = Line(self.tls)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        accepting = server_context(authority.issue("server"), "")
        self.server = accepting.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def receive(self) -> None:
        """Let the server have what was sent to it."""
        self._incoming.write(self.line.sent)
        self.line.sent = b""

    def answer(self, size: int = 2**16) -> None:
        """Let what the server sends come in pieces of `size` bytes."""
        self.feed(self._outgoing.read(), size)

    def feed(self, data: bytes, size: int = 2**16) -> None:
        """Let `data` come as the transport below would bring it."""
        for begin in range(0, len(data), size):
            piece = data[begin : begin + size]
            self.tls.get_buffer(-1)[: len(piece)] = piece
            self.tls.buffer_updated(len(piece))

    async def establish(self, size: int = 2**16) -> None:
        """Let both sides agree."""
        for _ in range(3):
            self.receive()
            try:
                self.server.do_handshake()
            except ssl.SSLWantReadError:
                self.answer(size)
        self.answer(size)
        await self.tls.established()


@pytest.fixture
async def pair(authority: Authority) -> Pair:
    return Pair(authority, authority)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [1, 2**16])
async def test_a_question_and_a_long_answer_in_pieces(authority: Authority, version: ssl.TLSVersion, size: int) -> None:
    pair = Pair(authority, authority, version)
    await pair.establish(size)
    assert pair.server.version() == version.name.replace("_", ".")
    body = bytes(range(256)) * 200
    for _ in range(2):
        pair.connection.send(b"question")
        assert b"question" not in pair.line.sent
        pair.receive()
        assert pair.server.read() == b"question"
        pair.server.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        pair.answer(size)
        assert await pair.connection.body() == body
        assert pair.connection.is_reusable


async def test_a_certificate_that_is_not_trusted_is_refused_aloud(authority: Authority) -> None:
    pair = Pair(authority, Authority("other"))
    with pytest.raises(ssl.SSLError, match=r"(?i)alert unknown ca"):
        await pair.establish()
    with pytest.raises(ssl.SSLCertVerificationError):
        await pair.tls.established()
    assert pair.line.is_aborted


async def test_what_is_no_tls_is_refused(pair: Pair) -> None:
    pair.feed(b"HTTP/1.0 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        await pair.tls.established()
    assert pair.line.is_aborted


async def test_an_end_before_both_sides_agree(pair: Pair) -> None:
    establishing = asyncio.create_task(pair.establish())
    pair.line.abort()
    with pytest.raises(ConnectionAbortedError):
        await establishing


async def test_who_is_cancelled_ends_the_connection(pair: Pair) -> None:
    establishing = asyncio.create_task(pair.tls.established())
    await asyncio.sleep(0)
    establishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await establishing
    assert pair.line.is_aborted


async def test_an_answer_of_no_told_length_needs_a_goodbye(pair: Pair) -> None:
    await pair.establish()
    pair.connection.send(b"question")
    pair.server.write(UNTIL_THE_END)
    with pytest.raises(ssl.SSLWantReadError):
        pair.server.unwrap()
    pair.answer()
    assert pair.line.is_aborted
    assert await pair.connection.body() == b"hi"


async def test_without_a_goodbye_it_was_cut(pair: Pair) -> None:
    await pair.establish()
    pair.connection.send(b"question")
    pair.server.write(UNTIL_THE_END)
    pair.answer()
    pair.tls.eof_received()
    pair.line.abort()
    with pytest.raises(TransportError, match="the answer was cut: the server closed it without a goodbye"):
        await pair.connection.body()


async def test_a_record_that_was_changed_on_its_way_ends_the_connection(pair: Pair) -> None:
    await pair.establish()
    pair.connection.send(b"question")
    pair.server.write(UNTIL_THE_END)
    record = bytearray(pair._outgoing.read())
    record[-1] ^= 1
    pair.feed(bytes(record))
    assert pair.line.is_aborted
    with pytest.raises(TransportError, match=r"(?i)bad record mac"):
        await pair.connection.head()


async def test_what_is_sent_after_the_end_goes_nowhere(pair: Pair) -> None:
    await pair.establish()
    pair.receive()
    pair.connection.abort()
    pair.tls.write(b"question")
    assert pair.line.sent == b""


async def test_a_pause_reaches_the_line(pair: Pair) -> None:
    await pair.establish()
    pair.tls.pause_reading()
    assert pair.line.is_paused
    pair.tls.resume_reading()
    assert not pair.line.is_paused
