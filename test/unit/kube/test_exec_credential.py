"""Credential plug-ins: run once, kept until they expire, and never gone without (T6); how they end is in `kubeconfig_cases`."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.programs import executable
from kubeconfig_cases import V1, credential, kubeconfig
from mpiop.clock import SystemClock
from mpiop.kube import exec_plugin
from mpiop.kube.async_credentials import AsyncAuthenticator
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_credential import ExecCredential
from mpiop.kube.kubeconfig import load_kubeconfig
from virtual_time import ManualClock

pytestmark = pytest.mark.real_time


class Plugin:
    """A shell script that a kubeconfig names; each run adds a line to `runs`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "bin" / "plugin"

    def write(self, text: str) -> None:
        """Let the plug-in do `text`."""
        self.path.parent.mkdir(exist_ok=True)
        executable(self.path, f"#!/bin/sh\necho run >> {shlex.quote(str(self.directory / 'runs'))}\n{text}\n")

    def config(self, cluster: dict[str, Any] | None = None, **fields: Any) -> ClientConfig:
        """Return a kubeconfig that names the plug-in."""
        user = {"exec": {"apiVersion": V1, "command": "./bin/plugin", "interactiveMode": "IfAvailable", **fields}}
        content = kubeconfig({"server": "https://a", **(cluster or {})}, user)
        (self.directory / "config").write_text(yaml.safe_dump(content))
        return load_kubeconfig([self.directory / "config"])

    def credential(self, clock: ManualClock | None = None, **fields: Any) -> ExecCredential:
        """Return its credential."""
        found = self.config(**fields).exec_plugin
        assert found is not None
        return ExecCredential(found, (clock or ManualClock()).now)

    @property
    def runs(self) -> int:
        """Return how often it ran."""
        return (self.directory / "runs").read_text().count("run")


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def test_a_token_without_expiry_is_kept(plugin: Plugin) -> None:
    plugin.write(credential(token=" one\n").replace("\\n", "\\\\n"))
    source = plugin.credential()
    assert not (plugin.directory / "runs").exists(), "it runs only when it is needed"
    with ThreadPoolExecutor() as pool:
        assert {found.token for found in pool.map(lambda _: source.current(), range(5))} == {"one"}
    assert plugin.runs == 1


def test_an_expiring_token_is_renewed_in_time(plugin: Plugin) -> None:
    clock = ManualClock()
    plugin.write(credential(token="one", expirationTimestamp="2026-01-01T01:00:00Z"))
    source = plugin.credential(clock)
    source.current()
    clock.seconds = 3589
    source.current()
    assert plugin.runs == 1
    clock.seconds = 3590
    source.current()
    assert plugin.runs == 2


def test_T6_many_401_at_once_run_it_once(plugin: Plugin) -> None:
    plugin.write(f"number=$(wc -l < {plugin.directory}/runs); " + credential(token="@") + ' | sed "s/@/$number/"')
    source = plugin.credential()
    failed = source.current()
    with ThreadPoolExecutor() as pool:
        assert all(pool.map(lambda _: source.refresh(failed), range(5)))
    assert source.current().token.strip() == "2"
    assert plugin.runs == 2


def test_a_failing_refresh_is_an_error(plugin: Plugin) -> None:
    plugin.write(f"test $(wc -l < {plugin.directory}/runs) = 1 || exit 1; " + credential(token="one"))
    source = plugin.credential()
    failed = source.current()
    with pytest.raises(ConfigError):
        source.refresh(failed)


def test_what_the_plugin_receives(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    text = f'echo "$KUBERNETES_EXEC_INFO" > {plugin.directory}/info; echo "$INHERITED $(cat)" > {plugin.directory}/rest; '
    plugin.write(text + credential(token="one"))
    (plugin.directory / "ca").write_text("pem")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x", "since": date(2026, 1, 2)}}
    cluster = {"certificate-authority": "ca", "tls-server-name": "name", "extensions": [extension]}
    plugin.credential(cluster=cluster, provideClusterInfo=True).current()
    spec = {
        "interactive": False,
        "cluster": {
            "server": "https://a",
            "tls-server-name": "name",
            "certificate-authority-data": "cGVt",
            "config": {"audience": "x", "since": "2026-01-02"},
        },
    }
    assert json.loads((plugin.directory / "info").read_text()) == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}
    assert (plugin.directory / "rest").read_text() == "yes \n", "our standard input may be a manifest"


async def test_it_does_not_block_the_event_loop(plugin: Plugin) -> None:
    plugin.write(f"while [ ! -e {plugin.directory}/go ]; do sleep 0.01; done; " + credential(token="one"))
    running = asyncio.create_task(AsyncAuthenticator(plugin.config(), SystemClock()).current())
    await asyncio.sleep(0.1)
    assert not running.done()
    (plugin.directory / "go").touch()
    assert (await running).token == "one"  # noqa: S105 - no secret


def test_a_plug_in_of_the_current_folder_is_refused(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.write(credential(token="t"))
    monkeypatch.chdir(plugin.path.parent)
    for element in ("", "."):
        monkeypatch.setenv("PATH", f"{element}:/usr/bin:/bin")
        with pytest.raises(ConfigError, match=r"credential plug-in plugin is in the current folder only"):
            plugin.credential(command="plugin").current()
    assert not (plugin.directory / "runs").exists()


def test_a_program_is_searched_in_the_path(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.write(credential(token="one"))
    monkeypatch.setenv("PATH", str(plugin.path.parent), prepend=":")
    assert plugin.credential(command="plugin").current().token == "one"  # noqa: S105 - no secret


def test_a_program_that_cannot_be_run(plugin: Plugin) -> None:
    plugin.write("")
    plugin.path.write_text("#!/no/such/shell\n")
    with pytest.raises(ConfigError, match=r"bin/plugin cannot be run: .*No such file or directory"):
        plugin.credential().current()


@pytest.mark.parametrize("waiting", ["exec sleep 1000", "sleep 1000 & wait"], ids=["itself", "its child"])
def test_a_plugin_that_hangs_is_ended_with_its_children(plugin: Plugin, monkeypatch: pytest.MonkeyPatch, waiting: str) -> None:
    monkeypatch.setattr(exec_plugin, "PLUGIN_SECONDS", 0.3)
    plugin.write(f"echo $$ > {plugin.directory}/pid; echo wait >&2; {waiting}")
    with pytest.raises(ConfigError, match=r"bin/plugin did not end within 0\.3 s: wait"):
        plugin.credential().current()
    assert not Path(f"/proc/{(plugin.directory / 'pid').read_text().strip()}").exists()


def test_at_a_terminal_the_user_sees_its_question_and_answers(plugin: Plugin) -> None:
    plugin.write('echo "Your password?" >&2; read answer; ' + credential(token="@").replace("@", "'$answer'"))
    plugin.config()
    program = f"""
from pathlib import Path
from mpiop.kube.kubeconfig import load_kubeconfig
print(load_kubeconfig([Path({str(plugin.directory / "config")!r})]).exec_plugin()["token"])
"""
    master, slave = os.openpty()
    with os.fdopen(master, "rb", buffering=0) as terminal:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=slave, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        assert b"Your password?" in terminal.read(1000)
        os.write(master, b"secret\n")
        output, _ = process.communicate(timeout=60)
    assert output == b"secret\n"
