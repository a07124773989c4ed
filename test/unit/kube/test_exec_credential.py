"""Credential plug-ins: run once, kept until they expire, and never gone without (T6)."""

import asyncio
import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpiop.kube import kubeconfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_credential import ExecCredential
from mpiop.kube.kubeconfig import load_kubeconfig

pytestmark = pytest.mark.real_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class Wall:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> datetime:
        return self.time


class Plugin:
    """A shell script that a kubeconfig names; each run adds a line to `runs`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "bin" / "plugin"

    def write(self, text: str) -> None:
        """Let the plug-in do `text`."""
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(f"#!/bin/sh\necho run >> {shlex.quote(str(self.directory / 'runs'))}\n{text}\n")
        self.path.chmod(0o755)

    def credential(self, wall: Wall | None = None, **config: Any) -> ExecCredential:
        """Return the credential of a kubeconfig that names the plug-in."""
        plugin = {"apiVersion": V1, "command": "./bin/plugin", **config}
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://a"}}],
            "users": [{"name": "u", "user": {"exec": plugin}}],
        }
        (self.directory / "config").write_text(yaml.safe_dump(content))
        found = load_kubeconfig([self.directory / "config"]).exec_plugin
        assert found is not None
        return ExecCredential(found, wall or Wall())

    @property
    def runs(self) -> int:
        """Return how often it ran."""
        return (self.directory / "runs").read_text().count("run")


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def saying(status: Any, version: str = V1) -> str:
    return f"printf %s {shlex.quote(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))}"


async def test_a_token_without_expiry_is_kept(plugin: Plugin) -> None:
    plugin.write(saying({"token": " one\n"}))
    source = plugin.credential()
    found = await asyncio.gather(*(source.current() for _ in range(5)))
    assert {credential.token for credential in found} == {"one"}
    assert plugin.runs == 1


async def test_an_expiring_token_is_renewed_in_time(plugin: Plugin) -> None:
    wall = Wall()
    plugin.write(saying({"token": "one", "expirationTimestamp": "2026-01-01T01:00:00Z"}))
    source = plugin.credential(wall)
    await source.current()
    wall.time = NOW + timedelta(seconds=3589)
    await source.current()
    assert plugin.runs == 1
    wall.time = NOW + timedelta(seconds=3590)
    await source.current()
    assert plugin.runs == 2


async def test_T6_many_401_at_once_run_it_once(plugin: Plugin) -> None:
    plugin.write(f"number=$(wc -l < {plugin.directory}/runs); " + saying({"token": "@"}) + ' | sed "s/@/$number/"')
    source = plugin.credential()
    failed = await source.current()
    assert all(await asyncio.gather(*(source.refresh(failed) for _ in range(5))))
    assert (await source.current()).token.strip() == "2"
    assert plugin.runs == 2


async def test_a_client_certificate_is_taken(plugin: Plugin) -> None:
    plugin.write(saying({"clientCertificateData": "certificate", "clientKeyData": "key"}, V1BETA1))
    credential = await plugin.credential(apiVersion=V1BETA1).current()
    assert credential.certificate is not None
    assert (credential.certificate.certificate, credential.certificate.key) == ("certificate", "key")


async def test_what_the_plugin_receives(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    text = f'echo "$KUBERNETES_EXEC_INFO" > {plugin.directory}/info; echo "$1 $2 $INHERITED $GIVEN" > {plugin.directory}/rest; '
    plugin.write(text + saying({"token": "one"}))
    source = plugin.credential(args=["argument", 5], env=[{"name": "GIVEN", "value": "too"}], provideClusterInfo=True)
    await source.current()
    spec = {"interactive": False, "cluster": {"server": "https://a"}}
    assert json.loads((plugin.directory / "info").read_text()) == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}
    assert (plugin.directory / "rest").read_text() == "argument 5 yes too\n"


async def test_a_flood_on_stderr_does_not_block_it(plugin: Plugin) -> None:
    plugin.write("head -c 1000000 /dev/zero | tr '\\0' x >&2; " + saying({"token": "one"}))
    assert (await plugin.credential().current()).token


async def test_it_does_not_block_the_event_loop(plugin: Plugin) -> None:
    plugin.write(f"while [ ! -e {plugin.directory}/go ]; do sleep 0.01; done; " + saying({"token": "one"}))
    running = asyncio.create_task(plugin.credential().current())
    await asyncio.sleep(0.1)
    assert not running.done()
    (plugin.directory / "go").touch()
    assert "one" in (await running).token


FAILURES = [
    ("echo oh dear >&2; exit 3", "./bin/plugin: exec: process returned 3. oh dear"),
    ("exit 1", "./bin/plugin: exec: process returned 1"),
    ("echo no json", "./bin/plugin: exec: failed to decode process output"),
    ("echo []", "./bin/plugin: exec: malformed response"),
    ("echo 5", "./bin/plugin: "),
    (saying({"token": "one"}, V1BETA1), f"./bin/plugin: exec: plugin api version {V1BETA1} does not match {V1}"),
    (saying(None), "./bin/plugin: it gave neither a token nor a client certificate"),
    (saying("token"), "./bin/plugin: it gave neither a token nor a client certificate"),
    (saying({"token": " "}), "./bin/plugin: it gave neither a token nor a client certificate"),
    (saying({"clientCertificateData": "x"}), "./bin/plugin: it gave only one of clientCertificateData and clientKeyData"),
]


@pytest.mark.parametrize(("text", "message"), FAILURES)
async def test_a_failure_is_an_error_and_never_an_anonymous_request(plugin: Plugin, text: str, message: str) -> None:
    plugin.write(text)
    source = plugin.credential()
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            await source.current()
        assert str(caught.value).startswith(f"credential plug-in {message}")


async def test_a_failing_refresh_is_an_error(plugin: Plugin) -> None:
    plugin.write(f"test $(wc -l < {plugin.directory}/runs) = 1 || exit 1; " + saying({"token": "one"}))
    source = plugin.credential()
    failed = await source.current()
    with pytest.raises(ConfigError):
        await source.refresh(failed)


async def test_a_token_that_would_be_a_header_is_refused(plugin: Plugin) -> None:
    plugin.write(saying({"token": "one\r\nImpersonate-User: root"}))
    with pytest.raises(ConfigError, match="more than a token"):
        await plugin.credential().current()


async def test_a_missing_program_comes_with_the_hint(plugin: Plugin) -> None:
    with pytest.raises(ConfigError, match=r"No such file or directory Install it from somewhere\."):
        await plugin.credential(installHint="Install it\nfrom somewhere.").current()


async def test_a_program_is_searched_in_the_path(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.write(saying({"token": "one"}))
    monkeypatch.setenv("PATH", str(plugin.path.parent), prepend=":")
    assert "one" in (await plugin.credential(command="plugin").current()).token


@pytest.mark.parametrize("waiting", ["exec sleep 1000", "sleep 1000 & wait"], ids=["itself", "its child"])
async def test_a_plugin_that_hangs_is_ended_with_its_children(plugin: Plugin, monkeypatch: pytest.MonkeyPatch, waiting: str) -> None:
    monkeypatch.setattr(kubeconfig, "PLUGIN_SECONDS", 0.3)
    plugin.write(f"echo $$ > {plugin.directory}/pid; {waiting}")
    async with asyncio.timeout(10):
        with pytest.raises(ConfigError, match=r"process returned 124\. timeout: sending signal TERM"):
            await plugin.credential().current()
    assert is_gone((plugin.directory / "pid").read_text())


async def test_a_plugin_that_fails_at_a_terminal_is_an_error_too(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stderr", None)
    plugin.write("exit 1")
    with pytest.raises(ConfigError, match=r"credential plug-in \./bin/plugin: it failed"):
        await plugin.credential().current()


class Terminal:
    """What the package takes for a terminal."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def test_a_plugin_runs_only_when_it_is_asked(plugin: Plugin) -> None:
    plugin.write(saying({"token": "one"}))
    plugin.credential()
    assert not (plugin.directory / "runs").exists()


def is_gone(pid: str) -> bool:
    return not Path(f"/proc/{pid.strip()}").exists()
