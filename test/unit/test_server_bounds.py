"""Connections that never finish their request cost the operator neither its descriptors nor its probes."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest

from fakes.http_server import listening
from mpiop.clock import SystemClock
from mpiop.server import Server, health, listener, serving_context

pytestmark = pytest.mark.real_time

MANY = 300


def serving(tls: ssl.SSLContext | None = None) -> AbstractAsyncContextManager[int]:
    return listening(Server("127.0.0.1", 0, {"/healthz": health({})}, tls))


async def is_alive(port: int, scheme: str = "http") -> bool:
    url = f"{scheme}://127.0.0.1:{port}/healthz"
    async with asyncio.timeout(1), aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
        return (response.status, await response.text()) == (200, "ok")


@contextlib.asynccontextmanager
async def unfinished(port: int, said: bytes, count: int = MANY) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open `count` connections that send `said` and no more."""
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in streams:
        writer.write(said)
    try:
        yield [reader for reader, _ in streams]
    finally:
        for _, writer in streams:
            writer.transport.abort()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


SAID = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: ", id="half a header"),
    pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", id="no body"),
    pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", id="a whole request, and the connection kept"),
]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("said", SAID)
async def test_many_unfinished_requests_leave_descriptors_and_a_quick_answer(said: bytes, scheme: str) -> None:
    tls = serving_context("", "host", SystemClock()) if scheme == "https" else None
    async with serving(tls) as port:
        before = descriptors()
        async with unfinished(port, said):
            assert await is_alive(port, scheme)
            assert descriptors() - before <= MANY + listener.MOST_CONNECTIONS + 10


async def test_a_request_has_a_deadline_from_its_connection_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.3)
    async with serving() as port, unfinished(port, b"GET /healthz HTTP/1.1\r\nA: ", count=1) as [reader]:
        begun = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert 0.2 < time.monotonic() - begun < 5


async def test_rubbish_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as port, unfinished(port, b"\0rubbish\r\n\r\n", count=3) as readers:
        answers = [await reader.read() for reader in readers]
        assert await is_alive(port)
    assert [answer.partition(b"\r\n")[0] for answer in answers] == [b"HTTP/1.0 400 Bad Request"] * 3
    assert caplog.records == []
