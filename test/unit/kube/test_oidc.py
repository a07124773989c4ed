"""OIDC tokens of a kubeconfig: refreshed when they expire, and stored for kubectl."""

import base64
from collections.abc import AsyncIterator
from errno import EBUSY, ENOSPC
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.certificates import Authority
from fakes.http_server import Exchange, HttpServer, http_server
from kubeconfig_cases import Case, jwt, oidc, write
from mpiop.clock import SystemClock
from mpiop.kube.async_credentials import AsyncAuthenticator
from mpiop.kube.config import load_config
from mpiop.kube.errors import ConfigError

pytestmark = pytest.mark.real_time

FRESH = jwt(seconds=3600)
STALE = jwt(seconds=5)
"""Expires too soon to arrive."""
FORM = "grant_type=refresh_token&refresh_token=r1"


class Provider:
    """Answers like an OIDC provider; `takes_header` is whether it reads the client's secret from the header."""

    def __init__(self) -> None:
        self.takes_header = True
        self.answer: dict[str, Any] = {"id_token": FRESH, "refresh_token": "r2"}
        self.status = 200
        self.endpoint = "https://{host}/token"
        self.location = ""
        self.forms: list[tuple[str, str]] = []

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.path.endswith("/.well-known/openid-configuration"):
            if self.location:
                await exchange.answer({}, 302, Location=self.location)
            else:
                await exchange.answer({"token_endpoint": self.endpoint.format(host=exchange.headers["host"])})
            return
        header, form = exchange.headers.get("authorization", ""), exchange.body
        self.forms.append((header, form))
        if header and not self.takes_header:
            await exchange.answer({"error": "invalid_client"}, 401)
        else:
            await exchange.answer(self.answer, self.status)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def server(authority: Authority, provider: Provider) -> AsyncIterator[HttpServer]:
    async with http_server(provider, authority.issue("provider")) as found:
        yield found


def kubeconfig(folder: Path, server: HttpServer, authority: Authority, **config: str) -> Path:
    given = {"idp-issuer-url": f"{server.url}/realm/", "client-secret": "s", "id-token": STALE, "refresh-token": "r1"}
    given |= {"idp-certificate-authority": "ca"} | config
    return write(folder, Case(id="", user=oidc(**given), files={"ca": "$CA"}), "https://192.0.2.1", authority)


@pytest.fixture
def path(server: HttpServer, authority: Authority, tmp_path: Path) -> Path:
    return kubeconfig(tmp_path, server, authority)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


async def token_of(path: Path) -> str:
    source = AsyncAuthenticator(load_config(kubeconfig=str(path), environment={}), SystemClock())
    return (await source.current()).token


@pytest.mark.parametrize("takes_header", [True, False])
async def test_an_expired_token_is_refreshed_and_stored(provider: Provider, path: Any, *, takes_header: bool) -> None:
    provider.takes_header = takes_header
    assert await token_of(path) == FRESH
    basic = f"Basic {base64.b64encode(b'me:s').decode()}"
    assert provider.forms == [(basic, FORM)] + ([] if takes_header else [("", f"{FORM}&client_id=me&client_secret=s")])
    stored = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (stored["id-token"], stored["refresh-token"], stored["client-secret"]) == (FRESH, "r2", "s")
    provider.forms.clear()
    assert await token_of(path) == FRESH, "the next process takes what is stored"
    assert provider.forms == []


async def test_a_token_that_kubectl_refreshed_meanwhile_is_taken(server: HttpServer, authority: Authority, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, server, authority)
    config = load_config(kubeconfig=str(path), environment={})
    kubeconfig(tmp_path, server, authority, **{"id-token": FRESH})
    assert (await AsyncAuthenticator(config, SystemClock()).current()).token == FRESH
    assert server.exchanges == []


REFUSALS = [
    (
        400,
        {"error": "invalid_grant", "error_description": "session\nended"},
        r"/token answered 400 session ended; check idp-issuer-url, or log in again",
    ),
    (200, {"access_token": "a"}, "/token answered 200 without an id_token; check idp-issuer-url, or log in again"),
    (200, {"id_token": "x"}, "the id-token of the OIDC provider is not a JWT with an expiry; log in again"),
]


@pytest.mark.parametrize(("status", "answer", "sentence"), REFUSALS)
async def test_a_refusal_is_one_sentence(provider: Provider, path: Path, status: int, answer: Any, sentence: str) -> None:
    provider.status, provider.answer = status, answer
    with pytest.raises(ConfigError, match=rf"^kubeconfig {path}, context 'c' \(cluster 'k', user 'u'\): .*{sentence}$"):
        await token_of(path)


async def test_a_provider_of_another_authority_gets_no_refresh_token(server: HttpServer, authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the OIDC token cannot be refreshed: .*certificate verify failed"):
        await token_of(kubeconfig(tmp_path, server, authority, **{"idp-certificate-authority": ""}))
    assert server.exchanges == []


async def test_a_refresh_token_is_not_sent_over_plain_http(provider: Provider, path: Path) -> None:
    provider.endpoint = "http://127.0.0.1:9/token"
    with pytest.raises(ConfigError, match=r"cannot be refreshed: the provider's token_endpoint must begin with https://"):
        await token_of(path)
    provider.location = "http://127.0.0.1:9/other"
    with pytest.raises(ConfigError, match=r"/\.well-known/openid-configuration answered 302"):
        await token_of(path)


async def test_a_kubeconfig_that_cannot_be_written_is_named(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def refuse(_descriptor: int) -> None:
        raise OSError(ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(ConfigError, match=r"cannot be refreshed: .*No space left on device"):
        await token_of(path)
    assert path.read_bytes() == before, "it is replaced as a whole, or not at all"
    assert names(path.parent) == {"ca", "kubeconfig"}


async def test_a_linked_kubeconfig_stays_a_link_and_keeps_its_mode(path: Any) -> None:
    path.chmod(0o640)
    real = path.parent / "real" / "config"
    real.parent.mkdir()
    path.rename(real)
    path.symlink_to(real)
    assert await token_of(path) == FRESH
    assert path.is_symlink()
    assert (real.stat().st_mode & 0o777, FRESH in real.read_text()) == (0o640, True)


async def test_a_kubeconfig_that_is_a_mount_is_written_in_place(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise OSError(EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", refuse)
    assert await token_of(path) == FRESH
    assert FRESH in path.read_text()
    assert names(path.parent) == {"ca", "kubeconfig"}
