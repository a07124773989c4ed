"""Runs a scenario and returns what it took."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from bench import objects, reference, special
from bench.load import Then, floor, foreign_load, submit
from bench.observer import Observer
from bench.operator_process import Program, ours, start_operator
from bench.place import Place, place
from bench.results import Cost, Course, Outcome, Run, counted, course_of, own_requests
from bench.scenarios import LEVELS, Kind, Scenario
from demonstration.cluster import ROOT
from embedded.progress import Progress, Step

_FOREIGN: Final = "bench-foreign"
_SHOW_SECONDS: Final = (15.0, 1.0)
_FOREIGN_IN_FLIGHT: Final = 32
_Measured = TypeVar("_Measured", Course, Run)


@dataclass(frozen=True)
class _Contender(Generic[_Measured]):
    """Who is measured by turns with others, on a cluster of its own.

    Attributes:
        rounds: What it took so far.
    """

    title: str
    rounds: list[_Measured]
    measure: Callable[[Place, Scenario, Step], Awaitable[_Measured]]

    async def add_round(self, here: Place, scenario: Scenario, step: Step) -> None:
        self.rounds.append(await self.measure(here, scenario, step))


@dataclass(frozen=True)
class Bench:
    """How to measure.

    Attributes:
        folder: Where logs go.
        levels: How many requests of the floor are under way at a time, each in turn; none leaves the floor out.
        cluster: Name of the embedded cluster.
        has_audit: Whether requests are counted by the API server.
        flags: Of the operator, where they are not the defaults.
        has_reports: Whether to measure also a floor that does what any operator must: follows all objects, and tells what has come true.
        has_reference: Whether to measure also the operator in Go, with its throttles taken off.
    """

    progress: Progress
    folder: Path
    levels: Sequence[int] = LEVELS
    cluster: str = "bench"
    source: Path = ROOT
    has_audit: bool = True
    flags: Sequence[str] = ()
    has_reports: bool = False
    has_reference: bool = False

    async def run(self, scenario: Scenario) -> Outcome:
        """Measure `scenario`, each part of it on a cluster of its own: on one that was used already, the same takes longer."""
        if scenario.kind is not Kind.LOAD:
            async with self._part(scenario, scenario.title) as (here, step):
                return await special.RUNS[scenario.kind](here, scenario, self.source, step)
        outcome = Outcome(scenario.name, scenario.jobs, scenario.workers)
        contenders = self._contenders(outcome)
        for number in range(scenario.rounds):
            # To and fro, so that none has the better minutes of a machine that gets faster or slower.
            for contender in contenders[:: 1 if number % 2 == 0 else -1]:
                async with self._part(scenario, contender.title) as (here, step):
                    await contender.add_round(here, scenario, step)
        return outcome

    def _contenders(self, outcome: Outcome) -> Sequence[_Contender[Course] | _Contender[Run]]:
        """Return who is measured in each round; what they take is added to `outcome`."""
        kinds: list[tuple[str, dict[str, list[Course]], Program | None]] = [("floor", outcome.floors, None)]
        if self.has_reports:
            kinds.append(("floor that reports", outcome.reporting_floors, replace(ours(self.source), name="standby")))
        floors = [
            _Contender(f"{name}, {level} requests at a time", levels.setdefault(str(level), []), partial(_run_floor, level, standby))
            for name, levels, standby in kinds
            for level in self.levels
        ]
        in_go = [_Contender("the operator in Go", outcome.references, _run_reference)] if self.has_reference else []
        return [*floors, *in_go, _Contender("the operator", outcome.runs, partial(_run_operator, ours(self.source, self.flags)))]

    @contextlib.asynccontextmanager
    async def _part(self, scenario: Scenario, what: str) -> AsyncIterator[tuple[Place, Step]]:
        """Yield where to measure, and the step of the progress."""
        with self.progress.step(f"{scenario.name}: {what}") as step:
            step.now_left("a cluster")
            async with place(self.folder / scenario.name, has_audit=self.has_audit, cluster=self.cluster) as here:
                yield here, step


@contextlib.asynccontextmanager
async def _others(here: Place, scenario: Scenario, step: Step) -> AsyncIterator[None]:
    """Let other people have their Pods, if the scenario says so, for as long as the block runs."""
    if not scenario.foreign_pods:
        yield
        return
    step.now_left(f"{scenario.foreign_pods} foreign Pods")
    async with here.client_of(_FOREIGN_IN_FLIGHT) as client, here.namespace(_FOREIGN), foreign_load(client, scenario, _FOREIGN):
        yield


async def _run_floor(level: int, standby: Program | None, here: Place, scenario: Scenario, step: Step) -> Course:
    """Return the floor's course; where there is a `standby`, that follows all objects meanwhile, and the floor reports."""
    async with (
        _others(here, scenario, step),
        here.client_of(level) as client,
        _following(here, standby),
        _jobs(here, scenario, step, floor(client, here.client if standby else None)) as observer,
    ):
        return _course(scenario, observer)


@contextlib.asynccontextmanager
async def _following(here: Place, standby: Program | None) -> AsyncIterator[None]:
    if standby is None:
        yield
        return
    async with here.without_leader():
        operator = await start_operator(here.access, here.folder, standby.name, standby)
        try:
            await operator.until_ready()
            async with operator.alive():
                yield
        finally:
            await operator.stop()


async def _run_reference(here: Place, scenario: Scenario, step: Step) -> Run:
    await reference.give_rights(here)
    return await _run_operator(await reference.reference(), here, scenario, step)


async def _run_operator(program: Program, here: Place, scenario: Scenario, step: Step) -> Run:
    async with _others(here, scenario, step):
        run = await _work(here, scenario, step, program)
    # Nobody asks the API server for anything any more.
    return replace(run, requests=await here.requests_of(special.NAMESPACE) or run.requests)


async def _work(here: Place, scenario: Scenario, step: Step, program: Program) -> Run:
    """Return what the operator takes, with the requests that it counted itself."""
    operator = await start_operator(here.access, here.folder, program.name, program)
    try:
        await operator.until_ready()
        await special.until_leading(operator)
        await operator.until_quiet(scenario.patience_seconds)
        idle, before, cpu_before = operator.rss_mib(), await operator.metrics(), operator.cpu_seconds()
        async with operator.alive(), _jobs(here, scenario, step) as observer:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(program.clean_up_seconds):
                    await observer.until(lambda: observer.remaining_workers == 0)
            await operator.until_quiet(scenario.patience_seconds)
            cpu_seconds = round(operator.cpu_seconds() - cpu_before, 3)
            rss = {"idle": idle, "peak": operator.peak_mib(), "end": operator.rss_mib()}
            after = await operator.metrics()
    finally:
        await operator.stop()
    cost = Cost(cpu_seconds=cpu_seconds, rss_mib={name: round(value, 1) for name, value in rss.items()}, **counted(before, after))
    return Run(_course(scenario, observer), cost, own_requests(before, after))


@contextlib.asynccontextmanager
async def _jobs(here: Place, scenario: Scenario, step: Step, then: Then | None = None) -> AsyncIterator[Observer]:
    """Yield what was seen of the jobs when all have Succeeded; `then` makes their objects where no operator does.

    Raises:
        RuntimeError: They did not, or one failed.
    """
    async with here.namespace(special.NAMESPACE):
        observer = Observer(here.client, special.NAMESPACE, scenario.workers + 1, is_of_floor=then is not None)
        try:
            async with asyncio.timeout(scenario.patience_seconds), observer.watching(), showing(step, scenario, observer):
                await submit(here.client, scenario, special.NAMESPACE, observer, then)
                await observer.until(lambda: bool(observer.failed) or observer.count("succeeded") == scenario.jobs)
                if observer.failed:
                    raise RuntimeError(f"{len(observer.failed)} jobs failed: {'; '.join(observer.failed[:3])}")
                yield observer
        except TimeoutError as error:
            raise RuntimeError(f"not done after {scenario.patience_seconds:.0f} s: {_state(scenario, observer)}") from error


def _course(scenario: Scenario, observer: Observer) -> Course:
    return course_of([observer.jobs[objects.job_name(number)] for number in range(scenario.jobs)], observer.work_ms)


@contextlib.asynccontextmanager
async def showing(step: Step, scenario: Scenario, observer: Observer) -> AsyncIterator[None]:
    """Show how far the jobs are, for as long as the block runs."""
    task = asyncio.create_task(_show(step, lambda: _state(scenario, observer)))
    try:
        yield
    finally:
        task.cancel()


async def _show(step: Step, state: Callable[[], str]) -> None:
    while True:
        await asyncio.sleep(_SHOW_SECONDS[sys.stderr.isatty()])
        step.now_left(state())


def _state(scenario: Scenario, observer: Observer) -> str:
    done, running = observer.count("succeeded"), observer.count("pods_running")
    pods = sum(len(job.existing) for job in observer.jobs.values())
    return f"{scenario.jobs - done} of {scenario.jobs} jobs ({pods} of {scenario.pods} pods made, {running} jobs were running)"
