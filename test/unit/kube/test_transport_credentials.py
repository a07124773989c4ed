"""Credentials over real connections: 401, rotation, client certificates, server names, proxies (T1, T2, T6, F17, F51)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.http_server import Exchange, http_server
from mpiop.kube import session
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import ConfigError, StatusError
from mpiop.kube.objects import Key
from mpiop.kube.resources import PODS, Selection
from mpiop.kube.tls import CHECK_SECONDS, TLSConfig
from mpiop.kube.transport import connect
from virtual_time import ManualClock

pytestmark = pytest.mark.real_time

POD = Key("default", "a")


def accepting(token: str) -> Any:
    """Return a script that answers 401 to all but `token`."""

    async def script(exchange: Exchange) -> None:
        if exchange.headers.get("authorization") != f"Bearer {token}":
            await exchange.refuse(401, "Unauthorized", "who are you?")
        elif exchange.query.get("watch"):
            await exchange.begin_stream()
            await exchange.chunk(b"")
        else:
            await exchange.answer({"kind": "Pod"})

    return script


async def watched(client: Any) -> list[Any]:
    async with client.watch(Selection(PODS), resource_version="0", timeout_seconds=5) as events:
        return [event async for event in events]


@pytest.mark.parametrize("ask", [lambda client: client.get(PODS, POD), watched], ids=["a call", "a watch"])
async def test_T1_F17_a_401_reads_the_token_again_and_tries_once(bench: Any, ask: Callable[[Any], Awaitable[Any]]) -> None:
    path = bench.directory / "token"
    path.write_text("one\n")
    server, client = await bench.connect(accepting("two"), config={"token_file": str(path)})
    with pytest.raises(StatusError) as caught:
        await ask(client)
    assert caught.value.is_unauthorized
    assert len(server.exchanges) == 2
    path.write_text("two\n")
    await ask(client)
    assert len(server.exchanges) == 4
    await ask(client)
    assert len(server.exchanges) == 5


async def test_a_token_that_cannot_change_is_not_tried_twice(bench: Any) -> None:
    server, client = await bench.connect(accepting("two"), config={"token": "one"})
    with pytest.raises(StatusError):
        await client.get(PODS, POD)
    with pytest.raises(StatusError):
        await watched(client)
    assert len(server.exchanges) == 2


async def test_T6_a_401_runs_the_plugin_once_more(bench: Any) -> None:
    runs: list[str] = []

    def plugin() -> dict[str, str]:
        runs.append("run")
        return {"token": str(len(runs))}

    client = await bench.client(await bench.serve(accepting("2")), config={"exec_plugin": plugin})
    await asyncio.gather(*(client.get(PODS, POD) for _ in range(5)))
    await client.get(PODS, POD)
    assert len(runs) == 2


async def test_T2_a_rotated_client_certificate_is_used_and_old_connections_end(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_SECONDS", 0.3)
    certificate, key = bench.directory / "tls.crt", bench.directory / "tls.key"
    bench.authority.issue("one").write(certificate, key)
    release = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if exchange.query.get("watch"):
            await exchange.begin_stream()
            await release.wait()
            await exchange.event("ADDED", "b")
            await exchange.writer.wait_closed()
            return
        subject = dict(pair[0] for pair in exchange.client_certificate["subject"])
        await exchange.answer({"kind": "Pod", "metadata": {"name": subject["commonName"]}})

    clock = ManualClock()
    server = await bench.serve(script)
    tls = TLSConfig(ca_data=bench.authority.certificate, certificate_file=str(certificate), key_file=str(key))
    client = await bench.client(server, config={"tls": tls}, clock=clock)
    async with asyncio.timeout(10):
        assert (await client.get(PODS, POD))["metadata"]["name"] == "one"
        watching = asyncio.create_task(watched(client))
        while len(bench.observed) < 2:  # noqa: ASYNC110 - until the watch began
            await asyncio.sleep(0.01)
        bench.authority.issue("two").write(certificate, key)
        clock.seconds = CHECK_SECONDS
        assert (await client.get(PODS, POD))["metadata"]["name"] == "two"
        release.set()
        assert [event["object"]["metadata"]["name"] for event in await watching] == ["b"], "the watch ends in order, after an event"
        assert server.connections == 2
        while server.open_connections > 1:  # noqa: ASYNC110 - the other side of a socket
            await asyncio.sleep(0.01)


async def test_T2_a_call_under_way_is_not_cut_by_a_rotation(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_SECONDS", 0.3)
    path = bench.directory / "ca.crt"
    path.write_text(bench.authority.certificate)
    release = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if exchange.path.endswith("/slow"):
            await release.wait()
        await exchange.answer({"kind": "Pod"})

    clock = ManualClock()
    server, client = await bench.connect(script, config={"tls": TLSConfig(ca_file=str(path))}, clock=clock)
    slow = asyncio.create_task(client.get(PODS, Key("default", "slow")))
    while not server.exchanges:  # noqa: ASYNC110 - the other side of a socket
        await asyncio.sleep(0.01)
    path.write_text(bench.authority.certificate + "\n")
    clock.seconds = CHECK_SECONDS
    await client.get(PODS, POD)
    release.set()
    assert (await slow).get("kind") == "Pod"
    async with asyncio.timeout(5):
        while server.open_connections > 1:  # noqa: ASYNC110 - the other side of a socket
            await asyncio.sleep(0.01)


async def test_plain_http_needs_no_certificates() -> None:
    async with http_server(accepting("t")) as server:
        client = await connect(ClientConfig(server.url, TLSConfig(ca_file="/nowhere"), token="t"))
        await client.get(PODS, POD)
        assert await watched(client) == []
        await client.close()


def failing() -> Any:
    raise ConfigError("plug-in failed")


async def test_connecting_fails_at_once_where_no_credential_can_be_had(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="token file"):
        await connect(ClientConfig("https://192.0.2.1", token_file=str(tmp_path / "none")))
    with pytest.raises(ConfigError, match="plug-in failed"):
        await connect(ClientConfig("https://192.0.2.1", exec_plugin=failing))
    with pytest.raises(ConfigError, match="cannot be read"):
        await connect(ClientConfig("https://192.0.2.1", TLSConfig(ca_file=str(tmp_path / "none"))))
