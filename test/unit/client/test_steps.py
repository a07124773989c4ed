"""A step as its client sees it: what arrives, how it ends, and what is wrong; a script stands in for kubectl."""

import resource
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fakes.programs import executable
from mpiop.api.mpi_implementations import OPEN_MPI
from mpiop.client.allocation import WorkerState, lost_worker
from mpiop.client.errors import ClientError, InvalidError
from mpiop.client.steps import Step, StepEnd, Streams
from mpiop.client.tags import RankLines, Tagged

pytestmark = pytest.mark.real_time
FAKE = """#!/bin/sh
case " $* " in *" input "*) echo "connection refused" >&2; exit 1 ;; esac
while [ "$1" != --token ]; do shift; done
report="mpiop:$2:"
"""
COMMAND_ENDED = "echo 'command terminated with exit code 7' >&2; exit 7"


class Heard:
    """What a step has reported."""

    def __init__(self) -> None:
        self.output: list[bytes] = []
        self.error: list[bytes] = []
        self.waits: list[str] = []


Start = Callable[..., tuple[Step, Heard]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def call(
        body: str,
        check: Callable[..., str] = lambda _: "",
        output: Callable[[Tagged], None] | None = None,
        *,
        has_input: bool = False,
    ) -> tuple[Step, Heard]:
        kubectl = executable(tmp_path / "kubectl", FAKE + body)
        heard = Heard()
        streams = Streams(
            output or (lambda line: heard.output.append(line.text)), lambda line: heard.error.append(line.text), heard.waits.append, check
        )
        return Step([str(kubectl)], ["--", "program"], lambda: RankLines(OPEN_MPI), streams, has_input=has_input), heard

    return call


def test_output_is_freed_of_tags_and_the_exit_code_is_that_of_the_report(start: Start) -> None:
    body = f"""
    echo "${{report}}waits 4 slots are wanted" >&2
    echo "${{report}}runs 3 0:2 1:1" >&2
    echo '[1,0]<stdout>:from rank 0'
    echo '[1,1]<stderr>:from rank 1' >&2
    printf 'without an end' >&2
    echo "${{report}}ended 7 " >&2
    {COMMAND_ENDED}"""
    step, heard = start(body)
    assert step.wait() == StepEnd(3, (0, 1), 7, "")
    assert (heard.output, heard.waits) == ([b"from rank 0"], ["4 slots are wanted"])
    assert heard.error == [b"from rank 1", b"without an end"]


def test_what_a_rank_prints_is_no_report(start: Start) -> None:
    step, heard = start('echo "${report}runs 1 0:1" >&2; echo "mpiop:0123456789abcdef:ended 0 " >&2; echo "${report}ended 5 " >&2')
    assert step.wait().code == 5
    assert heard.error == [b"mpiop:0123456789abcdef:ended 0 "]


@pytest.mark.parametrize("code", [0, 1])
def test_a_connection_without_a_report_of_the_end_was_lost_whatever_kubectl_returns(start: Start, code: int) -> None:
    step, _ = start(f'echo "${{report}}runs 2 0:1" >&2; exit {code}')
    with pytest.raises(ClientError, match=rf"^the connection to step 2 was lost \(kubectl: exit code {code}\)"):
        step.wait()


def test_a_refusal_has_its_reason(start: Start) -> None:
    step, _ = start(f'echo "${{report}}refused 9 slots are wanted, and the allocation has 4" >&2; {COMMAND_ENDED}')
    with pytest.raises(InvalidError, match=r"^the step was refused: 9 slots are wanted, and the allocation has 4$"):
        step.wait()


@pytest.mark.parametrize("report", ["runs x", "runs", "runs 1 x", "ended x", f"ended {'9' * 5000}"], ids=lambda report: report[:8])
def test_a_report_that_is_not_valid_ends_the_connection_with_an_error(start: Start, report: str) -> None:
    step, _ = start(f'echo "${{report}}{report}" >&2; exec sleep 60')
    with pytest.raises(ClientError, match=rf"^the launcher reported '{report[:80]}', which is not valid"):
        step.wait()


def test_what_follows_the_report_of_the_end_is_not_kept(start: Start) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step, _ = start('echo "${report}ended 0 " >&2; head -c 200000000 /dev/zero >&2')
    assert step.wait().code == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_output_that_cannot_be_written_ends_the_step(start: Start) -> None:
    def write(_: Tagged) -> None:
        raise BrokenPipeError

    prints = 'while :; do echo line; done & read -r order; kill $!; echo "${report}ended 130 $order" >&2'
    step, _ = start(f'echo "${{report}}runs 1 0:1" >&2; {prints}', output=write)
    with pytest.raises(BrokenPipeError):
        step.wait()


def test_orders_and_heartbeats_reach_the_step(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.steps.HEARTBEAT_SECONDS", 0.05)
    body = """echo "${report}runs 1 0:1" >&2
    while read -r order; do
        case $order in '') echo beat ;; *) break ;; esac
    done
    echo "${report}ended 143 $order" >&2"""
    step, heard = start(body)
    while b"beat" not in heard.output:
        time.sleep(0.01)
    step.interrupt()
    assert step.wait().why == "interrupt"
    step, _ = start(body, lambda hosts: f"lost on\n{hosts}")
    assert step.wait().why == "end lost on (0,)"


@pytest.mark.parametrize("code", [0, 3, 143])
def test_a_step_that_lost_its_standard_input_has_failed_whatever_its_program_returns(start: Start, code: int) -> None:
    step, _ = start(f'echo "${{report}}runs 2 0:1" >&2; read -r order; echo "${{report}}ended {code} $order" >&2', has_input=True)
    assert step.wait() == StepEnd(2, (0,), 1, "standard input did not arrive, or only a part of it: connection refused")


def test_heartbeats_do_not_wait_for_the_api_server(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.steps.HEARTBEAT_SECONDS", 0.05)
    answers, is_over = list[str](), threading.Event()

    def check(_: Sequence[int]) -> str:
        is_over.wait(10)
        answers.append("")
        return ""

    step, _ = start('echo "${report}runs 1 0:1" >&2; for _ in 1 2 3 4 5; do read -r order; done; echo "${report}ended 0 " >&2', check)
    assert (step.wait().code, answers) == (0, [])
    is_over.set()


KNOWN = {0: WorkerState("dev-worker-0", ("uid-0", 0), ""), 1: WorkerState("dev-worker-1", ("uid-1", 0), "")}
LOST = [
    ({}, ""),
    ({1: None}, "worker dev-worker-1 was lost: its Pod was deleted"),
    ({1: WorkerState("dev-worker-1", ("uid-2", 0), "")}, "worker dev-worker-1 was lost: it was started again"),
    ({1: WorkerState("dev-worker-1", ("uid-1", 1), "")}, "worker dev-worker-1 was lost: it was started again"),
    ({1: WorkerState("dev-worker-1", ("uid-1", 0), "it ended")}, "worker dev-worker-1 was lost: it ended"),
    ({0: None}, ""),
]


@pytest.mark.parametrize(("changes", "expected"), LOST, ids=["none", "gone", "replaced", "restarted", "ended", "of another step"])
def test_a_lost_worker_of_the_step_is_named(changes: dict[int, WorkerState | None], expected: str) -> None:
    now = {host: state for host, state in {**KNOWN, **changes}.items() if state is not None}
    assert lost_worker([1], KNOWN, now) == expected
