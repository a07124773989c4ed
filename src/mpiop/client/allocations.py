"""An allocation from Python: functions run on its ranks as steps, without new Pods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from mpiop.client.allocation import Launcher, Watch, launcher_of
from mpiop.client.errors import JobFailed
from mpiop.client.functions import FunctionCall, Outcome
from mpiop.client.job import Job
from mpiop.client.kubectl import exec_command
from mpiop.client.program_steps import ProgramStep, Reports, step_words
from mpiop.client.runner import step_command, step_input
from mpiop.client.steps import Step, Streams
from mpiop.client.tags import RankLines, Tagged

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class Allocation:
    """An allocation that runs (see `MPI.allocation`).

    Attributes:
        job: Its job.
    """

    def __init__(self, job: Job, cluster: Sequence[str] = ()) -> None:
        """Take an allocation; `cluster` has the options of kubectl that select the cluster."""
        self.job, self._cluster = job, cluster

    def run(
        self, function: Callable[..., _Result], *args: Any, kwargs: Mapping[str, Any] | None = None, ranks: int | None = None
    ) -> list[_Result]:
        """Call `function(*args, **kwargs)` on every rank as a step, and return the results by rank (see `MPI.run`).

        Args:
            function: Is called once on each rank.
            args: Its arguments.
            kwargs: Its arguments by name.
            ranks: How many ranks call it; by default all of the allocation.

        Raises:
            JobFailed: A rank raised, the step failed, or results are missing; `results` has the other results by rank.
            ClientError: The allocation does not run, or the connection was lost.
        """
        return self.start(FunctionCall(function, args, kwargs), ranks).results()

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item], *, ranks: int | None = None) -> list[_Result]:
        """Call `function` on each item, and return the results by item; rank r of n gets the items r, r + n, r + 2n and so on.

        Raises:
            JobFailed: As for `run`.
            ClientError: As for `run`.
        """
        values = list(items)
        return in_order(self.run(share(function, values), ranks=ranks)) if values else []

    def submit(
        self,
        command: Sequence[str],
        *,
        ranks: int | None = None,
        hosts: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> ProgramStep:
        """Run a program as a step, and return at once. Steps that fit into the slots run at the same time, others wait.

        Args:
            command: The program and its arguments.
            ranks: How many ranks run it; by default all of the allocation, or all slots of `hosts`.
            hosts: Numbers of the hosts, counted from 0; by default all.
            env: Variables of the ranks.
            report: Called with each line that a rank prints, from other threads.

        Raises:
            InvalidError: One of the values is invalid.
            ClientError: The allocation does not run.
        """

        def show(_: int | None, line: str) -> None:
            if report is not None:
                report(line)

        return self.start_program(step_words(command, ranks, hosts, env), Reports(show))

    def start_program(self, words: Sequence[str], reports: Reports) -> ProgramStep:
        """Start the step of a program, and return at once; `words` are of `step_words`."""
        launcher, kubectl = self._connection()
        return ProgramStep(self.job, kubectl, launcher, words, reports)

    def start(self, call: FunctionCall, ranks: int | None = None) -> "FunctionStep":
        """Start the step of a function, and return at once."""
        launcher, kubectl = self._connection()
        return FunctionStep(self.job, kubectl, launcher, call, ranks)

    def _connection(self) -> tuple[Launcher, list[str]]:
        """Return the launcher, and the words of `kubectl exec` for it."""
        self.job.refresh()
        launcher = launcher_of(self.job)
        return launcher, exec_command(self._cluster, self.job, launcher, "--stdin")


class FunctionStep:
    """A step that calls a function."""

    def __init__(self, job: Job, kubectl: Sequence[str], launcher: Launcher, call: FunctionCall, ranks: int | None) -> None:
        """Start it."""
        self._job, self._call, self._watch = job, call, Watch(job, launcher.workers)
        words = [*([] if ranks is None else ["-n", str(ranks)]), "--", *step_command(call.name)]
        streams = Streams(self._read, self._read, lambda _: None, self._watch.lost)
        self._step = Step(kubectl, words, lambda: RankLines(None), streams, has_input=step_input(call.files.content))

    def results(self) -> list[Any]:
        """Wait until the step ends, and return the results by rank. Ctrl-C, or any other exception here, ends the ranks.

        Raises:
            JobFailed: The function or the step failed.
            ClientError: The connection was lost.
        """
        try:
            end = self._step.wait()
        except BaseException:
            self.end()
            raise
        name, why = f"{self._job.name}, step {end.number}", end.why or (self._watch.lost(end.hosts) if end.code else "")
        message = why or f"its program ended with exit code {end.code}"
        return self._call.results_of(Outcome(name, end.code == 0, lambda: JobFailed(name, "StepFailed", message, end.code)))

    def end(self) -> None:
        """End the ranks."""
        self._step.interrupt()

    def _read(self, line: Tagged) -> None:
        self._call.read(line.text.decode(errors="replace"))


def share(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Callable[[], list[_Result]]:
    """Return a function that calls `function` on a rank's share of the items. It is made here so that it travels by value."""

    def work() -> list[_Result]:
        world: Any = import_module("mpi4py.MPI").COMM_WORLD  # of the image
        return [function(item) for item in items[world.rank :: world.size]]

    work.__name__ = getattr(function, "__name__", "function")
    return work


def in_order(shares: Sequence[Sequence[_Result]]) -> list[_Result]:
    """Return the results in the order of the items; `shares` has those of each rank."""
    ranks, count = len(shares), sum(map(len, shares))
    return [shares[index % ranks][index // ranks] for index in range(count)]
