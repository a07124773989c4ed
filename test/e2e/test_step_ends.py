"""Steps that end at random: each has the right code or a clear error, leaves no process on any host, and gives its slots back.

MPIOP_STEP_ENDS is how many steps run (20; a long run is 200), MPIOP_STEP_SEED chooses them, and MPIOP_STEP_LIBRARY is an MPI library.
A failure names the seed, the number of the step, and how it was ended.
"""

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from e2e.allocations import STUBBORN, Client, allocate, pods, processes, until_only
from e2e.jobs import until_true
from e2e.kubectl import Kubectl, Obj
from e2e.libraries import IMPLEMENTATIONS, PLAIN_IMAGES, SSHD_IMAGES
from e2e.plugin import Tool, new_tool
from mpiop.kube.resources import PODS

IMAGES: Final = (*SSHD_IMAGES, *PLAIN_IMAGES)
COUNT: Final = int(os.environ.get("MPIOP_STEP_ENDS", "20"))
SEED: Final = int(os.environ.get("MPIOP_STEP_SEED", "1"))
LIBRARY: Final = os.environ.get("MPIOP_STEP_LIBRARY", "openmpi")
NAME: Final = "ends"
LOST: Final = "error: the connection to "
OF_STEP: Final = "for each in /tmp/mpiop/steps/*; do [ -e $each/ended ] || { read -r found rest <$each/%s; kill -KILL ${found%%-*}; }; done"
"""Kills a process of the steps that run: `of` has the script's own, `mpirun` that of `mpirun`."""


@dataclass
class Ends:
    """The ways in which a step ends; each returns what is wrong with its end, or ""."""

    tool: Tool
    chance: random.Random

    def start(self, *words: str) -> Client:
        """Start a step of some ranks."""
        return Client(self.tool, NAME, "-n", str(self.chance.randint(1, 4)), "--", *words)

    def begun(self) -> Client:
        """Return a step that runs, or one that is on its way there."""
        step = self.start("sh", "-c", self.chance.choice((STUBBORN, "echo begun; sleep 1000")))
        if self.chance.random() < 0.7:
            step.until("begun")
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                step.process.wait(self.chance.uniform(0, 1.5))
        return step

    def exit_code(self) -> str:
        """Each rank exits with the same code."""
        code = self.chance.randint(0, 125)
        step = self.start("sh", "-c", f"exit {code}")
        return wrong(step, step.end(), code)

    def rank_signal(self) -> str:
        """A signal ends each rank."""
        number = self.chance.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT))
        step = self.start("sh", "-c", f"kill -{number.name.removeprefix('SIG')} $$; sleep 1000")
        found = step.end()
        # Hydra reports the number of the signal.
        return wrong(step, found, 128 + number, number)

    def ctrl_c(self) -> str:
        """The user presses Ctrl-C; as long as Python starts, the signal itself ends the client."""
        step = self.begun()
        return wrong(step, step.end(signal.SIGINT), 130, -signal.SIGINT)

    def client_killed(self) -> str:
        """A signal ends the client."""
        number = self.chance.choice((signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
        step = self.begun()
        return wrong(step, step.end(number), -number)

    def connection_killed(self) -> str:
        """The `kubectl exec` of a running step is killed."""
        step = self.start("sh", "-c", STUBBORN)
        step.until("begun")
        for pid in Path(f"/proc/{step.process.pid}/task/{step.process.pid}/children").read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGKILL)
        return wrong(step, step.end(), 1, message=LOST)

    def script_killed(self) -> str:
        """The step's own process in the launcher is killed."""
        step = self.start("sh", "-c", STUBBORN)
        step.until("begun")
        self.in_launcher(OF_STEP % "of")
        return wrong(step, step.end(), 1, message=LOST)

    def mpirun_killed(self) -> str:
        """`mpirun` is killed."""
        step = self.start("sh", "-c", "echo begun; sleep 1000")
        step.until("begun")
        self.in_launcher(OF_STEP % "mpirun")
        return wrong(step, step.end(), 137)

    def worker_killed(self) -> str:
        """The Pod of a worker is deleted at once, and the operator creates another."""
        worker = f"{NAME}-worker-{self.chance.randint(0, 1)}"
        step = Client(self.tool, NAME, "--hosts", worker[-1], "--", "sh", "-c", "echo begun; sleep 1000")
        step.until("begun")
        before = self.tool.here.read(PODS, worker)["metadata"]["uid"]
        self.tool.here.run("delete", "pod", worker, "--grace-period=0", "--force")
        code = step.end()
        self.tool.here.until_one(PODS, worker, lambda pod: pod["metadata"]["uid"] != before and is_ready(pod), timeout_seconds=120)
        until_true(self.tool.here, NAME, "Running")
        return wrong(step, code, code or 1, message=f"worker {worker} was lost")

    def in_launcher(self, script: str) -> None:
        [launcher] = [pod for pod in pods(self.tool.here, NAME) if "launcher" in pod]
        self.tool.here.run("exec", launcher, "--", "sh", "-c", script)


def wrong(step: Client, code: int, *expected: int, message: str = "") -> str:
    if code in expected and message in step.seen:
        return ""
    return f"exit code {code} instead of {expected}{f' with {message!r}' if message else ''}; it printed: {step.seen}"


def is_ready(pod: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ())


WAYS: Final = (
    *(Ends.exit_code, Ends.rank_signal, Ends.ctrl_c, Ends.client_killed, Ends.connection_killed, Ends.script_killed, Ends.mpirun_killed),
    Ends.worker_killed,
)


@pytest.fixture(scope="module")
def tool(module_namespace: Kubectl, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    assert images is None
    made = new_tool(module_namespace, tmp_path_factory.mktemp("ends"))
    yield made
    made.here.run("delete", "mpijobs", "--all")


async def test_steps_that_end_at_random_leave_nothing_and_lose_no_slot(tool: Tool) -> None:
    allocate(tool, NAME, "--image", f"mpiop.invalid/mpi-pi:{LIBRARY}", "--mpi", IMPLEMENTATIONS[LIBRARY].lower(), "--ssh", "image")
    tool.run("step", NAME, "--", "true")
    before = processes(tool.here, NAME)
    chance = random.Random(SEED)  # noqa: S311 - chance, not secrets
    ends, problems = Ends(tool, chance), list[str]()
    for number in range(COUNT):
        way = WAYS[number % len(WAYS)] if number < len(WAYS) else chance.choice(WAYS)
        found = [way(ends)]
        try:
            await until_only(tool.here, NAME, before)
        except TimeoutError:
            found.append(f"it left {processes(tool.here, NAME) - before}")
        free = tool.attempt("step", NAME, "--no-wait", "--", "true")
        found.append("" if free.returncode == 0 else f"it kept slots: {free.stderr}")
        problems += [f"seed {SEED}, step {number}, {way.__name__}: {each}" for each in found if each]
    assert not problems, "\n".join(problems)
