"""Connections: the way through a proxy, when they end, and what is never done on our behalf."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.certificates import Authority
from fakes.http_server import Exchange, http_server, server_context
from mpiop.kube import session
from mpiop.kube.client import Client
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import TransportError
from mpiop.kube.objects import Key
from mpiop.kube.resources import PODS
from mpiop.kube.session import open_socket
from mpiop.kube.tls import TLSConfig
from mpiop.kube.transport import connect

pytestmark = pytest.mark.real_time

POD = Key("default", "a")


class Proxy:
    """An HTTP proxy on loopback that answers `status` and, where that is 200, lets bytes through."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[list[str]] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().splitlines()
        self.asked.append([line for line in lines if not line.startswith(("User-Agent", "Accept"))])
        method, target, _ = lines[0].split(" ")
        if method == "CONNECT":
            writer.write(f"HTTP/1.1 {self.status} As you wish\r\n\r\n".encode())
        if self.status != 200:
            writer.close()
            return
        host, _, port = target.removeprefix("http://").partition("/")[0].partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        if method != "CONNECT":
            back.write(head.replace(target.encode(), b"/" + target.split("/", 3)[3].encode()))
        await asyncio.gather(copy(reader, back), copy(there, writer))


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    except (ConnectionError, ssl.SSLError):
        pass  # one of them went
    finally:
        sink.transport.abort()


@contextlib.asynccontextmanager
async def running(proxy: Proxy, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await proxy.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    proxy.port = server.sockets[0].getsockname()[1]
    yield
    server.close()
    await asyncio.gather(*tasks)


async def thing(exchange: Exchange) -> None:
    await exchange.answer({"kind": "Thing"})


@contextlib.asynccontextmanager
async def client_of(url: str, authority: Authority, proxy_url: str) -> AsyncIterator[Client]:
    client = await connect(ClientConfig(url, TLSConfig(ca_data=authority.certificate), token="t", proxy_url=proxy_url))
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_tunnel_through_a_proxy(authority: Authority, scheme: str) -> None:
    proxy, pair = Proxy(), authority.issue("server")
    context = server_context(pair, "") if scheme == "https" else None
    async with http_server(thing, pair) as server, running(proxy, context):
        async with client_of(server.url, authority, f"{scheme}://127.0.0.1:{proxy.port}") as client:
            await client.get(PODS, POD)
            await client.get(PODS, POD)
        address = server.url.removeprefix("https://")
        assert proxy.asked == [[f"CONNECT {address} HTTP/1.1", f"Host: {address}", ""]]
        assert server.exchanges[0].headers["authorization"] == "Bearer t"


async def test_a_proxy_receives_its_user_and_no_token(authority: Authority) -> None:
    proxy = Proxy()
    async with http_server(thing, authority.issue("server")) as server, running(proxy):
        async with client_of(server.url, authority, f"http://me:p%40ss@127.0.0.1:{proxy.port}") as client:
            await client.get(PODS, POD)
        assert proxy.asked[0][2:] == ["Proxy-Authorization: Basic bWU6cEBzcw==", ""]


async def test_without_tls_a_proxy_is_sent_the_whole_url(authority: Authority) -> None:
    proxy = Proxy()
    async with http_server(thing) as server, running(proxy):
        async with client_of(server.url, authority, f"http://me@127.0.0.1:{proxy.port}") as client:
            await client.get(PODS, POD)
        assert proxy.asked[0][0] == f"GET {server.url}/api/v1/namespaces/default/pods/a HTTP/1.1"
        assert "Proxy-Authorization: Basic bWU6" in proxy.asked[0]


async def test_a_proxy_that_refuses_is_named(authority: Authority) -> None:
    proxy = Proxy(407)
    async with running(proxy), client_of("https://192.0.2.1", authority, f"http://me:hunter2@127.0.0.1:{proxy.port}") as client:
        with pytest.raises(TransportError, match=r"^get pods default/a: the proxy answered 407 As you wish$"):
            await client.get(PODS, POD)


async def test_a_certificate_behind_a_proxy_is_verified_too(authority: Authority) -> None:
    proxy = Proxy()
    async with http_server(thing, authority.issue("server")) as server, running(proxy):
        async with client_of(server.url, Authority("other"), f"http://127.0.0.1:{proxy.port}") as client:
            with pytest.raises(TransportError, match="certificate verify failed"):
                await client.get(PODS, POD)
        assert server.exchanges == []


async def test_unused_connections_are_closed_after_a_while(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_SECONDS", 0.2)
    async with http_server(thing, authority.issue("server")) as server, client_of(server.url, authority, "") as client:
        await client.get(PODS, POD)
        async with asyncio.timeout(5):
            while server.open_connections:  # noqa: ASYNC110 - the other side of a socket
                await asyncio.sleep(0.01)


def test_F53_sockets_notice_a_dead_peer_within_a_minute() -> None:
    with open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, interval, probes, user = (
            connection.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        )
    assert idle <= 30
    assert idle + interval * probes <= 60
    assert 0 < user <= 60_000
