"""Each kubeconfig of the table by both ways in: the operator's and that of the tools for users."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fakes.certificates import Authority
from fakes.http_server import HttpServer, http_server
from kubeconfig_cases import CASES, SERVER_NAME, Case, echo, seen, write
from mpiop.client import ClientError
from mpiop.client.cluster import Cluster
from mpiop.kube.config import load_config
from mpiop.kube.errors import ConfigError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.resources import PODS
from mpiop.kube.transport import connect

pytestmark = pytest.mark.real_time


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[HttpServer]:
    async with http_server(echo, authority.issue(SERVER_NAME), authority.certificate) as found:
        yield found


async def by_operator(path: Path) -> None:
    client = await connect(load_config(kubeconfig=str(path), environment={}))
    try:
        await client.get(PODS, Key("default", "a"))
    finally:
        await client.close()


async def by_tools(path: Path) -> None:
    await asyncio.to_thread(lambda: Cluster(kubeconfig=str(path)).get("/api/v1/namespaces/default/pods/a"))


ENTRIES = pytest.mark.parametrize("entry", [by_operator, by_tools], ids=["operator", "tools"])


@ENTRIES
@pytest.mark.parametrize("case", [case for case in CASES if not case.refused], ids=lambda case: case.id)
async def test_a_kubeconfig_is_used_as_kubectl_does(
    entry: Any, case: Case, server: HttpServer, authority: Authority, tmp_path: Path
) -> None:
    await entry(write(tmp_path, case, server.url, authority))
    headers = {name: value.encode().decode() for name, value in case.sends.items()}
    assert seen(server.exchanges[-1]) == (f"{case.path}/api/v1/namespaces/default/pods/a", case.name, headers)


@ENTRIES
@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=lambda case: case.id)
async def test_or_refused_in_one_sentence(entry: Any, case: Case, server: HttpServer, authority: Authority, tmp_path: Path) -> None:
    path = write(tmp_path, case, server.url, authority)
    with pytest.raises((ConfigError, TransportError, ClientError)) as caught:
        await entry(path)
    sentence = str(caught.value)
    assert case.refused.replace("$DIR", str(tmp_path)) in sentence
    assert "\n" not in sentence
    assert server.exchanges == [], "and nothing is sent"
    if not isinstance(caught.value, TransportError) and "cannot be verified" not in sentence:
        assert str(path) in sentence


@ENTRIES
async def test_a_server_may_have_an_ipv6_address(entry: Any, authority: Authority, tmp_path: Path) -> None:
    async with http_server(echo, authority.issue("server", address="::1"), address="::1") as server:
        assert server.url.startswith("https://[::1]:")
        await entry(write(tmp_path, Case(id="", user={"token": "t"}), server.url, authority))
        assert len(server.exchanges) == 1
