"""Steps that end at random: each has the right code or a clear error, leaves no process on any host, and gives its slots back.

There is an allocation for each MPI library, with the ssh of its image and with injected ssh. MPIOP_STEP_ENDS is how many steps run in each
(20), and MPIOP_STEP_SEED chooses them. A failure names the seed, the number of the step, and how it was ended.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from e2e.allocations import STUBBORN, Client, allocate, pods, processes, until_only
from e2e.clusters import IS_CURRENT, paused, project
from e2e.conftest import NAME as CLUSTER
from e2e.jobs import is_true, until_true
from e2e.kubectl import Kubectl
from e2e.libraries import IMPLEMENTATIONS, LIBRARIES, PLAIN_IMAGES, SSHD_IMAGES, plain_image
from e2e.operator_pods import Operator
from e2e.plugin import Tool, new_tool
from e2e.waiting import until
from mpiop.kube.resources import PODS

IMAGES: Final = (*SSHD_IMAGES, *PLAIN_IMAGES)
COUNT: Final = int(os.environ.get("MPIOP_STEP_ENDS", "20"))
SEED: Final = int(os.environ.get("MPIOP_STEP_SEED", "1"))
SIMPLE: Final = "echo begun; sleep 1000"
NOISY: Final = "echo begun; while sleep 0.01; do echo $(seq 300); echo $(seq 300) >&2; done"
"""It fills all pipes on its way as soon as nobody reads."""
LOST: Final = "error: the connection to "
OF_STEP: Final = "for each in /tmp/mpiop/steps/*; do [ -e $each/ended ] || { read -r found rest <$each/%s; kill -KILL ${found%%-*}; }; done"
"""Kills a process of the steps that run: `of` has the script's own, `mpirun` that of `mpirun`."""


@dataclass
class Ends:
    """The ways in which a step ends; each returns what is wrong with its end, or "".

    Attributes:
        tool: The plug-in.
        operator: Serves the allocation.
        name: Of the allocation.
        chance: Chooses what varies.
        silence: A pipe to which nobody writes.
        client: Of the step.
    """

    tool: Tool
    operator: Operator
    name: str
    chance: random.Random
    silence: int
    client: Client = field(init=False)

    def start(self, *words: str) -> Client:
        """Start a step of some ranks, with a standard input or none; `words` are the program, or options, `--` and the program."""
        options = () if "--" in words else ("-n", str(self.chance.randint(1, 4)), "--")
        self.client = Client(self.tool, self.name, *options, *words, stdin=self.chance.choice((subprocess.DEVNULL, self.silence)))
        return self.client

    def started(self) -> Client:
        """Start a step that does not end by itself."""
        return self.start("sh", "-c", self.chance.choice((SIMPLE, STUBBORN, NOISY)))

    def begun(self) -> Client:
        step = self.started()
        step.until("begun")
        return step

    def perhaps_begun(self) -> Client:
        """Return a step that runs, or one that is on its way there."""
        if self.chance.random() < 0.7:
            return self.begun()
        step = self.started()
        self.pass_time(step, 1.5)
        return step

    def pass_time(self, step: Client, most_seconds: float) -> None:
        """Return after a random time, or when the client has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            step.process.wait(self.chance.uniform(0, most_seconds))

    def exit_code(self) -> str:
        code = self.chance.randint(0, 125)
        step = self.start("sh", "-c", f"exit {code}")
        return wrong(step, step.end(), code)

    def rank_signal(self) -> str:
        number = self.chance.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT))
        step = self.start("sh", "-c", f"kill -{number.name.removeprefix('SIG')} $$; sleep 1000")
        found = step.end()
        # Hydra combines the codes of all ranks: number and SIGKILL. While it still starts other ranks, it ends with an error of its own.
        of_hydra = (number, number | signal.SIGKILL, *((255,) if "[proxy:" in step.seen or "[mpiexec@" in step.seen else ()))
        return wrong(step, found, 128 + number, *of_hydra)

    def ctrl_c(self) -> str:
        """The user presses Ctrl-C; as long as Python starts, the signal itself ends the client."""
        step = self.perhaps_begun()
        return wrong(step, step.end(signal.SIGINT), 130, -signal.SIGINT)

    def client_killed(self) -> str:
        number = self.chance.choice((signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
        step = self.perhaps_begun()
        return wrong(step, step.end(number), -number)

    def connection_killed(self) -> str:
        """The `kubectl exec` of a running step is killed."""
        step = self.begun()
        for pid in Path(f"/proc/{step.process.pid}/task/{step.process.pid}/children").read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGKILL)
        return wrong(step, step.end(), 1, message=LOST)

    def reader_ended(self) -> str:
        """Nobody reads what the client prints, as after `| head`."""
        step = self.start("sh", "-c", NOISY)
        step.until("begun")
        assert step.process.stdout is not None
        step.process.stdout.close()
        return wrong(step, step.process.wait(60), 141)

    def script_killed(self) -> str:
        """The step's own process in the launcher is killed."""
        step = self.begun()
        self.in_launcher(OF_STEP % "of")
        return wrong(step, step.end(), 1, message=LOST)

    def mpirun_killed(self) -> str:
        step = self.begun()
        self.in_launcher(OF_STEP % "mpirun")
        return wrong(step, step.end(), 137)

    def worker_killed(self) -> str:
        """The Pod of a worker is deleted at once, and the operator creates another."""
        worker = f"{self.name}-worker-{self.chance.randint(0, 1)}"
        step = self.start("--hosts", worker[-1], "--", "sh", "-c", SIMPLE)
        step.until("begun")
        before = self.tool.here.read(PODS, worker)["metadata"]["uid"]
        self.tool.here.run("delete", "pod", worker, "--grace-period=0", "--force")
        code = step.end()
        self.tool.here.until_one(PODS, worker, lambda pod: pod["metadata"]["uid"] != before and is_true(pod, "Ready"), timeout_seconds=120)
        until_true(self.tool.here, self.name, "Running")
        return wrong(step, code, code or 1, message=f"worker {worker} was lost")

    def api_server_restarted(self) -> str:
        """The API server ends or is killed, and is back after seconds: the connection breaks. A step that starts meanwhile may run."""
        step = self.perhaps_begun()
        project("hack/cluster", "restart", "--name", CLUSTER, "kube-apiserver", *self.chance.choice(((), ("--kill",))))
        if "begun" in step.seen:
            return wrong(step, step.end(), 1, message=LOST)
        code = step.end(signal.SIGINT)
        return wrong(step, code, 1, 130, -signal.SIGINT, message="error: " if code == 1 else "")

    def api_server_frozen(self) -> str:
        """The API server is frozen for seconds: the step continues."""
        code = self.chance.randint(0, 125)
        step = self.start("sh", "-c", f"echo begun; sleep 3; exit {code}")
        step.until("begun")
        with paused("kube-apiserver", CLUSTER):
            self.pass_time(step, 6)
        return wrong(step, step.end(), code)

    def leader_killed(self) -> str:
        """The operator's leader is killed: the step runs on, and another replica leads."""
        code = self.chance.randint(0, 125)
        step = self.start("sh", "-c", f"echo begun; sleep 20; exit {code}")
        step.until("begun")
        leader = self.operator.until_led()
        self.operator.kubectl.run("delete", "pod", leader, "--force", "--grace-period=0")
        self.operator.until_led(not_by=leader)
        return wrong(step, step.end(), code)

    def suspended(self) -> str:
        """The allocation is suspended while a step runs, and resumed."""
        step = self.begun()
        self.tool.run("suspend", self.name, "--yes")
        code = step.end()
        self.tool.here.until(PODS, lambda pods: not pods, labels=f"training.kubeflow.org/job-name={self.name}", timeout_seconds=120)
        self.tool.run("resume", self.name)
        until_true(self.tool.here, self.name, "Running", timeout_seconds=180)
        return wrong(step, code, code or 1, message="error: ")

    def in_launcher(self, script: str) -> None:
        [launcher] = [pod for pod in pods(self.tool.here, self.name) if "launcher" in pod]
        self.tool.here.run("exec", launcher, "--", "sh", "-c", script)


def wrong(step: Client, code: int, *expected: int, message: str = "") -> str:
    if code in expected and message in step.seen:
        return ""
    return f"exit code {code} instead of {expected}{f' with {message!r}' if message else ''}; it printed: {step.seen[-2000:]}"


WAYS: Final = (
    *(Ends.exit_code, Ends.rank_signal, Ends.ctrl_c, Ends.client_killed, Ends.connection_killed, Ends.reader_ended),
    *(Ends.script_killed, Ends.mpirun_killed, Ends.worker_killed, Ends.leader_killed, Ends.suspended),
)
OF_EMBEDDED_CLUSTER: Final = (Ends.api_server_restarted, Ends.api_server_frozen)


@pytest.fixture(scope="module")
def tool(module_namespace: Kubectl, images: None, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    assert images is None
    return new_tool(module_namespace, tmp_path_factory.mktemp("ends"))


@pytest.fixture(params=["image", "injected"])
def ssh(request: pytest.FixtureRequest) -> str:
    """Whose ssh the allocation uses."""
    return str(request.param)


@pytest.fixture(params=LIBRARIES)
def ends(request: pytest.FixtureRequest, tool: Tool, operator: Operator, ssh: str) -> Iterator[Ends]:
    """The ends of steps of an allocation with an MPI library."""
    library: str = request.param
    name = f"{ssh}-{library}"
    image = f"mpiop.invalid/mpi-pi:{library}" if ssh == "image" else plain_image(library)
    allocate(tool, name, "--image", image, "--mpi", IMPLEMENTATIONS[library].lower(), "--ssh", ssh)
    silence, writer = os.pipe()
    yield Ends(tool, operator, name, random.Random(f"{SEED} {name}"), silence)  # noqa: S311 - chance, not secrets
    os.close(silence)
    os.close(writer)
    tool.run("delete", name, "--yes")


async def test_steps_that_end_at_random_leave_nothing_and_lose_no_slot(ends: Ends) -> None:
    ways = WAYS if IS_CURRENT else WAYS + OF_EMBEDDED_CLUSTER
    ends.tool.run("step", ends.name, "--", "true")
    before, problems = processes(ends.tool.here, ends.name), list[str]()
    for number in range(COUNT):
        way = ways[number] if number < len(ways) else ends.chance.choice(ways)
        found = [each for each in await problems_of(ends, way, before) if each]
        print(f"step {number}, {way.__name__}: {found or 'as expected'}")  # noqa: T201 - a failure shows it
        problems += [f"seed {SEED}, step {number}, {way.__name__}: {each}" for each in found]
    assert not problems, "\n".join(problems)


async def problems_of(ends: Ends, way: Callable[[Ends], str], before: Counter[str]) -> list[str]:
    """Return what is wrong with the end of a step, what it left, and which slots it kept."""
    try:
        found = [way(ends)]
    except (AssertionError, subprocess.TimeoutExpired) as error:
        found = [f"{type(error).__name__}: {error}"]
        ends.client.process.kill()
    try:
        await until_free(ends)
    except (AssertionError, TimeoutError) as error:
        found.append(f"it kept slots: {error}")
    try:
        await until_only(ends.tool.here, ends.name, before)
    except (AssertionError, TimeoutError) as error:
        found.append(f"{error}; it left {processes(ends.tool.here, ends.name) - before}")
    return found


async def until_free(ends: Ends) -> None:
    """Wait until all slots are free: a client that was killed early may have sent the request for its step just before."""

    async def is_free() -> bool:
        step = await asyncio.to_thread(ends.tool.attempt, "step", ends.name, "--no-wait", "--", "true")
        assert step.returncode == 0 or "slots are wanted" in step.stderr, step.stderr
        return step.returncode == 0

    await until("all slots are free", is_free, timeout_seconds=60)
