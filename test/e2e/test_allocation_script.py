"""The script in the launcher of an allocation, in each shell that this machine has, with a stand-in for mpirun."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO

import pytest

import mpiop.client
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, OPEN_MPI
from mpiop.client.past_steps import step_output
from mpiop.client.steps import Step, Streams
from mpiop.client.tags import RankLines, Tagged
from mpiop.client.uploads import upload

pytestmark = pytest.mark.real_time
SCRIPT = Path(mpiop.client.__file__).with_name("allocation.sh")
SHELLS = [shell for shell in (("sh",), ("bash",), ("busybox", "sh")) if shutil.which(shell[0])]
MPIRUN = """#!/bin/sh
echo "mpirun $*" >&2
tr '\\n' ' ' <"$HYDRA_HOST_FILE" >&2
while [ "$1" != run ]; do shift; done
shift
exec 3<&0
"$@" <&3 &
trap 'kill $!; exit 99' TERM
wait $!
"""
SSH = """#!/bin/sh
host=${1%%.*}
shift
exec sh -c "$(printf '%s' "$*" | sed "1s#^home=\\([^;]*\\);#home=\\1-$host;#")"
"""
"""The folder of each host has its name at the end."""
STUBBORN = ("sh", "-c", "trap '' TERM; echo begun; while :; do sleep 0.2; done")


class Process(subprocess.Popen[str]):
    """A process with pipes for its streams."""

    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]

    def send(self, text: str) -> None:
        self.stdin.write(text)
        self.stdin.flush()


class Allocation:
    """A holder of two hosts with two slots each, and its steps."""

    def __init__(self, folder: Path, shell: tuple[str, ...], **settings: str) -> None:
        self.folder, self._shell = folder, shell
        self._steps: list[Process] = []
        self.home, self.message = folder / "home", folder / "message"
        for name, text in (("mpirun", MPIRUN), ("agent", SSH)):
            file = folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
        hostfile = folder / "hostfile"
        hostfile.write_text("a.job.team.svc:2\nb.job.team.svc:2\n")
        self.environment = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "MPIOP_ALLOCATION": str(self.home),
            "MPIOP_MESSAGE": str(self.message),
            "MPIOP_RANKS": "3",
            "HYDRA_HOST_FILE": str(hostfile),
            "HYDRA_LAUNCHER_EXEC": str(folder / "bin" / "agent"),
            **settings,
        }
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        self.kubectl = ["env", *variables, "sh", "-c", f'shift 3; exec {" ".join(shell)} {SCRIPT} "$@"', "kubectl"]
        command = [*shell, str(SCRIPT), "hold", "-wdir '/a b'", "-tagged"]
        self.holder = Process(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "allocation is ready\n"

    def start(self, *words: str, verb: str = "step", terminal: int | None = None) -> Process:
        """Start a step, whose standard input is the connection to its client, or another verb, maybe on a terminal."""
        command = [*self._shell, str(SCRIPT), verb, *words]
        stream = subprocess.PIPE if terminal is None else terminal
        self._steps.append(
            Process(
                command, env=self.environment, stdin=stream, stdout=stream, stderr=stream, text=True, start_new_session=terminal is not None
            )
        )
        return self._steps[-1]

    def step(self, *words: str) -> tuple[int, str, str]:
        return self.read("step", *words)

    def read(self, verb: str, *words: str) -> tuple[int, str, str]:
        process = self.start(*words, verb=verb)
        out, err = process.communicate(timeout=30)
        return process.returncode, out, err

    def run_of(self, step: Process) -> Process:
        assert step.stdout.readline() == "begun\n"
        return step

    def ranks(self) -> list[str]:
        """Return the command lines of the processes of steps."""
        return self.processes("MPIOP_STEP=")

    def processes(self, variable: str = "") -> list[str]:
        """Return the command lines of all processes but the holder, or of those with a variable."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                variables, command = (process / "environ").read_bytes().split(b"\0"), (process / "cmdline").read_bytes()
            except OSError:
                continue
            is_own = f"MPIOP_ALLOCATION={self.home}".encode() in variables and process.name != str(self.holder.pid)
            if is_own and any(each.startswith(variable.encode()) for each in variables):
                found.append(command.replace(b"\0", b" ").decode())
        return found

    def files_of_steps(self) -> list[Path]:
        """Return the files that the script keeps as long as a step runs or waits."""
        return [file for pattern in ("asks/*", "beat-*", "why-*") for file in self.home.glob(pattern)]

    def end(self) -> int:
        self.holder.terminate()
        code = self.holder.wait(30)
        for process in (self.holder, *self._steps):
            process.wait(30)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        return code


Make = Callable[..., Allocation]


@pytest.fixture(params=SHELLS, ids=" ".join)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[Allocation] = []

    def call(**settings: str) -> Allocation:
        made.append(Allocation(tmp_path, request.param, **settings))
        return made[-1]

    yield call
    for each in made:
        each.end()
        eventually(lambda each=each: not each.ranks())


def eventually(is_so: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_step_runs_mpirun_on_its_slots_and_returns_its_code(make: Make) -> None:
    allocation = make(MPIOP_EXPORT_OPTION="-x")
    program = ("run", "sh", "-c", 'echo "$MPIOP_STEP|$WORD|$*"; exit 7', "sh", "a b", "$c")
    code, out, err = allocation.step("-n", "2", "-e", "WORD=x y", "--mpirun-args", "--map-by 'a node'", "--", *program)
    assert (code, out) == (7, "1|x y|a b $c\n")
    assert err.splitlines()[0].startswith("mpirun -n 2 -wdir /a b -x WORD -x MPIOP_STEP --map-by a node run sh")
    assert "a.job.team.svc:2 " in err.splitlines()
    member = allocation.step("-n", "1", "-e", "MPIOP_ARRAY_INDEX=3", "--", "run", "sh", "-c", 'echo "$MPIOP_ARRAY_INDEX $MPIOP_STEP"')
    assert member[:2] == (0, "3 2\n")
    tagged = allocation.start("--tag", "--token", "T", "--", "run", "true")
    assert tagged.wait(30) == 0
    assert [line.partition(" run ")[0] for line in tagged.stderr.read().splitlines()] == [
        "mpiop:T:runs 3 0:2 1:1",
        "mpirun -n 3 -tagged -wdir /a b -x MPIOP_STEP",
        "a.job.team.svc:2 b.job.team.svc:1 mpiop:T:ended 0 ",
    ]
    rows = [line.split("\t") for line in allocation.read("history")[1].splitlines()]
    assert [(row[0], row[1], row[4], row[5]) for row in rows] == [
        ("1", "7", "2", "0:2"),
        ("2", "0", "1", "0:1"),
        ("3", "0", "3", "0:2 1:1"),
    ]


def test_the_end_of_the_output_of_the_last_steps_is_kept(make: Make) -> None:
    allocation = make(MPIOP_KEPT_STEPS="25")
    assert allocation.step("-n", "1", "--", "run", "sh", "-c", "echo out; echo err >&2; printf half")[:2] == (0, "out\nhalf")
    code, out, _ = allocation.read("client", "MARK", "output", "1")
    assert (code, out.splitlines()[0], out[-10:]) == (0, "0", "\nMARK end\n")
    assert all(text in out for text in ("out\n", "err\n", "half")), "of both streams"
    code, out, _ = allocation.step("--tag", "--", "run", "seq", "100000000", "100400000")  # which writes pieces of 4 KiB
    head, end = allocation.read("client", "MARK", "output", "2")[1].removesuffix("\nMARK end\n").split("\nMARK dropped\n")
    assert (code, head) == (0, "1\n")
    assert 2**20 <= len(end) <= 2**21
    assert out.endswith(f"\n{end}")
    for _ in range(25):
        assert allocation.step("-n", "1", "--", "run", "true")[0] == 0
    assert allocation.read("client", "MARK", "output", "8")[0] == 0
    assert allocation.read("client", "MARK", "output", "7") == (
        3,
        "",
        "the output of step 7 was dropped: those of the last 20 steps are kept\n",
    )
    assert allocation.read("client", "MARK", "output", "2") == (3, "", "there is no step 2, or it is too old\n")
    assert [line.split("\t")[0] for line in allocation.read("history")[1].splitlines()] == [str(number) for number in range(3, 28)]


def followed(allocation: Allocation, lines: list[bytes]) -> threading.Thread:
    """Return a thread that follows the output of the first step."""

    def follow() -> None:
        lines.extend(line.text for line in step_output(allocation.kubectl, 1, OPEN_MPI, pytest.fail, follow=True))

    thread = threading.Thread(target=follow)
    thread.start()
    return thread


def kept(allocation: Allocation) -> str:
    return allocation.read("client", "MARK", "output", "1")[1]


def test_the_output_of_a_step_is_followed_in_whole_lines_until_its_end(make: Make) -> None:
    allocation = make()
    pipe, lines = allocation.folder / "pipe", list[bytes]()
    os.mkfifo(pipe)
    program = "read -r line; printf 'a\\nha'; read -r line; printf 'lf\\n\\nb\\n'; read -r line; printf end; exit 3"
    step = allocation.start("-n", "1", "--", "run", "sh", "-c", f"exec <>{pipe}; {program}")
    eventually(lambda: "a.job.team.svc:1 " in kept(allocation))
    thread = followed(allocation, lines)
    pipe.write_text("\n")
    eventually(lambda: kept(allocation).endswith("\nha\nMARK end\n"))
    eventually(lambda: bool(lines) and lines[-1] == b"a.job.team.svc:1 a")
    pipe.write_text("\n")
    eventually(lambda: lines[-3:] == [b"half", b"", b"b"])
    assert thread.is_alive()
    pipe.write_text("\n")
    assert step.wait(30) == 3
    thread.join(30)
    assert lines[-1] == b"end"
    again = list[bytes]()
    followed(allocation, again).join(30)
    assert again == lines, "of a step that has ended"


def test_a_follower_that_is_too_slow_misses_whole_lines_and_reports_it(make: Make) -> None:
    allocation = make()
    step = allocation.run_of(allocation.start("-n", "1", "--", "run", "sh", "-c", "echo begun; read -r line; seq 1000000 2000000"))
    follower = allocation.start("MARK", "output", "1", "follow", verb="client")
    assert follower.stdout.readline() == "0\n"
    assert step.communicate("\n", timeout=60)[0].endswith("\n2000000\n")
    lines = follower.stdout.read().splitlines()
    dropped = lines.index("MARK dropped")
    numbers = [int(line) for line in lines[dropped + 1 : -2]]
    assert lines[dropped - 1] == lines[-2] == ""
    assert numbers == list(range(numbers[0], 2000001))
    assert lines[-1] == "MARK end"


def test_a_follower_ends_with_its_client(make: Make) -> None:
    allocation = make()
    step = allocation.run_of(allocation.start("-n", "1", "--", "run", "sh", "-c", "echo begun; sleep 100"))
    follower = allocation.start("MARK", "output", "1", "follow", verb="client")
    assert follower.stdout.readline() == "0\n"
    follower.stdin.close()
    assert follower.wait(30) == -signal.SIGTERM
    step.terminate()


def contents(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_uploads_reach_the_hosts_of_a_step_with_what_was_built(make: Make, tmp_path: Path) -> None:
    allocation, here = make(), tmp_path / "here"
    hosts = [tmp_path / "home-a" / "upload", tmp_path / "home-b" / "upload"]
    write(here, source="1\n", deep__er__old="old\n", same="same\n")
    upload(allocation.kubectl, here)
    build = ("--build", "cat source same >built; ln -sf built link")
    code, out, err = allocation.step("-n", "2", *build, "--", "run", "cat", "built")
    assert (code, out) == (0, "1\nsame\n"), err
    assert "-wdir" not in err
    expected = {"source": "1\n", "deep/er/old": "old\n", "same": "same\n", "built": "1\nsame\n", "link": "1\nsame\n"}
    assert contents(hosts[0]) == expected
    assert (hosts[0] / "link").is_symlink()
    assert not hosts[1].exists(), "it has no rank"
    before = (hosts[0] / "same").stat().st_ino
    (here / "deep/er/old").unlink()
    (here / "deep/er").rmdir()
    (here / "deep").rmdir()
    write(here, source="2\n", deep="a file now\n")
    upload(allocation.kubectl, here)
    assert contents(allocation.home / "upload")["built"] == "1\nsame\n", "what was built stays"
    assert allocation.step("-n", "4", *build, "--", "run", "cat", "built")[:2] == (0, "2\nsame\n")
    expected = {"source": "2\n", "deep": "a file now\n", "same": "same\n", "built": "2\nsame\n", "link": "2\nsame\n"}
    assert [contents(host) for host in hosts] == [expected] * 2
    assert (hosts[0] / "same").stat().st_ino == before, "only what changed is sent"
    shutil.rmtree(hosts[0].parent)
    assert allocation.step("-n", "4", "--upload", "--", "run", "cat", "built")[:2] == (0, "2\nsame\n")
    assert contents(hosts[0]) == expected, "a worker was replaced"
    failed = allocation.start("--token", "T", "--build", "echo no rule >&2; exit 2", "--", "run", "true")
    assert failed.wait(30) == 2
    assert failed.stderr.read().splitlines()[-2:] == ["no rule", "mpiop:T:ended 2 the build failed with exit code 2"]


def test_a_build_that_is_ended_leaves_no_process_and_frees_the_folder(make: Make, tmp_path: Path) -> None:
    allocation = make()
    write(tmp_path / "here", source="1\n")
    upload(allocation.kubectl, tmp_path / "here")
    step = allocation.run_of(allocation.start("--token", "T", "--build", "echo begun; sleep 1000 & sleep 1001", "--", "run", "true"))
    step.stdin.close()
    assert step.wait(30) == 143
    eventually(lambda: not allocation.ranks())
    assert allocation.step("--upload", "--", "run", "cat", "source")[:2] == (0, "1\n")


def test_bytes_for_rank_0_arrive_also_if_their_step_had_to_wait(make: Make) -> None:
    allocation, output, has_waited = make(), list[Tagged](), threading.Event()
    first = allocation.run_of(allocation.start("-n", "4", "--", "run", "sh", "-c", "echo begun; read -r line"))
    streams = Streams(output.append, output.append, lambda _: has_waited.set())
    step = Step(allocation.kubectl, ["--", "run", "cat"], lambda: RankLines(None), streams, has_input=b"sent\n")
    assert has_waited.wait(30)
    first.communicate("\n", timeout=30)
    assert step.wait().code == 0
    assert Tagged(None, b"sent") in output
    at_once = Step(allocation.kubectl, ["--", "run", "cat"], lambda: RankLines(None), streams, has_input=b"again\n")
    assert at_once.wait().code == 0
    assert Tagged(None, b"again") in output


@pytest.mark.parametrize("sent", [4, 100_000])
@pytest.mark.parametrize("way", ["its connection ends", "its connection falls silent", "its own process is killed"])
def test_a_step_whose_bytes_do_not_arrive_never_begins_and_leaves_nothing(make: Make, way: str, sent: int) -> None:
    allocation = make(MPIOP_LOST_SECONDS="1")
    step = allocation.start("--token", "T", "--content", str(2 * sent + 1), "--", "run", "sh", "-c", "echo begun")
    step.send("x" * sent)
    eventually(lambda: [sent < 5_000 or file.stat().st_size > 0 for file in allocation.home.glob("asks/*/content")] == [True])
    if way == "its own process is killed":
        step.kill()
    if way == "its connection falls silent":
        assert step.wait(30) == 143
    else:
        step.stdin.close()
        step.wait(30)
    assert "begun" not in step.stdout.read()
    eventually(lambda: not allocation.files_of_steps())
    eventually(lambda: not allocation.processes())
    assert allocation.step("-n", "4", "--no-wait", "--", "run", "true")[0] == 0


def test_bytes_that_arrive_slowly_keep_their_step(make: Make) -> None:
    allocation = make(MPIOP_LOST_SECONDS="2")
    piece = "".join(f"{number:7}\n" for number in range(1000))
    step = allocation.start("--token", "T", "--content", str(20 * len(piece)), "--", "run", "cat")
    for _ in range(20):
        step.send(piece)
        time.sleep(0.4)
    step.send("\nask\n")
    assert step.stdout.read() == 20 * piece


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 8192, 3_000_000])
def test_exactly_the_bytes_for_rank_0_arrive(make: Make, size: int) -> None:
    allocation, output, content = make(), list[Tagged](), os.urandom(size)
    streams = Streams(output.append, output.append, lambda _: None)
    step = Step(allocation.kubectl, ["-n", "1", "--", "run", "sha256sum"], lambda: RankLines(None), streams, has_input=content)
    assert step.wait().code == 0
    assert Tagged(None, f"{sha256(content).hexdigest()}  -".encode()) in output


def test_a_launcher_that_cannot_store_the_bytes_is_the_reason(make: Make) -> None:
    allocation, output = make(), list[Tagged]()
    *words, script, name = allocation.kubectl
    limited = [*words, f"ulimit -f 8; {script}", name]  # 4 or 8 KiB
    streams = Streams(output.append, output.append, pytest.fail)
    end = Step(limited, ["--", "run", "cat"], lambda: RankLines(None), streams, has_input=b"sent" * 5_000).wait()
    reason = "the launcher cannot store the bytes for rank 0: its disk is full, or its dd cannot read full blocks"
    assert (end.code, end.why, output) == (143, reason, [])
    assert not allocation.files_of_steps()


def test_an_order_that_follows_the_bytes_ends_the_step_and_the_bytes_are_removed(make: Make) -> None:
    allocation, output = make(), list[Tagged]()
    streams = Streams(output.append, output.append, lambda _: None)
    step = Step(allocation.kubectl, ["--", "run", *STUBBORN], lambda: RankLines(None), streams, has_input=b"interrupt\n" * 100_000)
    step.interrupt()
    assert step.wait().code == 130
    assert not [file for file in allocation.home.rglob("*") if file.is_file() and b"interrupt" in file.read_bytes()]


def test_input_that_arrives_after_its_step_is_dropped(make: Make) -> None:
    allocation = make()
    assert allocation.read("input", "T")[0] == 141
    assert not [*allocation.home.glob("input-*")]


@pytest.mark.parametrize("way", ["its program ends", "its connection ends", "its own process is killed"])
def test_what_passes_input_on_ends_with_its_step(make: Make, way: str) -> None:
    allocation = make(MPIOP_LOST_SECONDS="2")
    step = allocation.start("--token", "T", "--input", "--", "run", "sh", "-c", "echo begun; read -r line")
    assert step.stderr.readline().startswith("mpiop:T:runs 1 ")
    passes = allocation.start("T", verb="input")
    allocation.run_of(step)
    if way == "its program ends":
        passes.send("line\n")
    else:
        if way == "its own process is killed":
            step.kill()
        step.stdin.close()
    assert passes.wait(30) == 0
    assert allocation.step("-n", "4", "--", "run", "true")[0] == 0
    assert not [*allocation.home.glob("input-*")]


READS_ON = """#!/usr/bin/env python3
import subprocess, sys
daemon = subprocess.Popen(["sleep", "3"])
print(sys.stdin.readline(), end="", flush=True)
sys.stdin.read()
"""


def test_an_mpirun_whose_daemons_have_ended_waits_for_no_input(make: Make) -> None:
    """That of MPICH does, if signals kill the ranks as they start."""
    allocation = make(MPIOP_LOST_SECONDS="1")
    (allocation.folder / "bin" / "mpirun").write_text(READS_ON)
    step = allocation.start("--token", "T", "--input", "--", "run", "true")
    assert step.stderr.readline().startswith("mpiop:T:runs 1 ")
    passes = allocation.start("T", verb="input")
    begun, is_sent = time.monotonic(), False
    while step.poll() is None and time.monotonic() < begun + 30:
        step.send("\n")
        time.sleep(0.2)
        if not is_sent and time.monotonic() > begun + 2:  # not before the script has looked at its daemons
            passes.send("a line\n")
            is_sent = True
    assert step.communicate()[0] == "a line\n"
    assert (step.returncode, passes.wait(30)) == (0, 0)
    assert not [*allocation.home.glob("input-*")]


def test_intel_mpi_gets_the_slots_of_each_host_by_an_option(make: Make, tmp_path: Path) -> None:
    allocation = make(I_MPI_HYDRA_HOST_FILE=str(tmp_path / "hostfile"))
    _, _, err = allocation.step("-n", "3", "--", "run", "true")
    assert err.startswith(f"mpirun -n 3 -machinefile {allocation.home}/steps/1/hostfile -wdir /a b run true\n")


OF_THE_SCRIPT = ("dir", "number", "why", "home", "token", "build", "need", "problem", "words", "exports", "assignments", "rest", "ranks")


def test_variables_for_the_ranks_do_not_change_those_of_the_script(make: Make) -> None:
    options = [word for name in OF_THE_SCRIPT for word in ("-e", f"{name}=it's '$HOME' \"x\"")]
    show = 'for each; do eval "echo \\"\\$$each\\""; done'
    code, out, _ = make().step("-n", "1", *options, "--", "run", "sh", "-c", show, "sh", *OF_THE_SCRIPT)
    assert (code, out) == (0, "it's '$HOME' \"x\"\n" * len(OF_THE_SCRIPT))


REFUSED = [
    (("-n", "5"), "5 slots are wanted, and the allocation has 4", 1),
    (("-n", "3", "--hosts", "1"), "3 slots are wanted, and hosts 1 have 2", 1),
    (("--hosts", "0,2"), "there is no host 2: the hosts are 0 to 1", 1),
    (("-n", "4", "--no-wait"), "4 slots are wanted, and 2 of 4 are free; running: step 1", 1),
    (("--hosts", "0", "--no-wait"), "2 slots are wanted, and 0 of 2 are free; running: step 1", 1),
    (("--hosts", "00"), "--hosts 00: a host is a number from 0 to 1", 1),
    (("--hosts", ",,"), "hosts ,, have no slots", 1),
    (("-n", "9" * 20), f"-n {'9' * 20}: a number is expected", 2),
    (("-n", "0"), "-n 0: a number is expected", 2),
    (("--hosts", "a"), "--hosts a: write numbers with commas, such as 0,1", 2),
    (("-e", "A-B=1"), "-e A-B=1: write NAME=VALUE", 2),
    (("-e", "MPIOP_STEP=7"), "-e MPIOP_STEP: steps set this variable", 2),
    (("-e", "PATH=/none"), "the image has no mpirun in its PATH", 2),
    (("--wrong",), "--wrong is not an option of step", 2),
]


def test_slots_are_counted(make: Make) -> None:
    allocation = make()
    first = allocation.run_of(allocation.start("--hosts", "0", "--", "run", "sh", "-c", "echo begun; sleep 100"))
    for words, message, code in REFUSED:
        assert allocation.step(*words, "--", "run", "true") == (code, "", f"mpiop step: {message}\n"), words
    assert "b.job.team.svc:2 " in allocation.step("-n", "2", "--", "run", "true")[2]
    assert "a.job.team.svc:2 b.job.team.svc:2 " in allocation.step("-n", "4", "--overlap", "--", "run", "true")[2]
    waiting = allocation.start("-n", "3", "--", "run", "echo", "waited")
    assert waiting.stderr.readline() == "mpiop step: waits: 3 slots are wanted, and 2 of 4 are free; running: step 1\n"
    passing = allocation.step("-n", "1", "--", "run", "echo", "passed")
    assert passing[:2] == (0, "passed\n")
    first.terminate()
    assert waiting.communicate(timeout=30)[0] == "waited\n"
    assert first.wait(30) == 143


@pytest.mark.parametrize("way", ["end of input", "silence", "interrupt", "end", "INT", "TERM", "HUP"])
def test_a_step_that_is_ended_leaves_no_process_and_frees_its_slots(make: Make, way: str) -> None:
    allocation = make(MPIOP_LOST_SECONDS="1" if way == "silence" else "60")
    step = allocation.run_of(allocation.start("--token", "T", "-n", "4", "--", "run", *STUBBORN))
    assert allocation.ranks()
    lost = "the connection to the client was lost"
    expected = {
        "interrupt": (130, "interrupted"),
        "end": (143, "a reason"),
        "INT": (130, "interrupted"),
        "TERM": (143, "ended by a signal"),
    }
    code, why = {**expected, "HUP": (129, "the terminal was closed")}.get(way, (143, lost))
    if way == "end of input":
        step.stdin.close()
    elif way in {"interrupt", "end"}:
        step.send("\ninterrupt\n" if way == "interrupt" else "end a reason\n")
    elif way != "silence":
        step.send_signal(signal.Signals[f"SIG{way}"])
    assert step.wait(30) == code
    assert step.stderr.read().splitlines()[-1].endswith(f"mpiop:T:ended {code} {why}")
    eventually(lambda: not allocation.ranks())
    assert allocation.step("-n", "4", "--no-wait", "--", "run", "true")[0] == 0
    assert not allocation.files_of_steps()


def fill(pipe: IO[str]) -> None:
    """Write to the pipe that this reads until not another byte fits. Its writers may have it under any number."""
    writer = os.open(f"/proc/self/fd/{pipe.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.close(writer)


@pytest.mark.parametrize("are_closed", [False, True], ids=["which nobody reads", "which is closed"])
def test_a_step_is_ended_in_the_same_way_when_it_cannot_print(make: Make, are_closed: bool) -> None:  # noqa: FBT001 - a parameter
    allocation = make()
    noise = "echo begun; while sleep 0.01; do seq 3000; seq 3000 >&2; done"
    step = allocation.run_of(allocation.start("--token", "T", "--", "run", "sh", "-c", noise))
    if are_closed:
        step.stdout.close()
        step.stderr.close()
    else:
        fill(step.stderr)
    step.stdin.close()
    assert step.wait(30) == 143
    assert not allocation.ranks()
    assert allocation.step("-n", "4", "--no-wait", "--", "run", "true")[0] == 0
    assert not allocation.files_of_steps()


def test_a_host_whose_slots_are_not_a_number_has_none(make: Make) -> None:
    allocation = make()
    hostfile = Path(allocation.environment["HYDRA_HOST_FILE"])
    for count in ("", "x", "08", "a[$(touch pwned)0]", "9" * 20):
        hostfile.write_text(f"a.job.team.svc:{count}\nb.job.team.svc:2\n")
        refused = allocation.step("--hosts", "0", "--", "run", "true")
        assert refused == (1, "", "mpiop step: hosts 0 have no slots\n"), count
        assert allocation.step("--hosts", "1", "--", "run", "echo", "ran")[:2] == (0, "ran\n")
    assert allocation.holder.poll() is None


def test_a_step_that_waits_can_be_ended(make: Make) -> None:
    allocation = make()
    first = allocation.run_of(allocation.start("-n", "4", "--", "run", "sh", "-c", "echo begun; sleep 100"))
    waiting = allocation.start("--token", "T", "--", "run", "true")
    assert "T:waits 3 slots" in waiting.stderr.readline()
    waiting.stdin.close()
    assert waiting.wait(30) == 143
    first.terminate()
    assert first.wait(30) == 143
    assert allocation.step("-n", "4", "--no-wait", "--", "run", "true")[0] == 0


@pytest.mark.parametrize("is_connected", [False, True], ids=["then its connection ends", "its connection stays"])
def test_a_step_whose_own_process_is_killed_is_ended_by_others(make: Make, is_connected: bool) -> None:  # noqa: FBT001 - a parameter
    allocation = make(MPIOP_LOST_SECONDS="2")
    step = allocation.run_of(allocation.start("--token", "T", "-n", "4", "--", "run", *STUBBORN))
    step.kill()
    if not is_connected:
        step.stdin.close()
        eventually(lambda: not allocation.ranks())
    assert allocation.step("-n", "4", "--", "run", "echo", "free")[:2] == (0, "free\n")
    assert not any("while" in each for each in allocation.ranks())


def test_a_step_whose_mpirun_is_killed_leaves_no_process_and_frees_its_slots(make: Make) -> None:
    allocation = make()
    step = allocation.run_of(allocation.start("--token", "T", "-n", "4", "--", "run", *STUBBORN))
    mpirun = allocation.home / "steps" / "1" / "mpirun"
    eventually(lambda: mpirun.exists() and mpirun.read_text() != "")
    os.kill(int(mpirun.read_text().split()[0]), signal.SIGKILL)
    assert step.wait(30) == 137
    assert not allocation.ranks()
    assert allocation.step("-n", "4", "--no-wait", "--", "run", "true")[0] == 0


def test_an_idle_allocation_ends_with_success_and_the_reason(make: Make) -> None:
    allocation = make(MPIOP_IDLE="2")
    allocation.message.write_text("mpirun calls ssh\n")
    began = time.monotonic()
    step = allocation.run_of(allocation.start("--", "run", "sh", "-c", "echo begun; sleep 3"))
    assert step.wait(30) == 0
    assert allocation.holder.wait(30) == 0
    assert time.monotonic() - began > 4
    assert allocation.message.read_text() == "mpirun calls ssh\nidle: no step ran and nobody typed in a shell for 2s\n"


def test_the_time_limit_ends_steps_too(make: Make) -> None:
    allocation = make(MPIOP_TIME_LIMIT="3")
    step = allocation.run_of(allocation.start("--token", "T", "--", "run", *STUBBORN))
    assert step.wait(30) == 143
    assert step.stderr.read().endswith("T:ended 143 the allocation ended: time limit: it ran for 3s\n")
    assert allocation.holder.wait(30) == 0
    assert allocation.message.read_text() == "time limit: it ran for 3s\n"


def test_a_shell_shows_the_end_of_its_allocation_and_ends_before_it(make: Make) -> None:
    allocation = make(MPIOP_TIME_LIMIT="3", PS1="$ ")
    ours, theirs = pty.openpty()
    shell = allocation.start(verb="shell", terminal=theirs)
    os.close(theirs)
    assert allocation.holder.wait(30) == 0
    assert shell.poll() == -signal.SIGHUP, "what is in a terminal when the container ends is lost"
    os.set_blocking(ours, False)
    assert b"mpiop: the allocation ends: time limit: it ran for 3s" in os.read(ours, 65536)
    os.close(ours)


def test_a_launcher_that_is_asked_to_end_has_not_succeeded(make: Make) -> None:
    allocation = make()
    step = allocation.run_of(allocation.start("--token", "T", "--", "run", *STUBBORN))
    assert allocation.end() == 143
    assert step.wait(30) == 143
    eventually(lambda: not allocation.ranks())


def test_the_operator_finds_no_choice_of_cores_in_the_script() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert not [row.name for row in IMPLEMENTATIONS.values() if row.binding_choice and re.search(row.binding_choice, text)]
