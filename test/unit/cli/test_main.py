"""The command as users meet it: answers, complaints and exit codes."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeconfig_cases import kubeconfig
from mpiop.cli import main

pytestmark = pytest.mark.real_time


def mpiop(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpiop", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_nothing_heavy_is_imported_for_an_answer(argument: str) -> None:
    script = f"import sys; from mpiop.cli import main; main(['{argument}']); print(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(result.stderr.split())
    assert not loaded & {"aiohttp", "asyncio", "kubernetes", "structlog", "msgspec", "cryptography", "prometheus_client"}


@pytest.mark.parametrize(("argument", "beginning"), [("--version", "mpiop 0.1.0"), ("--help", "mpiop runs MPIJobs")])
def test_answers_go_to_standard_output(argument: str, beginning: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([argument]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(beginning)
    assert not captured.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--namespac=x"], "mpiop: there is no flag --namespac; did you mean --namespace?\n", id="unknown flag"),
        pytest.param(
            ["--lease-duration=5s"],
            "mpiop: --lease-duration 5s must be longer than --renew-deadline 10s: "
            "else a second leader may start before the first has stopped\n",
            id="L60: lease times that do not fit together",
        ),
    ],
)
def test_what_is_not_understood_is_one_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err == complaint
    assert not captured.out


def test_without_an_api_server_it_fails_with_one_line_of_json() -> None:
    result = mpiop("-alsologtostderr", "-v=0", "--kubeConfig=/nonexistent/config", PATH="/usr/bin")
    assert result.returncode == 1
    ignored, *_, failure = result.stdout.splitlines()
    assert '"msg":"klog flags ignored"' in ignored
    assert '"flags":["alsologtostderr"]' in ignored
    assert '"level":"error"' in failure
    assert "/nonexistent/config" in failure
    assert "Traceback" not in result.stdout + result.stderr


SIGTERM_DURING_IMPORT = """
import importlib.abc, os, signal, sys
class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "mpiop.operator":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Hook())
from mpiop.cli import main
sys.exit(main([]))
"""


def test_F33_sigterm_before_anything_has_begun_ends_it_too() -> None:
    result = subprocess.run([sys.executable, "-c", SIGTERM_DURING_IMPORT], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.fixture
def process_state() -> Iterator[None]:
    """Give signals back as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("process_state")
def test_F2_F33_with_the_api_server_down_it_waits_and_sigterm_ends_it_in_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig({"server": "http://127.0.0.1:1"}, {"token": "hunter2-hunter2"})))
    killer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGTERM))
    killer.start()
    assert main([f"--kube-config={config}", "--health-port=0", "-logtostderr"]) == 0
    out = capfd.readouterr().out
    phrases = [json.loads(line)["msg"] for line in out.splitlines()]
    assert phrases[0] == "klog flags ignored"
    assert "lease not acquired" in phrases
    assert phrases[-2:] == ["stopping", "stopped"] or phrases[-1] == "stopped"
    assert "hunter2" not in out
