"""The process: a signal stops it in order, a failure ends it at once and non-zero."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from mpiop.cli.process import _log_failure, run_until_stopped
from mpiop.cli.watchdog import _waited_seconds
from mpiop.kube.errors import ConfigError, TransportError
from mpiop.leaderelection import LeaseLostError
from mpiop.server import ServerError

pytestmark = pytest.mark.real_time


LOOP = {"uses_uvloop": True}


@pytest.fixture(autouse=True, params=[True, False], ids=["uvloop", "asyncio"])
def either_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOOP, "uses_uvloop", request.param)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("failure", "phrases", "has_traceback"),
    [
        pytest.param(LeaseLostError("Lease a/b is lost: why"), ["leadership lost", "Lease a/b is lost: why"], False, id="lost lease"),
        pytest.param(
            ExceptionGroup("tasks", [ValueError("side effect"), ExceptionGroup("more", [LeaseLostError("Lease a/b is lost")])]),
            ["leadership lost"],
            False,
            id="lost lease in a group",
        ),
        pytest.param(ServerError("cannot serve /metrics on port 80"), ["cannot serve /metrics on port 80"], False, id="taken port"),
        pytest.param(
            ExceptionGroup("tasks", [ConfigError("no kubeconfig"), TransportError("refused")]),
            ["ConfigError: no kubeconfig", "TransportError: refused"],
            False,
            id="no API server",
        ),
        pytest.param(RuntimeError("a defect"), ["the operator failed", "RuntimeError: a defect"], True, id="a defect has a traceback"),
    ],
)
def test_F36_a_failure_is_logged_with_all_its_causes(
    failure: Exception, phrases: list[str], capsys: pytest.CaptureFixture[str], *, has_traceback: bool
) -> None:
    try:
        raise failure
    except type(failure) as raised:
        _log_failure(raised)
    text = capsys.readouterr().out
    for phrase in phrases:
        assert phrase in text
    assert ("Traceback" in text) == has_traceback


PRELUDE = """
import asyncio, gc, json, os, signal, sys, threading, time
from mpiop import log
from mpiop.cli.process import run_until_stopped, stdout_descriptor
from mpiop.leaderelection import LeaseLostError
log.configure("json", "info", fd=stdout_descriptor())
"""


class Child:
    """A process of its own that runs `run_until_stopped`."""

    def __init__(self, work: str) -> None:
        script = PRELUDE + textwrap.dedent(work) + f"\nsys.exit(run_until_stopped(work, uses_uvloop={LOOP['uses_uvloop']}))\n"
        self.process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(self, line: str) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            if line in text:
                return
        raise AssertionError(f"{line!r} was not said")

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Return the exit code, the log and standard error."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


@contextlib.contextmanager
def child(work: str) -> Iterator[Child]:
    started = Child(work)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.communicate()


def test_L64_a_lost_lease_ends_the_process_at_once_though_a_thread_hangs() -> None:
    work = """
        async def work():
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
            await asyncio.sleep(0.1)
            raise ExceptionGroup("tasks", [LeaseLostError("Lease a/b is lost: b holds it now")])
    """
    with child(work) as process:
        code, records, err = process.end()
    assert code == 1
    assert [(record["level"], record["msg"]) for record in records if record["level"] == "error"] == [("error", "leadership lost")]
    assert not err


def test_modules_are_not_searched_for_garbage() -> None:
    with child("async def work():\n    print(json.dumps({'msg': 'frozen', 'count': gc.get_freeze_count()}), flush=True)\n") as process:
        _, records, _ = process.end()
    [frozen] = [record["count"] for record in records if record["msg"] == "frozen"]
    assert frozen > 10_000


PART = """
    async def work():
        async with asyncio.TaskGroup() as group:
            group.create_task(dying())
            await asyncio.Event().wait()
"""
WATCHDOG = """
    from mpiop.cli import process
    process.Watchdog.run = dying
    async def work():
        await asyncio.Event().wait()
"""


@pytest.mark.parametrize("work", [PART, WATCHDOG], ids=["informer", "watchdog"])
def test_F36_a_part_that_dies_ends_the_process_with_one_line_and_its_traceback(work: str) -> None:
    with child("    async def dying(*_):\n        raise RuntimeError('a defect')\n" + work) as process:
        code, records, err = process.end()
    assert (code, err) == (1, "")
    (failure,) = [record for record in records if record["level"] == "error"]
    assert failure["errors"] == ["RuntimeError: a defect"]
    assert "in dying" in failure["exception"]


UNTIL_STOPPED = """
    async def work():
        print("ready", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            {at_the_end}
"""


def test_F33_sigterm_ends_it_in_order_with_code_0() -> None:
    with child(UNTIL_STOPPED.format(at_the_end="await asyncio.sleep(0.2)")) as process:
        process.wait_for("ready")
        process.process.send_signal(signal.SIGTERM)
        code, records, err = process.end()
    assert (code, err) == (0, "")
    assert [(record["msg"], record.get("signal")) for record in records] == [("stopping", "SIGTERM"), ("stopped", None)]


def test_a_second_signal_does_not_wait_for_the_end_of_the_work() -> None:
    with child(UNTIL_STOPPED.format(at_the_end='print("ending", flush=True); await asyncio.sleep(600)')) as process:
        process.wait_for("ready")
        process.process.send_signal(signal.SIGINT)
        process.wait_for("ending")
        process.process.send_signal(signal.SIGTERM)
        process.process.communicate(timeout=30)
        assert process.process.returncode == -signal.SIGTERM


def test_F38_it_runs_with_standard_output_closed_or_broken() -> None:
    script = PRELUDE + "async def work():\n    await asyncio.sleep(0)\nsys.exit(run_until_stopped(work, uses_uvloop=True))\n"
    closed = subprocess.run(f"exec {sys.executable} -c '{script}' >&-", shell=True, capture_output=True, text=True, timeout=30, check=False)  # noqa: S602 - the shell closes it
    assert (closed.returncode, closed.stderr) == (0, "")
    reader, writer = os.pipe()
    os.close(reader)
    broken = subprocess.run([sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    os.close(writer)
    assert (broken.returncode, broken.stderr) == (0, "")


def test_F34_a_blocked_event_loop_is_logged_with_where_it_hangs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mpiop.cli.watchdog._BEAT_SECONDS", 0.02)
    monkeypatch.setattr("mpiop.cli.watchdog._BLOCKED_SECONDS", 0.2)

    async def work() -> None:
        await asyncio.sleep(0.1)
        hang_here()
        await asyncio.sleep(0.1)

    assert run_until_stopped(work, uses_uvloop=LOOP["uses_uvloop"]) == 0
    text = capsys.readouterr().out
    assert text.count("event loop is blocked") == 1, "once for each time"
    assert "in hang_here" in text


def hang_here() -> None:
    time.sleep(1.0)  # the watchdog counts by the clock, in a thread of its own


@pytest.fixture
def rivals() -> Iterator[None]:
    """Eight processes that never rest, on one processor with the thread that runs the test."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    started = [subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE) for _ in range(8)]
    os.sched_setaffinity(0, processors)  # so that other threads have the other processors
    try:
        for rival in started:
            assert rival.stdout is not None
            rival.stdout.readline()
        yield
    finally:
        os.sched_setaffinity(0, processors)
        for rival in started:
            with rival:
                rival.kill()


@pytest.mark.usefixtures("rivals")
def test_a_loop_without_processor_time_is_not_called_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.cli.watchdog._BEAT_SECONDS", 0.2)
    monkeypatch.setattr("mpiop.cli.watchdog._BLOCKED_SECONDS", 1.0)

    async def work() -> None:
        await asyncio.sleep(0.3)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        begun = time.monotonic()
        while time.monotonic() - begun < 2:
            pass
        await asyncio.sleep(0.3)

    with capture_logs() as logged:
        assert run_until_stopped(work, uses_uvloop=LOOP["uses_uvloop"]) == 0
    reported = [each for each in logged if each["event"] != "stopped"]
    assert {(each["log_level"], each["event"].split(":")[0]) for each in reported} == {("warning", "event loop gets no processor time")}
    assert all(each["seconds"] / 2 < each["waited"] <= each["seconds"] + 0.1 for each in reported)


def test_where_the_kernel_does_not_tell_how_long_a_thread_waited_it_is_nothing() -> None:
    assert _waited_seconds(0) == 0


def test_a_loop_that_runs_is_not_called_blocked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("mpiop.cli.watchdog._BEAT_SECONDS", 0.02)
    monkeypatch.setattr("mpiop.cli.watchdog._BLOCKED_SECONDS", 1.0)

    async def work() -> None:
        await asyncio.sleep(0.3)  # nothing to wait for: that a dozen beats pass without a word is the point

    assert run_until_stopped(work, uses_uvloop=LOOP["uses_uvloop"]) == 0
    assert "blocked" not in capsys.readouterr().out
