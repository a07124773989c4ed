"""How the tools for users reach an API server: certificates that change, proxies, and what a failed handshake reports."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.certificates import Authority
from fakes.http_server import Exchange, HttpServer, http_server
from mpiop.client.connection import Call, Connection
from mpiop.client.errors import NoClusterError, UnauthenticatedError
from mpiop.kube import tls
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.tls import TLSConfig

pytestmark = pytest.mark.real_time

CALL = Call("GET", "/version", "version", {})
PROXY = "http://me:secret@127.0.0.1:{port}"


async def who(exchange: Exchange) -> None:
    subject = dict(pair[0] for pair in exchange.client_certificate.get("subject", ()))
    await exchange.answer({"name": subject.get("commonName", "")})


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[HttpServer]:
    async with http_server(who, authority.issue("server"), authority.certificate) as found:
        yield found


async def answer(connection: Connection) -> Any:
    return await asyncio.to_thread(lambda: connection.send(CALL).json())


async def test_a_rotated_client_certificate_is_used(
    server: HttpServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "CHECK_SECONDS", 0.0)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    authority.issue("one").write(certificate, key)
    files = TLSConfig(ca_data=authority.certificate, certificate_file=str(certificate), key_file=str(key))
    connection = Connection(ClientConfig(server.url, files))
    assert await answer(connection) == {"name": "one"}
    authority.issue("two").write(certificate, key)
    assert await answer(connection) == {"name": "two"}
    assert await answer(connection) == {"name": "two"}
    assert server.connections == 2


async def test_where_files_in_memory_are_unknown_a_certificate_is_used_too(
    server: HttpServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.memfd_create")
    pair = authority.issue("mac")
    config = TLSConfig(ca_data=authority.certificate, certificate_data=pair.certificate, key_data=pair.key)
    assert await answer(Connection(ClientConfig(server.url, config))) == {"name": "mac"}


async def test_a_certificate_that_cannot_be_verified_is_one_sentence(server: HttpServer) -> None:
    config = ClientConfig(server.url, TLSConfig(ca_data=Authority("other").certificate), token="t", origin="kubeconfig /a, context 'c'")
    with pytest.raises(NoClusterError) as caught:
        await answer(Connection(config))
    assert str(caught.value) == (
        f"version: the certificate of {server.url} cannot be verified: self-signed certificate in certificate chain; "
        "check server and certificate-authority of kubeconfig /a, context 'c'"
    )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(authority: Authority, status: int) -> None:
    async def redirect(exchange: Exchange) -> None:
        await exchange.answer({}, status, Location="http://127.0.0.1:9/elsewhere")

    async with http_server(redirect, authority.issue("server")) as server:
        config = ClientConfig(server.url, TLSConfig(ca_data=authority.certificate), token="t", origin="kubeconfig /a")
        with pytest.raises(NoClusterError) as caught:
            await answer(Connection(config))
    assert str(caught.value) == f"version: {server.url} answers with a redirect ({status}); check server of kubeconfig /a"
    assert len(server.exchanges) == 1


async def test_without_a_credential_nothing_is_sent(server: HttpServer, authority: Authority) -> None:
    def fail() -> Any:
        raise ConfigError("plug-in failed")

    with pytest.raises(UnauthenticatedError, match=r"^plug-in failed$"):
        await answer(Connection(ClientConfig(server.url, TLSConfig(ca_data=authority.certificate), exec_plugin=fail)))
    assert server.exchanges == []


def clear(monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
async def proxy() -> AsyncIterator[tuple[int, list[list[str]]]]:
    """A proxy that refuses everybody; its port, and what it was asked."""
    asked: list[list[str]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        asked.append([line for line in lines if line.lower().startswith(("connect", "proxy-authorization"))])
        writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1], asked
    listener.close()


USES: list[tuple[str, Callable[[str], dict[str, Any]], dict[str, str], bool]] = [
    ("of the kubeconfig", lambda url: {"proxy_url": url}, {"NO_PROXY": "*"}, True),
    ("of the environment", lambda _: {}, {"HTTPS_PROXY": "{url}"}, True),
    ("unless the host is excepted", lambda _: {}, {"HTTPS_PROXY": "{url}", "NO_PROXY": "192.0.2.0/24"}, False),
]


@pytest.mark.parametrize(("fields", "environment", "is_used"), [use[1:] for use in USES], ids=[use[0] for use in USES])
async def test_a_proxy_is_used(
    proxy: tuple[int, list[list[str]]],
    monkeypatch: pytest.MonkeyPatch,
    fields: Callable[[str], dict[str, Any]],
    environment: dict[str, str],
    *,
    is_used: bool,
) -> None:
    port, asked = proxy
    url = PROXY.format(port=port)
    clear(monkeypatch, **{name: value.replace("{url}", url) for name, value in environment.items()})
    monkeypatch.setattr("mpiop.client.connection.TIMEOUT", 0.2)
    sentence = "the proxy does not connect to https://192.0.2.1:6443: .* 403 No" if is_used else "the API server does not answer"
    with pytest.raises(NoClusterError, match=sentence) as caught:
        await answer(Connection(ClientConfig("https://192.0.2.1:6443", **fields(url))))
    assert ("secret" in str(caught.value), bool(asked)) == (False, is_used)
    if is_used:
        assert asked[0][0].startswith("CONNECT 192.0.2.1:6443 HTTP/1.")
        assert asked[0][1:] == ["proxy-authorization: Basic bWU6c2VjcmV0"]


async def test_loopback_needs_no_proxy_as_for_kubectl(server: HttpServer, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    clear(monkeypatch, HTTPS_PROXY="http://127.0.0.1:9")
    assert await answer(Connection(ClientConfig(server.url, TLSConfig(ca_data=authority.certificate)))) == {"name": ""}


def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clear(monkeypatch, HTTPS_PROXY="socks5://127.0.0.1:9")
    with pytest.raises(ConfigError, match="the proxy that the environment names is not supported"):
        Connection(ClientConfig("https://192.0.2.1"))


@pytest.mark.parametrize(
    ("seconds", "query", "reports"),
    [(0.0, {}, 0), (0.3, {}, 1), (0.3, {"follow": "true"}, 0)],
    ids=["answers at once", "answers late", "a log that is silent"],
)
async def test_an_answer_that_takes_long_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, seconds: float, query: dict[str, str], reports: int
) -> None:
    monkeypatch.setattr("mpiop.client.connection.WAITING_SECONDS", 0.1)

    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await exchange.answer({})

    lines: list[str] = []
    async with http_server(late) as server:
        connection = Connection(ClientConfig(server.url), lines.append)
        for _ in range(2):
            await asyncio.to_thread(lambda: connection.send(Call("GET", "/version", "version", query)).json())
        assert lines == [f"waiting for the API server {server.url}"] * reports
