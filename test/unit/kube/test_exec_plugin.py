"""Credential plug-ins: run once, kept until they expire, and never gone without (T6)."""

import asyncio
import json
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mpiop.kube import exec_plugin
from mpiop.kube.errors import ConfigError
from mpiop.kube.exec_plugin import ExecConfig, ExecPlugin

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


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Return a writer of shell scripts; each run adds a line to `runs`."""

    def write(text: str) -> str:
        path = tmp_path / "plugin"
        path.write_text(f"#!/bin/sh\necho run >> {shlex.quote(str(tmp_path / 'runs'))}\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


def saying(status: Any, version: str = V1) -> str:
    return f"printf %s {shlex.quote(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))}"


def runs(directory: Path) -> int:
    return (directory / "runs").read_text().count("run")


async def test_a_token_without_expiry_is_kept(script: Any, tmp_path: Path) -> None:
    plugin = ExecPlugin(ExecConfig(script(saying({"token": " one\n"}))), Wall())
    found = await asyncio.gather(*(plugin.current() for _ in range(5)))
    assert {credential.token for credential in found} == {"one"}
    assert runs(tmp_path) == 1


async def test_an_expiring_token_is_renewed_in_time(script: Any, tmp_path: Path) -> None:
    wall = Wall()
    plugin = ExecPlugin(ExecConfig(script(saying({"token": "one", "expirationTimestamp": "2026-01-01T01:00:00Z"}))), wall)
    await plugin.current()
    wall.time = NOW + timedelta(seconds=3589)
    await plugin.current()
    assert runs(tmp_path) == 1
    wall.time = NOW + timedelta(seconds=3590)
    await plugin.current()
    assert runs(tmp_path) == 2


async def test_T6_many_401_at_once_run_it_once(script: Any, tmp_path: Path) -> None:
    plugin = ExecPlugin(
        ExecConfig(script(f"number=$(wc -l < {tmp_path}/runs); " + saying({"token": "@"}) + ' | sed "s/@/$number/"')), Wall()
    )
    failed = await plugin.current()
    assert all(await asyncio.gather(*(plugin.refresh(failed) for _ in range(5))))
    assert (await plugin.current()).token.strip() == "2"
    assert runs(tmp_path) == 2


async def test_a_client_certificate_is_taken(script: Any) -> None:
    status = {"clientCertificateData": "certificate", "clientKeyData": "key"}
    credential = await ExecPlugin(ExecConfig(script(saying(status, V1BETA1)), api_version=V1BETA1), Wall()).current()
    assert credential.certificate is not None
    assert (credential.certificate.certificate, credential.certificate.key) == ("certificate", "key")


async def test_what_the_plugin_is_told(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    text = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $INHERITED $GIVEN" > {tmp_path}/rest; cat; ' + saying({
        "token": "one"
    })
    config = ExecConfig(script(text), ("argument",), {"GIVEN": "too"}, cluster={"server": "https://a"})
    await ExecPlugin(config, Wall()).current()
    spec = {"interactive": False, "cluster": {"server": "https://a"}}
    assert json.loads((tmp_path / "info").read_text()) == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}
    assert (tmp_path / "rest").read_text() == "argument yes too\n"


async def test_a_flood_on_stderr_does_not_block_it(script: Any) -> None:
    text = "head -c 1000000 /dev/zero | tr '\\0' x >&2; " + saying({"token": "one"})
    assert (await ExecPlugin(ExecConfig(script(text)), Wall()).current()).token


FAILURES = [
    ("echo oh dear >&2; exit 3", "exit code 3: oh dear"),
    ("exit 1", "exit code 1: no message"),
    ("echo no json", "its answer is not JSON"),
    ("echo []", "its answer is no ExecCredential"),
    (saying({"token": "one"}, V1BETA1), f"its answer is no ExecCredential of {V1}"),
    (saying(None), "it gave neither a token nor a client certificate"),
    (saying({"token": " "}), "it gave neither a token nor a client certificate"),
    (saying({"clientCertificateData": "x"}), "it gave only one of clientCertificateData and clientKeyData"),
]


@pytest.mark.parametrize(("text", "message"), FAILURES)
async def test_a_failure_is_an_error_and_never_an_anonymous_request(script: Any, text: str, message: str) -> None:
    path = script(text)
    plugin = ExecPlugin(ExecConfig(path), Wall())
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            await plugin.current()
        assert str(caught.value).startswith(f"credential plug-in {path}: {message}")


async def test_a_failing_refresh_is_an_error(script: Any, tmp_path: Path) -> None:
    plugin = ExecPlugin(ExecConfig(script(f"test $(wc -l < {tmp_path}/runs) = 1 || exit 1; " + saying({"token": "one"}))), Wall())
    failed = await plugin.current()
    with pytest.raises(ConfigError):
        await plugin.refresh(failed)


async def test_a_missing_program_comes_with_the_hint(tmp_path: Path) -> None:
    plugin = ExecPlugin(ExecConfig(str(tmp_path / "none"), install_hint="Install it\nfrom somewhere."), Wall())
    with pytest.raises(ConfigError, match=r"No such file or directory: .*/none' Install it from somewhere\."):
        await plugin.current()


@pytest.mark.parametrize("waiting", ["exec sleep 1000", "sleep 1000 & wait"], ids=["itself", "its child"])
async def test_a_plugin_that_hangs_is_ended_with_its_children(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: str
) -> None:
    monkeypatch.setattr(exec_plugin, "TIMEOUT_SECONDS", 0.3)
    plugin = ExecPlugin(ExecConfig(script(f"echo $$ > {tmp_path}/pid; {waiting}")), Wall())
    async with asyncio.timeout(10):
        with pytest.raises(ConfigError, match="it did not end within"):
            await plugin.current()
    assert is_gone((tmp_path / "pid").read_text())


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancelled_plugin_is_ended_at_whatever_moment(script: Any, turns: int) -> None:
    plugin = ExecPlugin(ExecConfig(script("sleep 1000 & wait")), Wall())
    task = asyncio.create_task(plugin.current())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await task


def is_gone(pid: str) -> bool:
    return not Path(f"/proc/{pid.strip()}").exists()
