"""Kubeconfig files: several of them, their paths, and what is not one. What each field does is in `kubeconfig_cases`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeconfig_cases import kubeconfig
from mpiop.clock import SystemClock
from mpiop.kube.credentials import Authenticator
from mpiop.kube.errors import ConfigError
from mpiop.kube.kubeconfig import load_kubeconfig
from mpiop.kube.tls import TLSConfig


def write(path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **top: Any) -> Path:
    content = kubeconfig({"server": "https://k:6443/", **(cluster or {})}, user or {}, namespace="n")
    content["contexts"].insert(0, {"name": "other", "context": {}})
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content | top))
    return path


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    directory, absolute = tmp_path / "etc", tmp_path / "absolute"
    user = {"tokenFile": "token", "client-certificate": "cert", "client-key": str(absolute)}
    path = write(directory / "config", user=user, cluster={"certificate-authority": "../ca.crt", "tls-server-name": "name"})
    config = load_kubeconfig([path])
    assert (config.server, config.namespace) == ("https://k:6443", "n")
    assert config.token_file == str(directory / "token"), "a file that is read again, not its content"
    assert config.tls == TLSConfig(
        ca_file=str(directory / "../ca.crt"), certificate_file=str(directory / "cert"), key_file=str(absolute), server_name="name"
    )
    link = tmp_path / "link"
    link.symlink_to(path)
    assert load_kubeconfig([link]).token_file == str(tmp_path / "token"), "as kubectl: of the link, not of what it points to"


def test_what_is_empty_is_not_there(tmp_path: Path) -> None:
    user = {"token": "", "tokenFile": "token", "client-certificate": "", "as": "", "exec": None, "auth-provider": None}
    cluster = {"certificate-authority-data": "", "certificate-authority": "ca", "proxy-url": ""}
    config = load_kubeconfig([write(tmp_path / "config", user=user, cluster=cluster)])
    assert (config.token_file, config.tls.ca_file) == (str(tmp_path / "token"), str(tmp_path / "ca"))


def test_over_plain_http_no_credential_is_sent(tmp_path: Path) -> None:
    user = {"token": "secret", "as": "jane", "client-certificate": "none", "client-key": "none"}
    config = load_kubeconfig([write(tmp_path / "config", user=user, cluster={"server": "k:8080"})])
    assert (config.server, config.token, config.tls) == ("http://k:8080", "", TLSConfig())
    assert config.headers == (("Impersonate-User", "jane"),), "as kubectl"


def test_a_server_that_is_named_replaces_that_of_the_cluster(tmp_path: Path) -> None:
    path = write(tmp_path / "config", user={"token": "t"}, cluster={"tls-server-name": "k"})
    config = load_kubeconfig([path], server="https://other")
    assert (config.server, config.token, config.tls.server_name) == ("https://other", "t", "")


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    user = {"tokenFile": "token", "client-certificate": "cert", "client-key": "key"}
    one = write(a / "one", user=user, contexts=None, clusters=None)
    two = write(b / "two", user={"token": "loses"}, cluster={"certificate-authority": "ca"}, **{"current-context": "other"})
    (tmp_path / "empty").touch()
    config = load_kubeconfig([tmp_path / "none", tmp_path / "empty", one, two, one])
    assert config.token_file == str(a / "token")
    assert config.tls == TLSConfig(ca_file=str(b / "ca"), certificate_file=str(a / "cert"), key_file=str(a / "key"))
    assert config.origin == f"kubeconfig {one}, {two}, context 'c' (cluster 'k', user 'u')"


def test_of_several_files_none_is_forgotten_because_of_an_entry_without_a_name(tmp_path: Path) -> None:
    weak = [{"user": {"token": "nobody's"}}, {"name": "u", "user": {"token": "weak"}}]
    one = write(tmp_path / "a" / "one", users=weak, contexts=[{"context": {}}, {"name": "c", "context": {"cluster": "k", "user": "u"}}])
    two = write(tmp_path / "b" / "two", user={"token": "admin"})
    config = load_kubeconfig([one, two])
    assert (config.token, config.origin) == ("weak", f"kubeconfig {one}, {two}, context 'c' (cluster 'k', user 'u')")


@pytest.mark.parametrize("text", ["- name: u\n  user: {token: *s3cret}", "- name: u\n  user: {token: !s3cret}", "[{s3cret}, {s3cret: [}]"])
def test_an_unreadable_kubeconfig_is_named_without_its_secrets(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(f"users:\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig([path])
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["socks5://bob:s3cret@p:1", "http://bob:s3 cret@p:1", "http://bob:s3/cret@p:x", "bob:s3cret@p"])
def test_the_password_of_a_proxy_is_in_no_message(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"proxy-url '.*\*\*\*@p") as caught:
        load_kubeconfig([write(tmp_path / "config", cluster={"proxy-url": url})])
    assert "cret" not in str(caught.value)


def test_a_path_may_have_a_colon(tmp_path: Path) -> None:
    assert load_kubeconfig([write(tmp_path / "a:b" / "config")]).server == "https://k:6443"


def test_a_kubeconfig_may_be_a_pipe(tmp_path: Path) -> None:
    write(tmp_path / "config")
    program = (
        "import sys, pathlib; from mpiop.kube import kubeconfig; print(kubeconfig.load_kubeconfig([pathlib.Path(sys.argv[1])]).server)"
    )
    command = f"'{sys.executable}' -c '{program}' <(cat '{tmp_path}/config')"
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60).stdout == "https://k:6443\n"


BROKEN: list[tuple[str | None, str]] = [
    (None, "{path} cannot be used as a kubeconfig: Is a directory"),
    ("a: [", "{path} cannot be used as a kubeconfig: invalid YAML (ParserError in line 1, column 5)"),
    ("- 1", "{path} cannot be used as a kubeconfig: it is not a mapping"),
    ("5", "{path} cannot be used as a kubeconfig: it is not a mapping"),
    ("\x00", "{path} cannot be used as a kubeconfig: invalid YAML (ReaderError)"),
    ("", "{path}: no such kubeconfig, or an empty one; name one with --kubeconfig or $KUBECONFIG"),
    ("a: b", "kubeconfig {path} has no current-context; choose one with `kubectl config use-context NAME`"),
    ("{current-context: [c]}", "current-context of the kubeconfig {path} must be a text: put it in quotes"),
    ("{current-context: c, contexts: 5}", "contexts of the kubeconfig {path} must be a list"),
    ("{current-context: c, contexts: [5]}", "contexts of the kubeconfig {path} must be a list of mappings"),
    ("{current-context: d, contexts: {name: d}}", "contexts of the kubeconfig {path} must be a list"),
    ("{current-context: d, contexts: [null]}", "kubeconfig {path}, context 'd': there is no context 'd'; the contexts are: ''"),
    ("{current-context: c, contexts: [{name: c}]}", "kubeconfig {path}, context 'c': there is no cluster ''; the clusters are: none"),
    ("{current-context: c, contexts: [{name: c, context: 5}]}", "context of the kubeconfig {path}'s contexts must be a mapping"),
    ("{current-context: c, contexts: [{name: c, context: {cluster: 5}}]}", "cluster of the context must be a text: put it in quotes"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_what_is_not_a_kubeconfig_is_named(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "config"
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig([path])
    assert message.format(path=path) in str(caught.value)
    assert "\n" not in str(caught.value)


def user(**fields: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "p", "interactiveMode": "Never", **fields}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"token": " "}, "the user's token has only white space"),
        (user(args=["a", 5]), "args of the user's exec must be a list of texts"),
        (user(env=["a"]), "env of the user's exec must be a list of mappings"),
        (user(env={"a": "b"}), "env of the user's exec must be a list"),
        ({"as": "jane", "as-groups": "a"}, "as-groups of the user must be a list of texts"),
        ({"as": "jane", "as-user-extra": {"a": "b"}}, "a of the user's as-user-extra must be a list of texts"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_kubeconfig([write(tmp_path / "config", user=fields)])


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"server": "https://u:s3cret@k"}, r"the API server's address has an @, \? or #; a user and a password are named under users"),
        ({"certificate-authority": "a\0b"}, "cannot be read: embedded null byte"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_named(tmp_path: Path, cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Authenticator(load_kubeconfig([write(tmp_path / "config", cluster=cluster)]), SystemClock()).current()
    assert "s3cret" not in str(caught.value)


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
