"""Functions on the ranks of an allocation; a script stands in for kubectl and runs one rank."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.client_api import FakeApi, pod, stored
from fakes.programs import executable
from fakes.ranks import world
from mpiop.client import MPI, AsyncMPI, ClientError, InvalidError, JobFailed
from mpiop.client.allocations import Allocation, in_order
from mpiop.client.program_steps import ProgramStep
from mpiop.client.steps import Step

pytestmark = pytest.mark.real_time
KUBECTL = """#!/bin/sh
folder=${0%/*}
echo "$*" >>"$folder/words"
input=/dev/null
case $* in *" --content "*) input=$folder/content ;; esac
while [ "$1" != --token ]; do shift; done
report="mpiop:$2:"
[ "$input" = /dev/null ] || dd bs="$4" count=1 iflag=fullblock >"$input" 2>/dev/null
while [ "$1" != -- ]; do shift; done
shift 2
echo "${report}runs 3 0:1" >&2
if [ -e "$folder/hangs" ]; then
    while read -r order; do case $order in '' | ask) ;; *) break ;; esac; done
    echo >"$folder/$order"
    code=130
else
    PYTHONPATH=$folder INTERPRETER -S "$@" <"$input"
    code=$?
fi
echo "${report}ended $code " >&2
"""


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").touch()
    (tmp_path / "mpi4py/MPI.py").write_text(world(1))
    executable(tmp_path / "kubectl", KUBECTL.replace("INTERPRETER", sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    api = FakeApi()
    api.ends("Running")
    api.all_pods = [pod("dev-launcher-x", role="launcher"), pod("dev-worker-0")]
    return api


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)


def scaled(factor: int) -> Callable[[int], int]:
    return lambda item: item * factor


def test_functions_run_one_after_the_other_and_leave_no_job(api: FakeApi, tmp_path: Path) -> None:
    def work(number: int, *, scale: int) -> int:
        print("computes")  # noqa: T201 - not among the results
        return number * scale

    reported: list[str] = []
    with MPI(api=api, image="i", context="c").allocation(name="dev", ranks=1, report=reported.append) as allocation:
        assert allocation.run(work, 14, kwargs={"scale": 3}) == [42]
        assert allocation.map(scaled(2), range(5), ranks=1) == [0, 2, 4, 6, 8]
        assert allocation.map(scaled(2), ()) == []
    assert (api.stored, len(reported)) == ({}, 1)
    words = (tmp_path / "words").read_text()
    assert words.startswith("exec --stdin --namespace=team --context=c dev-launcher-x --container=launcher -- /bin/sh")
    assert words.count(" -n 1 -- python3 -c import pickle") == 1
    assert words.count("exec(source) work\n") == 1


def test_what_a_function_raises_and_a_step_that_fails_are_named(api: FakeApi) -> None:
    def work() -> None:
        raise ValueError("no input")

    with MPI(api=api, image="i").allocation(name="dev") as allocation:
        with pytest.raises(JobFailed, match=r"^job dev, step 3 failed: FunctionRaised: rank 0 raised:\n(.*\n)*ValueError: no input$"):
            allocation.run(work)
        with pytest.raises(
            JobFailed, match=r"^job dev, step 3 failed: StepFailed: its program ended with exit code 9\nThe end .*\nlast words$"
        ):
            allocation.run(lambda: (os.write(2, b"last words\n"), os._exit(9)))
        api.stored["dev"] = api.stored["dev"] | {"status": stored(state="Succeeded")["status"]}
        with pytest.raises(ClientError, match=r"^allocation dev has ended \(Succeeded\)$"):
            allocation.run(work)


def test_a_program_runs_as_a_step(api: FakeApi, tmp_path: Path) -> None:
    reported: list[str] = []
    with MPI(api=api, image="i").allocation(name="dev") as allocation:
        step = allocation.submit(["python3", "-c", "print('a b')"], ranks=2, hosts=[0, 1], env={"WORD": "x y"}, report=reported.append)
        assert (step.wait(), reported) == ("a b", ["a b"])
        with pytest.raises(
            JobFailed, match=r"^job dev, step 3 failed: StepFailed: its program ended with exit code 9\nThe end of its log:\nbad$"
        ) as raised:
            allocation.submit(["python3", "-c", "import sys; print('bad'); sys.exit(9)"]).wait()
        assert raised.value.code == 9
    assert (tmp_path / "words").read_text().count(" -n 2 --hosts 0,1 --env WORD=x y --tag -- python3 -c print") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "./solver input"}, "command is './solver input': it must be a list of words, such as ['./solver', 'input.nml']"),
        ({"command": []}, "command is []: it must be a list of words, such as ['./solver', 'input.nml']"),
        ({"ranks": 0}, "ranks is 0: it must be at least 1"),
        ({"ranks": "2"}, "ranks is '2': it must be a whole number or None"),
        ({"hosts": [0, -1]}, "hosts has -1: hosts are counted from 0"),
        ({"hosts": [True]}, "hosts is [True]: it must be a list of whole numbers"),
        ({"env": {"A-B": "1"}}, "env has 'A-B': this is not a valid name of a variable"),
        ({"env": {"A": 1}}, "env is {'A': 1}: it must be names of variables with their values, as strings"),
        ({"env": {"A": "\0"}}, "command or env has a NUL character, which no program can receive"),
    ],
)
def test_invalid_values_are_refused_before_anything_runs(api: FakeApi, options: dict[str, Any], message: str) -> None:
    with MPI(api=api, image="i").allocation(name="dev") as allocation, pytest.raises(InvalidError) as raised:
        allocation.submit(**{"command": ["a"], **options})
    assert str(raised.value) == message


def test_what_a_report_raises_ends_the_step_and_is_raised(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Step.__init__

    def slowly(*words: Any, **options: Any) -> None:
        begin(*words, **options)
        time.sleep(0.5)  # the program prints before the caller has its step

    monkeypatch.setattr(Step, "__init__", slowly)

    def report(line: str) -> None:
        raise ValueError(line)

    with MPI(api=api, image="i").allocation(name="dev") as allocation:
        step = allocation.submit(["python3", "-c", "for number in range(50_000): print(number)"], ranks=1, report=report)
        with pytest.raises(ValueError, match=r"^0$"):
            step.wait()


async def test_a_submit_that_is_cancelled_meanwhile_ends_its_step(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_go_on, ended = threading.Event(), threading.Event(), threading.Event()
    submit = Allocation.submit

    def slow(*words: Any, **options: Any) -> ProgramStep:
        begun.set()
        may_go_on.wait()
        step = submit(*words, **options)
        monkeypatch.setattr(step, "end", ended.set)
        return step

    monkeypatch.setattr(Allocation, "submit", slow)
    async with AsyncMPI(api=api, image="i").allocation(name="dev") as allocation:
        submitting = asyncio.create_task(allocation.submit(["python3", "-c", ""], ranks=1))
        await asyncio.to_thread(begun.wait)
        submitting.cancel()
        await asyncio.sleep(0)
        submitting.cancel()
        may_go_on.set()
        await asyncio.wait({submitting})
    assert (submitting.cancelled(), ended.is_set()) == (True, True)


async def test_the_same_under_asyncio_and_a_call_that_is_cancelled_ends_its_ranks(api: FakeApi, tmp_path: Path) -> None:
    async with AsyncMPI(api=api, image="i").allocation(name="dev") as allocation:
        assert await allocation.map(scaled(3), [1, 2]) == [3, 6]
        assert await (await allocation.submit(["python3", "-c", "print(1)"], ranks=1)).wait() == "1"
        (tmp_path / "hangs").touch()
        call = asyncio.create_task(allocation.run(lambda: 1))
        await asyncio.to_thread(wait_for, tmp_path / "content")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(wait_for, tmp_path / "interrupt")
    assert api.stored == {}


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_results_are_in_the_order_of_their_items(count: int) -> None:
    items = list(range(count))
    assert in_order([items[rank::3] for rank in range(3)]) == items
