"""R22: an answer of which nothing comes any more is ended, and no other."""

import asyncio

import pytest

from fakes.line import connected
from mpiop.kube.errors import TransportError
from mpiop.kube.http1 import Connection
from mpiop.kube.silence import Silence


async def stream() -> Connection:
    """Return a connection on which a stream has begun."""
    connection = connected()
    connection.send(b"question")
    connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    return connection


async def test_R22_silence_ends_the_reading_after_its_time_and_not_before() -> None:
    connection, loop = await stream(), asyncio.get_running_loop()
    with Silence(connection, 150.0) as silence:
        for _ in range(3):
            loop.call_later(100.0, connection.data_received, b"1\r\nx\r\n")
            assert await connection.read() == b"x"
            silence.heard()
        with pytest.raises(TransportError, match="not a byte for 150 s"):
            await connection.read()
    assert loop.time() == pytest.approx(450.0)


async def test_R22_what_came_and_was_not_read_yet_is_not_silence() -> None:
    connection, loop = await stream(), asyncio.get_running_loop()
    with Silence(connection, 150.0):
        loop.call_later(149.0, connection.data_received, b"1\r\nx\r\n")
        await asyncio.sleep(250.0)
        assert await connection.read() == b"x"
        loop.call_later(1.0, connection.data_received, b"1\r\ny\r\n")
        assert await connection.read() == b"y", "the stream goes on"


async def test_nobody_is_disturbed_afterwards() -> None:
    connection, loop = await stream(), asyncio.get_running_loop()
    with Silence(connection, 150.0):
        pass
    loop.call_later(1000.0, connection.data_received, b"1\r\nx\r\n")
    assert await connection.read() == b"x"
