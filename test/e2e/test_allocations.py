"""Allocations: steps in the launcher of a job that holds its workers, and what is left of them, which is nothing."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.allocations import IMAGE, STUBBORN, Client, allocate, pods, processes, until_only
from e2e.jobs import condition, until_true
from e2e.kubectl import Kubectl
from e2e.libraries import IMPLEMENTATIONS, LIBRARIES, PLAIN_IMAGES, SSHD_IMAGES
from e2e.plugin import Tool, new_tool
from e2e.test_kubectl_mpi import Terminal
from mpiop.client import AsyncMPI, JobFailed
from mpiop.client.magic import load_ipython_extension
from mpiop.kube.resources import MPIJOBS

IMAGES: Final = (*SSHD_IMAGES, *PLAIN_IMAGES, "mpi4py")
PYTHON_IMAGE: Final = "mpiop.invalid/mpi4py:openmpi"


@pytest.fixture(scope="module")
def tool(module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    made = new_tool(module_namespace, tmp_path_factory.mktemp("allocations"))
    yield made
    made.here.run("delete", "mpijobs", "--all")


@pytest.fixture(scope="module")
def dev(tool: Tool) -> str:
    """The name of an allocation of two hosts with two slots each."""
    return allocate(tool, "dev", "--image", IMAGE)


def test_a_step_runs_on_the_ranks_and_returns_the_exit_code_of_its_program(tool: Tool, dev: str) -> None:
    done = tool.attempt("step", dev, "--", "hostname")
    assert (done.returncode, sorted(done.stdout.split()), done.stderr) == (0, ["dev-worker-0"] * 2 + ["dev-worker-1"] * 2, "")
    program = 'echo "out $MPIOP_STEP $WORD $OMPI_COMM_WORLD_RANK"; echo err >&2; exit 7'
    failed = tool.attempt("step", dev, "-n", "1", "--hosts", "1", "-e", "WORD=a b", "--", "sh", "-c", program)
    assert (failed.returncode, failed.stdout) == (7, "out 2 a b 0\n")
    assert "err" in failed.stderr.splitlines()
    assert tool.run("step", dev, "-n", "2", "--", "sh", "-c", "cat | wc -c", stdin="x" * 1_000_000).split() in (
        ["1000000", "0"],
        ["0", "1000000"],
    )
    assert tool.attempt("step", dev, "-n", "1", "--", "no-such-program").returncode not in {0, 127}
    assert tool.attempt("step", "no-such-allocation", "--", "hostname").returncode == 3


def test_run_runs_a_step_in_an_allocation(tool: Tool, dev: str) -> None:
    done = tool.attempt("run", "--in", dev, "-n", "3", "-e", "WORD=a b", "--", "sh", "-c", 'echo "$WORD"; exit 5')
    assert (done.returncode, done.stdout) == (5, "a b\n" * 3)
    refused = tool.attempt("run", "--in", dev, "--image", IMAGE, "--", "hostname")
    assert refused.stderr == f"error: --image: not possible with --in, because allocation {dev} exists already\n"


def test_an_array_runs_in_an_allocation(tool: Tool, dev: str) -> None:
    program = 'echo "case $MPIOP_ARRAY_INDEX"; exit $((MPIOP_ARRAY_INDEX == 4))'
    done = tool.attempt("run", "--in", dev, "--array", "1-3,4,8-20:4", "-n", "2", "--", "sh", "-c", program)
    indexes = (1, 2, 3, 4, 8, 12, 16, 20)
    assert done.returncode == 1
    output = Counter(done.stdout.splitlines())
    assert {f"{index}: case {index}": 2 for index in indexes if index != 4}.items() <= output.items()
    assert output["4: case 4"] >= 1, "mpirun may end the other rank before it prints"
    ends = [line for line in done.stderr.splitlines() if line.startswith("index ")]
    assert len(ends) == len(indexes)
    assert [line.rpartition(": ")[2] for line in ends if line.startswith("index 4: step ")] == ["exit code 1"]
    assert done.stderr.endswith("\n7 of 8 steps succeeded\n")


async def test_history_and_logs_show_steps_that_have_run(tool: Tool, dev: str) -> None:
    assert tool.attempt("step", dev, "-n", "2", "--hosts", "1", "--", "sh", "-c", "hostname; exit 3").returncode == 3
    row = tool.run("history", dev).splitlines()[-1].split()
    assert (row[1:4], row[-4:]) == (["3", "2", "1"], ["-c", "hostname;", "exit", "3"])
    assert tool.run("logs", dev, "--step", row[0]).splitlines().count("dev-worker-1") == 2
    assert tool.run("logs", dev, "--step", row[0], "--rank", "1") == "dev-worker-1\n"
    runs = Client(tool, dev, "-n", "1", "--", "sh", "-c", "echo begun; sleep 1000")
    runs.until("begun")
    number = tool.run("history", dev).splitlines()[-1].split()[0]
    assert tool.run("logs", dev, "--step", number) == "begun\n"
    before = processes(tool.here, dev)
    killed, follower = (Client(tool, dev, "-f", "--step", number, "--rank", "0", verb="logs") for _ in range(2))
    assert (killed.until("begun"), follower.until("begun")) == ("begun\n", "begun\n")
    assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    assert follower.process.poll() is None
    assert runs.end(signal.SIGINT) == 130
    assert (follower.end(), follower.seen) == (0, "begun\n")
    await until_only(tool.here, dev, before)


def upload_and_build(tool: Tool, name: str, folder: Path) -> None:
    """Edit and run twice, with a build and a file that is removed."""
    folder.mkdir()
    (folder / "source").write_text("one\n")
    (folder / "old").write_text("old\n")
    step = ("step", name, "--upload", str(folder), "--build", "cp source built; chmod 700 built")
    assert tool.run(*step, "--", "sh", "-c", "echo $(cat built old)").splitlines() == ["one old"] * 4
    (folder / "old").unlink()
    (folder / "source").write_text("#!/bin/sh\necho two $(ls)\n")
    assert tool.run(*step, "--", "./built").splitlines() == ["two built source"] * 4


def test_uploads_are_built_and_reach_all_hosts(tool: Tool, dev: str, tmp_path: Path) -> None:
    upload_and_build(tool, dev, tmp_path / "folder")
    (tmp_path / "folder" / "large").write_bytes(os.urandom(2**20))
    assert len(tool.run("step", dev, "--upload", str(tmp_path / "folder"), "--", "hostname").split()) == 4
    failed = tool.attempt("step", dev, "--upload", str(tmp_path / "folder"), "--build", "exit 3", "--", "hostname")
    assert failed.returncode == 3
    assert failed.stderr.endswith(": the build failed with exit code 3\n")
    tool.here.run("delete", "pod", "dev-worker-0", "--grace-period=1")
    until_true(tool.here, dev, "Running")
    tool.here.run("wait", "--for=condition=Ready", "pod/dev-worker-0", "--timeout=60s")
    assert tool.run("step", dev, "--upload", str(tmp_path / "folder"), "--", "cat", "source").count("two") == 4


def test_steps_share_the_slots_and_one_that_would_overbook_waits_or_is_refused(tool: Tool, dev: str) -> None:
    first = Client(tool, dev, "--hosts", "0", "--", "sh", "-c", "echo begun; sleep 1000")
    first.until("begun")
    assert tool.run("step", dev, "--hosts", "1", "--", "hostname").split() == ["dev-worker-1"] * 2
    refused = tool.attempt("step", dev, "-n", "3", "--no-wait", "--", "hostname")
    assert refused.returncode == 2
    assert "3 slots are wanted, and 2 of 4 are free; running: step" in refused.stderr
    too_many = tool.attempt("step", dev, "-n", "5", "--", "hostname")
    assert too_many.stderr == "error: the step was refused: 5 slots are wanted, and the allocation has 4\n"
    assert len(tool.run("step", dev, "-n", "4", "--overlap", "--", "hostname").split()) == 4
    waiting = Client(tool, dev, "-n", "4", "--", "hostname")
    waiting.until("waits: 4 slots are wanted, and 2 of 4 are free")
    assert first.end(signal.SIGINT) == 130
    assert waiting.end() == 0
    assert waiting.seen.count("dev-worker-") == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["Ctrl-C", "TERM", "KILL"])
async def test_a_client_that_ends_leaves_no_process_on_any_host(tool: Tool, dev: str, number: signal.Signals) -> None:
    before = processes(tool.here, dev)
    step = Client(tool, dev, "--", "sh", "-c", STUBBORN)
    step.until("begun")
    assert processes(tool.here, dev) - before
    code = step.end(number)
    assert code == (130 if number == signal.SIGINT else -number)
    await until_only(tool.here, dev, before)
    assert len(tool.run("step", dev, "--no-wait", "--", "hostname").split()) == 4, "it lost a slot"


async def test_a_lost_worker_is_named_and_the_allocation_continues(tool: Tool, dev: str) -> None:
    other = Client(tool, dev, "-n", "1", "--hosts", "0", "--", "sh", "-c", "echo begun; sleep 1000")
    step = Client(tool, dev, "-n", "2", "--hosts", "1", "--", "sh", "-c", "echo begun; sleep 1000")
    other.until("begun")
    step.until("begun")
    tool.here.run("delete", "pod", "dev-worker-1", "--grace-period=0", "--force")
    assert step.end() not in {0, None}
    assert "worker dev-worker-1 was lost" in step.seen
    until_true(tool.here, dev, "Running")
    assert set(tool.run("step", dev, "--hosts", "1", "--", "hostname").split()) == {"dev-worker-1"}
    assert other.process.poll() is None
    assert other.end(signal.SIGINT) == 130


async def test_an_idle_allocation_ends_with_success_and_the_reason(tool: Tool) -> None:
    name = allocate(tool, "idle", "--image", IMAGE, "--idle", "40s")
    assert len(tool.run("step", name, "--", "hostname").split()) == 4
    until_true(tool.here, name, "Succeeded")
    job = tool.here.read(MPIJOBS, name)
    reason = "idle: no step ran and nobody typed in a shell for 40s"
    assert job["status"]["summary"]["message"] == reason
    assert reason in condition(job, "Succeeded")["message"]
    events = json.loads(tool.here.run("get", "events", f"--field-selector=involvedObject.name={name},reason=MPIJobSucceeded", "-o", "json"))
    assert [reason in event["message"] for event in events["items"]] == [True]
    assert reason in tool.run("why", name)
    ended = tool.attempt("step", name, "--", "hostname")
    assert (ended.returncode, ended.stderr) == (1, f"error: allocation idle has ended (Succeeded): {reason}\n")


def test_a_shell_has_steps_and_is_warned_before_the_time_limit(tool: Tool) -> None:
    terminal = Terminal(tool, ["alloc", "-n", "2", "--image", IMAGE, "--name", "shell", "--time-limit", "40s"], PS1="$ ")
    terminal.until("running: 2/2")
    terminal.type("mpiop step -n 1 -- sh -c 'echo $((40 + 2)) ranks' </dev/null\n")
    terminal.until("42 ranks")
    terminal.type("mpiop step -n 3 -- hostname\n")
    terminal.until("3 slots are wanted, and the allocation has 2")
    terminal.until("mpiop: the allocation ends in 10s: its time limit")
    terminal.until("mpiop: the allocation ends: time limit: it ran for 40s")
    assert terminal.end() != 0
    until_true(tool.here, "shell", "Succeeded")


@pytest.mark.usefixtures("images")
async def test_functions_run_in_an_allocation(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, tool.environment[name])

    def rank(factor: int) -> tuple[int, str]:
        import socket  # noqa: PLC0415 - on the ranks

        from mpi4py.MPI import COMM_WORLD  # type: ignore[import-not-found]  # noqa: PLC0415 - of the image

        print("not among the results")  # noqa: T201 - that is what it prints
        return COMM_WORLD.rank * factor, socket.gethostname()

    def fail() -> None:
        raise ValueError("no input")

    async with AsyncMPI(image=PYTHON_IMAGE).allocation(name="python", ranks=4, slots=2) as allocation:
        hosts = ["python-worker-0"] * 2 + ["python-worker-1"] * 2
        assert await allocation.run(rank, 10) == list(zip((0, 10, 20, 30), hosts, strict=True))
        assert await allocation.map(lambda item: item**2, range(7), ranks=3) == [item**2 for item in range(7)]
        with pytest.raises(JobFailed, match=r"^job python, step 3 failed: FunctionRaised: rank \d raised:\n(.*\n)*ValueError: no input"):
            await allocation.run(fail)
        before = processes(tool.here, "python")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(allocation.run(time.sleep, 1000), 10)
        await until_only(tool.here, "python", before)
        assert [result[0] for result in await allocation.run(rank, 1)] == [0, 1, 2, 3]
    assert not pods(tool.here, "python") or not tool.here.run("get", "mpijobs", "-o", "name").count("python")


class Notebook:
    """What `%%mpi` needs of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        load_ipython_extension(self)

    def register_magic_function(self, func: Callable[[str, str], None], magic_kind: str, magic_name: str) -> None:
        assert (magic_kind, magic_name) == ("cell", "mpi")
        self.mpi = func


@pytest.mark.usefixtures("images")
def test_a_cell_of_a_notebook_runs_on_the_ranks(tool: Tool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for variable in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(variable, tool.environment[variable])
    name, notebook = allocate(tool, "cells", "--image", PYTHON_IMAGE), Notebook()
    capsys.readouterr()
    begin = "from mpi4py.MPI import COMM_WORLD as world\n"
    notebook.mpi(f"{name} -n 3", f"{begin}print('rank', world.rank, 'of', world.size)")
    assert sorted(capsys.readouterr().out.splitlines()) == [f"{rank}: rank {rank} of 3" for rank in range(3)]
    with pytest.raises(JobFailed, match=r"^job cells, step 2 failed: StepFailed: its program ended with exit code 1$"):
        notebook.mpi(name, f"{begin}if world.rank == 1:\n    raise ValueError('no input')\nworld.barrier()")
    assert "1: ValueError: no input" in capsys.readouterr().out.splitlines()
    tool.run("delete", name, "--yes")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["image", "injected"])
async def test_each_library_runs_steps_and_leaves_nothing(images: None, tool: Tool, library: str, kind: str, tmp_path: Path) -> None:
    assert images is None
    image = f"mpiop.invalid/mpi-pi:{library if kind == 'image' else f'plain-{library}'}"
    user = () if kind == "image" else ("--user", "12345")
    name = allocate(tool, f"{kind}-{library}", "--image", image, "--mpi", IMPLEMENTATIONS[library].lower(), "--ssh", kind, *user)
    workers = [f"{name}-worker-{index}" for index in range(2)]
    assert sorted(tool.run("step", name, "--", "hostname").split()) == sorted(workers * 2)
    run_short_ranks(tool, name)
    before = processes(tool.here, name)
    uneven = tool.run("step", name, "-n", "3", "--", "sh", "-c", "echo $(hostname) $MPIOP_STEP").splitlines()
    assert Counter(uneven) == {f"{workers[0]} 2": 2, f"{workers[1]} 2": 1}
    beside = Client(tool, name, "-n", "1", "--hosts", "0", "--", "sh", "-c", "echo begun; sleep 1000")
    beside.until("begun")
    assert tool.run("step", name, "-n", "3", "--no-wait", "--", "hostname").split().count(workers[0]) == 1
    assert tool.attempt("step", name, "-n", "1", "--hosts", "1", "--", "sh", "-c", "exit 9").returncode == 9
    step = Client(tool, name, "--hosts", "1", "--", "sh", "-c", STUBBORN)
    step.until("begun")
    assert step.end(signal.SIGKILL) == -signal.SIGKILL
    assert beside.process.poll() is None
    assert beside.end(signal.SIGINT) == 130
    await until_only(tool.here, name, before)
    upload_and_build(tool, name, tmp_path / "folder")
    tool.run("delete", name, "--yes")


def run_short_ranks(tool: Tool, name: str) -> None:
    """Run programs that end at once: with threads, daemons of PRRTE 3.0 report their end in the wrong order, and every third hangs."""
    [launcher] = [pod for pod in pods(tool.here, name) if "launcher" in pod]
    script = "for i in $(seq 20); do timeout 60 mpirun -n 4 true || exit 1; done"
    tool.here.run("exec", launcher, "--", "sh", "-c", script)
