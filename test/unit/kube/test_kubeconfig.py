"""Kubeconfig files: contexts, users, relative paths, several files, and what is refused."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpiop.kube.config import ClientConfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_plugin import ExecConfig
from mpiop.kube.kubeconfig import load_kubeconfig
from mpiop.kube.tls import TLSConfig

V1 = "client.authentication.k8s.io/v1"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def write(path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **top: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "other", "context": {}}, {"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://k:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    } | top
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def test_data_and_token(tmp_path: Path) -> None:
    user = {"token": "one\n", "client-certificate-data": encoded("cert"), "client-key-data": encoded("key")}
    cluster = {"certificate-authority-data": encoded("ca"), "tls-server-name": "name", "proxy-url": "http://proxy:3128"}
    assert load_kubeconfig([write(tmp_path / "config", user=user, cluster=cluster)]) == ClientConfig(
        server="https://k:6443",
        tls=TLSConfig(ca_data="ca", certificate_data="cert", key_data="key", server_name="name"),
        namespace="n",
        token="one",
        proxy_url="http://proxy:3128",
    )


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    user = {"tokenFile": "token", "client-certificate": "sub/cert", "client-key": "/absolute/key"}
    path = write(tmp_path / "etc" / "config", user=user, cluster={"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True})
    config = load_kubeconfig([path])
    directory = tmp_path / "etc"
    assert config.token_file == str(directory / "token")
    assert config.tls == TLSConfig(
        ca_file=str(directory / "ca.crt"),
        certificate_file=str(directory / "sub" / "cert"),
        key_file="/absolute/key",
        is_insecure=True,
    )


def test_a_token_wins_over_its_file_and_a_plugin_over_both(tmp_path: Path) -> None:
    user: dict[str, Any] = {"token": "one", "tokenFile": "token"}
    config = load_kubeconfig([write(tmp_path / "config", user=user)])
    assert (config.token, config.token_file) == ("one", "")
    user["exec"] = {"apiVersion": V1, "command": "plugin", "interactiveMode": "Never"}
    config = load_kubeconfig([write(tmp_path / "config", user=user)])
    assert (config.token, config.token_file, config.exec_plugin) == ("", "", ExecConfig("plugin"))


def test_a_plugin_in_full(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": V1,
        "command": "./bin/plugin",
        "args": ["get", 5],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "install it",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    path = write(tmp_path / "config", user={"exec": plugin}, cluster={"certificate-authority-data": encoded("ca")})
    assert load_kubeconfig([path]).exec_plugin == ExecConfig(
        command=str(tmp_path / "bin/plugin"),
        args=("get", "5"),
        env={"A": "b"},
        api_version=V1,
        install_hint="install it",
        cluster={"server": "https://k:6443", "certificate-authority-data": encoded("ca")},
    )


def test_a_context_may_have_no_user(tmp_path: Path) -> None:
    path = write(tmp_path / "config", contexts=[{"name": "c", "context": {"cluster": "k"}}])
    assert load_kubeconfig([path]) == ClientConfig("https://k:6443")


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    one = write(tmp_path / "a" / "one", user={"tokenFile": "token"}, **{"current-context": None, "contexts": None, "clusters": None})
    two = write(tmp_path / "b" / "two", user={"token": "loses"}, cluster={"certificate-authority": "ca"})
    config = load_kubeconfig([tmp_path / "none", one, two])
    assert config.token_file == str(tmp_path / "a" / "token")
    assert config.tls.ca_file == str(tmp_path / "b" / "ca")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"current-context": ""}, "/config has no current-context; set one with `kubectl config use-context`"),
    ({"current-context": "none"}, "/config: there is no context named 'none'"),
    ({"clusters": []}, "/config: there is no cluster named 'k'"),
    ({"users": None}, "/config: there is no user named 'u'"),
    ({"clusters": [{"name": "k", "cluster": {}}]}, "/config: cluster 'k' has no server"),
    ({"user": {"as": "root", "username": "a"}}, "/config: user 'u' asks for as, username, which is not supported"),
    ({"user": {"auth-provider": {"name": "gcp"}}}, "/config: user 'u' asks for auth-provider"),
    ({"user": {"client-key-data": "*"}}, "the kubeconfig's client-key-data is not the base64 of a PEM file"),
    ({"user": {"exec": {"apiVersion": V1}}}, "the kubeconfig's exec plug-in has no command"),
    ({"user": {"exec": {"command": "p", "apiVersion": "v0"}}}, "p: apiVersion 'v0' is not supported"),
    (
        {"user": {"exec": {"command": "p", "apiVersion": V1, "interactiveMode": "Always"}}},
        "p: it wants to talk to a person",
    ),
    ({"cluster": {"proxy-url": "socks5://p"}}, "/config: proxy-url 'socks5://p' is not supported"),
    ({"cluster": {"proxy-url": "http://p:port"}}, "/config: proxy-url 'http://p:port' is no URL"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig([write(tmp_path / "config", **fields)])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"), [("a: [", "is not YAML: while parsing"), ("", "holds no mapping"), ("- 1", "holds no mapping")]
)
def test_what_is_no_kubeconfig_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError, match=f"the kubeconfig {path} {message}"):
        load_kubeconfig([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the kubeconfig .*/none cannot be read: No such file"):
        load_kubeconfig([tmp_path / "none"])
    with pytest.raises(ConfigError, match=r"KUBECONFIG names no file that exists: .*/none, .*/nothing"):
        load_kubeconfig([tmp_path / "none", tmp_path / "nothing"])
