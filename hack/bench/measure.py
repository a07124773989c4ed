"""Runs a scenario and returns what it took."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import objects, reference, special
from bench.audit import requests_of
from bench.load import Then, floor, foreign_load, submit
from bench.observer import Observer
from bench.operator_process import Program, ours, start_operator
from bench.place import Place, place
from bench.results import Cost, Course, Outcome, Run, counted, course_of
from bench.scenarios import LEVELS, Kind, Scenario
from demonstration.cluster import ROOT
from embedded.progress import Progress, Step

FOREIGN: Final = "bench-foreign"
REFERENCE: Final = "bench-reference"
_SHOW_SECONDS: Final = (15.0, 1.0)
_FOREIGN_IN_FLIGHT: Final = 32
_CLEAN_UP_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Bench:
    """How to measure.

    Attributes:
        folder: Where logs go.
        levels: How many requests of the floor are under way at a time, each in turn; none leaves the floor out.
        cluster: Name of the embedded cluster.
        has_audit: Whether requests are counted by the API server.
        flags: Of the operator, where they are not the defaults.
        has_reports: Whether to measure also a floor that writes statuses, Events and hosts, as any operator must, at the highest level.
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
        """Measure `scenario` on a cluster of its own."""
        options = ("--audit",) if self.has_audit else ()
        async with place(self.folder / scenario.name, options=options, cluster=self.cluster) as here:
            if scenario.kind is Kind.LOAD:
                outcome = await self._run_load(here, scenario)
            else:
                with self.progress.step(scenario.name) as step:
                    outcome = await special.RUNS[scenario.kind](here, scenario, self.source, step)
            if self.has_audit and here.cluster:
                await here.end_api_server()
                outcome.requests = requests_of(here.cluster, special.NAMESPACE, outcome.began, outcome.ended)
                if outcome.reference is not None:
                    outcome.reference.requests = requests_of(here.cluster, REFERENCE, 0, outcome.reference.ended)
        return outcome

    async def _run_load(self, here: Place, scenario: Scenario) -> Outcome:
        outcome = Outcome(scenario.name, scenario.jobs, scenario.workers)
        async with self._foreign(here, scenario):
            for level in self.levels:
                with self.progress.step(f"{scenario.name}: floor, {level} requests at a time") as step:
                    outcome.floors[str(level)] = await self._run_floor(here, scenario, level, step)
            if self.has_reports:
                with self.progress.step(f"{scenario.name}: floor that reports") as step:
                    outcome.reporting_floor = await self._run_floor(here, scenario, max(self.levels), step, reports_too=True)
            if self.has_reference:
                with self.progress.step(f"{scenario.name}: the operator in Go") as step:
                    async with reference.with_its_rights(here):
                        outcome.reference = await self._run_operator(here, scenario, step, REFERENCE, await reference.reference())
                await here.free_lease()  # which it keeps
            with self.progress.step(f"{scenario.name}: the operator") as step:
                run = await self._run_operator(here, scenario, step, special.NAMESPACE, ours(self.source, self.flags))
                outcome.ours, outcome.cost, outcome.ended = run.course, run.cost, run.ended
        return outcome

    @contextlib.asynccontextmanager
    async def _foreign(self, here: Place, scenario: Scenario) -> AsyncIterator[None]:
        if not scenario.foreign_pods:
            yield
            return
        async with here.client_of(_FOREIGN_IN_FLIGHT) as client, here.namespace(FOREIGN), contextlib.AsyncExitStack() as stack:
            with self.progress.step(f"{scenario.name}: {scenario.foreign_pods} foreign Pods"):
                await stack.enter_async_context(foreign_load(client, scenario, FOREIGN))
            yield

    async def _run_floor(self, here: Place, scenario: Scenario, level: int, step: Step, *, reports_too: bool = False) -> Course:
        async with here.client_of(level) as client:
            make = floor(client, reports_too=reports_too)
            async with _jobs(here, scenario, f"bench-floor-{level}{'-reports' * reports_too}", step, make) as observer:
                return _course(scenario, observer)

    async def _run_operator(self, here: Place, scenario: Scenario, step: Step, namespace: str, program: Program) -> Run:
        operator = await start_operator(here.access, here.folder, namespace, program)
        try:
            await operator.until_ready()
            await special.until_leading(operator)
            await operator.until_quiet(scenario.patience_seconds)
            idle, before, cpu_before = operator.rss_mib(), await operator.metrics(), operator.cpu_seconds()
            async with operator.alive(), _jobs(here, scenario, namespace, step) as observer:
                # The operator in Go now and then forgets the worker Pods of a job for minutes; that is not to count as work.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_CLEAN_UP_SECONDS if namespace == REFERENCE else None):
                        await observer.until(lambda: observer.remaining_workers == 0)
                await operator.until_quiet(scenario.patience_seconds)
                cpu_seconds = round(operator.cpu_seconds() - cpu_before, 3)
                rss = {"idle": idle, "peak": operator.peak_mib(), "end": operator.rss_mib()}
                rounded = {name: round(value, 1) for name, value in rss.items()}
                cost = Cost(cpu_seconds=cpu_seconds, rss_mib=rounded, **counted(before, await operator.metrics()))
                return Run(_course(scenario, observer), cost, ended=time.time())
        finally:
            await operator.stop()


@contextlib.asynccontextmanager
async def _jobs(here: Place, scenario: Scenario, namespace: str, step: Step, then: Then | None = None) -> AsyncIterator[Observer]:
    """Yield what was seen of the jobs when all have Succeeded; `then` makes their objects where no operator does.

    Raises:
        RuntimeError: They did not, or one failed.
    """
    async with here.namespace(namespace):
        observer = Observer(here.client, namespace, scenario.workers + 1, judges_by_launcher=then is not None)
        try:
            async with asyncio.timeout(scenario.patience_seconds), observer.watching(), showing(step, scenario, observer):
                await submit(here.client, scenario, namespace, observer, then)
                await observer.until(lambda: bool(observer.failed) or observer.count("succeeded") == scenario.jobs)
                if observer.failed:
                    raise RuntimeError(f"{len(observer.failed)} jobs failed: {'; '.join(observer.failed[:3])}")
                yield observer
        except TimeoutError as error:
            raise RuntimeError(f"not done after {scenario.patience_seconds:.0f} s: {_state(scenario, observer)}") from error


def _course(scenario: Scenario, observer: Observer) -> Course:
    return course_of([observer.jobs[objects.job_name(number)] for number in range(scenario.jobs)], observer.load_before)


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
