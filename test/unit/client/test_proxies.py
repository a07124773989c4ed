"""Which proxy of the environment is used for an API server; test_connection.py sends requests through one."""

import pytest

from mpiop.client.proxies import proxy_of_environment
from mpiop.kube.errors import ConfigError

NAME, ADDRESS, ADDRESS6 = "https://api.example.com:6443", "https://192.0.2.1:6443", "https://[2001:db8::1]:6443"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("server", "entry", "is_excepted"),
    [
        (NAME, "*", True),
        (NAME, "api.example.com", True),
        (NAME, "a.test, EXAMPLE.com ", True),
        (NAME, ".example.com", True),
        (NAME, "*.example.com", True),
        (NAME, "ple.com", False),
        (NAME, ".api.example.com", False),
        (NAME, "api.example.com:6443", True),
        (NAME, "example.com:443", False),
        ("https://api.example.com", "example.com:443", True),
        (NAME, "192.0.2.0/24", False),
        (NAME, "", False),
        (NAME, ",.,:6443", False),
        (ADDRESS, "192.0.2.1", True),
        (ADDRESS, "192.0.2.0/24", True),
        (ADDRESS, "192.0.3.0/24,2001:db8::/32", False),
        (ADDRESS, "192.0.2.1:6443", True),
        (ADDRESS, "192.0.2.1:443", False),
        (ADDRESS6, "2001:db8::/32", True),
        (ADDRESS6, "2001:db8::1", True),
        (ADDRESS6, "[2001:db8::1]:6443", True),
        (ADDRESS6, "[2001:db8::1]:443", False),
        ("https://localhost:6443", "", True),
        ("https://127.0.0.2:6443", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_hosts_are_excepted_as_by_kubectl(monkeypatch: pytest.MonkeyPatch, server: str, entry: str, *, is_excepted: bool) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", entry)
    assert proxy_of_environment(server) == ("" if is_excepted else "http://proxy:3128")


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": "proxy:3128"}, "http://proxy:3128"),
        ({"https_proxy": "https://me:secret@proxy"}, "https://me:secret@proxy"),
        ({"HTTP_PROXY": "http://proxy"}, ""),
        ({"ALL_PROXY": "http://proxy"}, "http://proxy"),
    ],
)
def test_a_proxy_is_that_of_the_scheme(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], proxy: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of_environment(NAME) == proxy


def test_a_proxy_that_is_not_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy")
    with pytest.raises(ConfigError, match="use an http:// or https:// proxy"):
        proxy_of_environment(NAME)
