"""Kubeconfig files: contexts, users, relative paths, several files, and what is refused."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.kubeconfig import IN_MEMORY, load_kubeconfig
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
        "clusters": [{"name": "k", "cluster": {"server": "https://k:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    } | top
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")


def test_data_and_token(tmp_path: Path) -> None:
    user = {"token": "one\n", "client-certificate-data": encoded("cert"), "client-key-data": encoded("key")}
    cluster = {"certificate-authority-data": encoded("ca"), "tls-server-name": "name", "proxy-url": "http://me:secret@proxy:3128"}
    config = load_kubeconfig([write(tmp_path / "config", user=user, cluster=cluster)])
    assert (config.server, config.namespace, config.token, config.token_file) == ("https://k:6443", "n", "one", "")
    assert config.proxy_url == "http://me:secret@proxy:3128"
    assert (config.tls.server_name, config.tls.is_insecure) == ("name", False)
    files = [Path(file) for file in config.tls.files]
    assert [file.read_text() for file in files] == ["ca", "cert", "key"]
    for file in files:
        assert str(file.parent) == IN_MEMORY
        assert file.stat().st_mode & 0o077 == 0, "a private key is for nobody else"


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    directory, absolute = tmp_path / "etc", tmp_path / "absolute"
    touch(absolute, directory / "ca.crt", directory / "cert")
    user = {"tokenFile": "token", "client-certificate": "cert", "client-key": str(absolute)}
    path = write(directory / "config", user=user, cluster={"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True})
    config = load_kubeconfig([path])
    assert config.token_file == str(directory / "token"), "a file that is read again, not its content"
    assert config.tls == TLSConfig(
        ca_file=str(directory / "ca.crt"), certificate_file=str(directory / "cert"), key_file=str(absolute), is_insecure=True
    )


def test_what_is_empty_is_not_there(tmp_path: Path) -> None:
    touch(tmp_path / "ca")
    user = {"token": "", "tokenFile": "token", "client-certificate": "", "as": "", "exec": None}
    cluster = {"certificate-authority-data": "", "certificate-authority": "ca", "proxy-url": ""}
    config = load_kubeconfig([write(tmp_path / "config", user=user, cluster=cluster)])
    assert (config.token_file, config.tls.ca_file) == (str(tmp_path / "token"), str(tmp_path / "ca"))


def test_a_token_wins_over_its_file_and_a_plugin_over_both(tmp_path: Path) -> None:
    user: dict[str, Any] = {"token": "one", "tokenFile": "token"}
    config = load_kubeconfig([write(tmp_path / "config", user=user)])
    assert (config.token, config.token_file, config.exec_plugin) == ("one", "", None)
    user["exec"] = {"apiVersion": V1, "command": "plugin", "interactiveMode": "Never"}
    config = load_kubeconfig([write(tmp_path / "config", user=user)])
    assert (config.token, config.token_file) == ("", "")
    assert config.exec_plugin


def test_a_context_may_have_no_user(tmp_path: Path) -> None:
    path = write(tmp_path / "config", contexts=[{"name": "c", "context": {"cluster": "k"}}])
    assert load_kubeconfig([path]) == ClientConfig("https://k:6443")


def test_F52_the_environment_names_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert load_kubeconfig([write(tmp_path / "config")]).proxy_url == ""


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    touch(a / "cert", a / "key", b / "ca")
    user = {"tokenFile": "token", "client-certificate": "cert", "client-key": "key"}
    one = write(a / "one", user=user, contexts=None, clusters=None)
    two = write(b / "two", user={"token": "loses"}, cluster={"certificate-authority": "ca"}, **{"current-context": "other"})
    config = load_kubeconfig([tmp_path / "none", one, two])
    assert config.token_file == str(a / "token")
    assert config.tls == TLSConfig(ca_file=str(b / "ca"), certificate_file=str(a / "cert"), key_file=str(a / "key"))


def test_a_path_may_have_a_colon(tmp_path: Path) -> None:
    assert load_kubeconfig([write(tmp_path / "a:b" / "config")]).server == "https://k:6443"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"current-context": ""}, "/config has no current-context; set one with `kubectl config use-context`"),
    ({"current-context": "none"}, "Expected object with name none in"),
    ({"clusters": []}, "Expected object with name k in"),
    ({"users": None}, "Expected object with name u in"),
    ({"clusters": [{"name": "k", "cluster": {"tls-server-name": "x"}}]}, "/config: context 'c' names a cluster that has no server"),
    ({"clusters": [{"name": "k"}]}, "/config cannot be used: "),
    ({"users": [{"user": {}}]}, "/config cannot be used: "),
    ({"user": {"as": "root", "username": "a"}}, "/config: context 'c' names a user who asks for as, username, which is not supported"),
    ({"user": {"as-uid": "1"}}, "asks for as-uid,"),
    ({"user": {"as-groups": ["g"]}}, "asks for as-groups,"),
    ({"user": {"as-user-extra": {"a": ["b"]}}}, "asks for as-user-extra,"),
    ({"user": {"username": "a", "password": "b"}}, "asks for username, password,"),
    ({"user": {"auth-provider": {"name": "oidc"}}}, "asks for auth-provider,"),
    ({"user": {"client-certificate": "none"}}, "/config cannot be used: File does not exist: "),
    ({"user": {"client-key-data": "*x"}}, "/config cannot be used: "),
    ({"user": {"exec": {"apiVersion": V1}}}, "the kubeconfig's exec plug-in has no command"),
    ({"user": {"exec": {"command": "p"}}}, "missing key 'apiVersion'"),
    (
        {"user": {"exec": {"command": "p", "apiVersion": V1, "interactiveMode": "Always"}}},
        "p: it wants to talk to a person",
    ),
    ({"cluster": {"proxy-url": "socks5://p"}}, "/config: context 'c': proxy-url 'socks5://p' is not supported"),
    ({"cluster": {"proxy-url": "http://p:port"}}, "/config: context 'c': proxy-url 'http://p:port' is no URL"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig([write(tmp_path / "config", **fields)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["a: [", "", "- 1", "5", "\x00", "contexts: 5", "current-context: c", "users: [5]"])
def test_what_is_no_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError, match=str(path)) as caught:
        load_kubeconfig([path])
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no kubeconfig: .*/none, .*/nothing does not exist"):
        load_kubeconfig([tmp_path / "none", tmp_path / "nothing"])


def test_who_runs_in_a_pod_does_not_import_the_package(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    start = f"""
import asyncio, pathlib, sys
import mpiop.operator
from mpiop.kube import config, transport
found = config.load_config(environment={{"KUBERNETES_SERVICE_HOST": "192.0.2.1"}}, service_account=pathlib.Path({str(tmp_path)!r}))
async def start():
    client = await transport.connect(found)
    await client.close()
asyncio.run(start())
sys.exit("kubernetes" in sys.modules or "yaml" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", start], check=True, timeout=60)
