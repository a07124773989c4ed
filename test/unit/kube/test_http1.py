"""One connection by itself: what comes in pieces, what comes too much, and how it ends."""

import asyncio

import pytest

from fakes.line import Line, connected
from mpiop.kube.errors import ResetError, TransportError
from mpiop.kube.http1 import MOST_UNREAD_BYTES, Connection

WHOLE = b"HTTP/1.1 200 OK\r\nX-One: a\r\nContent-Length: 2\r\n\r\nhi"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture
async def connection() -> Connection:
    return connected()


def line(connection: Connection) -> Line:
    assert isinstance(connection.transport, Line)
    return connection.transport


async def test_an_answer_byte_by_byte(connection: Connection) -> None:
    assert connection.is_reusable
    for _ in range(3):
        connection.send(b"question")
        assert not connection.is_reusable
        asking = asyncio.create_task(connection.head())
        for byte in WHOLE:
            await asyncio.sleep(0)
            connection.data_received(bytes([byte]))
        assert await asking == (200, {"x-one": "a", "content-length": "2"})
        assert not connection.is_reusable, "somebody has still to read it"
        assert await connection.body() == b"hi"
        assert connection.is_reusable
    assert line(connection).sent == b"question" * 3
    assert connection.bytes_received == 3 * len(WHOLE)


async def test_a_stream_is_read_as_it_comes_and_ends(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(STREAM + b"2\r\nab\r\n1\r\nc\r\n")
    await connection.head()
    assert await connection.read() == b"abc"
    reading = asyncio.create_task(connection.read())
    await asyncio.sleep(0)
    connection.data_received(b"1\r\nd")
    assert await reading == b"d"
    connection.data_received(b"\r\n0\r\n\r\n")
    assert await connection.read() == b""
    assert connection.is_reusable


async def test_an_answer_before_the_answer_is_none(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(b"HTTP/1.1 103 Early Hints\r\nX-Hint: a\r\n\r\n")
    asking = asyncio.create_task(connection.head())
    await asyncio.sleep(0)
    assert not asking.done()
    connection.data_received(WHOLE)
    assert await asking == (200, {"x-one": "a", "content-length": "2"})


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nConnection: close\r\n", b"HTTP/1.0 200 OK\r\n"])
async def test_what_the_server_will_close_is_not_used_again(connection: Connection, head: bytes) -> None:
    connection.send(b"question")
    connection.data_received(head + b"Content-Length: 2\r\n\r\nhi")
    assert await connection.body() == b"hi"
    assert not connection.is_reusable


async def test_an_answer_of_no_told_length_ends_with_the_connection(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(UNTIL_THE_END + b"hi")
    connection.connection_lost(None)
    assert await connection.body() == b"hi"
    assert not connection.is_reusable


async def test_a_reset_is_no_end_of_it(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(UNTIL_THE_END + b"hi")
    connection.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(TransportError, match="the answer was cut: reset"):
        await connection.body()


@pytest.mark.parametrize("come", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_an_end_before_the_head_is_a_reset(connection: Connection, come: bytes) -> None:
    connection.send(b"question")
    connection.data_received(come)
    connection.connection_lost(None)
    with pytest.raises(ResetError, match="connection broken before an answer: the server closed it"):
        await connection.head()


async def test_an_end_between_two_requests_is_noted(connection: Connection) -> None:
    connection.connection_lost(None)
    assert not connection.is_reusable
    async with asyncio.timeout(1):
        await connection.ended()


async def test_nobody_is_given_the_answer_to_another_request(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(WHOLE + WHOLE.replace(b"hi", b"no"))
    assert await connection.body() == b"hi"
    assert not connection.is_reusable
    assert line(connection).is_aborted


async def test_what_nobody_asked_for_ends_the_connection(connection: Connection) -> None:
    connection.data_received(WHOLE)
    assert not connection.is_reusable
    assert line(connection).is_aborted


async def test_what_came_before_a_cut_is_delivered_first(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(STREAM + b"2\r\nab\r\nno length\r\n")
    assert await connection.read() == b"ab"
    with pytest.raises(TransportError, match=r"what came is no answer of HTTP/1\.1"):
        await connection.read()


async def test_a_stream_that_nobody_reads_waits(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(STREAM)
    part = b"%x\r\n%s\r\n" % (MOST_UNREAD_BYTES, b"x" * MOST_UNREAD_BYTES)
    connection.data_received(part)
    assert not line(connection).is_paused
    connection.data_received(part)
    assert line(connection).is_paused
    assert len(await connection.read()) == 2 * MOST_UNREAD_BYTES
    assert not line(connection).is_paused


async def test_a_body_that_is_wanted_whole_does_not(connection: Connection) -> None:
    connection.send(b"question")
    connection.data_received(STREAM)
    part = b"%x\r\n%s\r\n" % (2 * MOST_UNREAD_BYTES, b"x" * 2 * MOST_UNREAD_BYTES)
    connection.data_received(part)
    assert line(connection).is_paused
    reading = asyncio.create_task(connection.body())
    await asyncio.sleep(0)
    connection.data_received(part)
    assert not line(connection).is_paused
    connection.data_received(b"0\r\n\r\n")
    assert len(await reading) == 4 * MOST_UNREAD_BYTES


async def test_who_reads_fails_with_what_ended_it(connection: Connection) -> None:
    connection.send(b"question")
    asking = asyncio.create_task(connection.head())
    await asyncio.sleep(0)
    connection.fail(TransportError("enough"))
    with pytest.raises(TransportError, match=r"^enough$"):
        await asking
    assert line(connection).is_aborted
