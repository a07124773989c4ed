"""The scenarios that measure one moment: a start, a start with many jobs, a change of leader."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from bench.audit import conflicts
from bench.load import submit
from bench.objects import job_name, mpijob
from bench.observer import Observer
from bench.operator_process import OperatorProcess, ours, start_operator
from bench.place import Place
from bench.results import Outcome
from bench.scenarios import Kind, Scenario
from e2e.waiting import until
from embedded.progress import Step
from mpiop.kube.resources import MPIJOBS

NAMESPACE: Final = "bench"
_LEASE_SECONDS: Final = 60.0
_WATCHED_SECONDS: Final = 5.0


async def until_leading(operator: OperatorProcess) -> float:
    """Wait until `operator` leads and return how many seconds after its start that was."""

    async def is_leading() -> bool:
        return (await operator.metrics()).get("mpi_operator_is_leader") == 1

    await operator.until_ready()  # before that there may be nobody who answers
    await until("a leader", is_leading, timeout_seconds=_LEASE_SECONDS)
    return asyncio.get_running_loop().time() - operator.started


async def start_to_first_job(here: Place, scenario: Scenario, source: Path, step: Step) -> Outcome:
    """Measure from the start of a process to the end of a job that is there already: the lease free, and given up just before."""
    figures = dict[str, float]()
    for number, (what, has_predecessor) in enumerate((("lease free", False), ("predecessor told to stop", True))):
        step.now_left(what)
        async with here.namespace(f"{NAMESPACE}-{number}") as namespace, contextlib.AsyncExitStack() as stack:
            observer = Observer(here.client, namespace, scenario.workers + 1)
            await stack.enter_async_context(observer.watching())
            if has_predecessor:
                predecessor = await start_operator(here.access, here.folder, "predecessor", ours(source))
                stack.push_async_callback(predecessor.stop)
                await until_leading(predecessor)
                predecessor.tell_to_stop()
            else:
                await here.free_lease()
            begun = asyncio.get_running_loop().time()
            operator = await start_operator(here.access, here.folder, "operator", ours(source))
            stack.push_async_callback(operator.stop)
            await submit(here.client, scenario, namespace, observer)
            await _until_succeeded(observer, scenario)
            figures[what] = round(max(job.succeeded or 0.0 for job in observer.jobs.values()) - begun, 2)
    return Outcome(scenario.name, scenario.jobs, scenario.workers, figures=figures)


async def _until_succeeded(observer: Observer, scenario: Scenario) -> None:
    async with asyncio.timeout(scenario.patience_seconds):
        await observer.until(lambda: observer.count("succeeded") == scenario.jobs)


async def start_with_jobs(here: Place, scenario: Scenario, source: Path, step: Step) -> Outcome:
    """Measure a start when all of the jobs run already: until ready, and what is written then."""
    # A Job that is deleted while its simulated pod runs would wait for the end of that.
    async with here.namespace(NAMESPACE, waits=False):
        observer = Observer(here.client, NAMESPACE, scenario.workers + 1)
        first = await start_operator(here.access, here.folder, "predecessor", ours(source))
        try:
            async with asyncio.timeout(scenario.patience_seconds), observer.watching():
                await until_leading(first)
                await submit(here.client, scenario, NAMESPACE, observer)
                while observer.count("running") < scenario.jobs:
                    step.now_left(f"{scenario.jobs - observer.count('running')} jobs to be running before the start")
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_WATCHED_SECONDS):
                            await observer.until(lambda: observer.count("running") == scenario.jobs)
                await first.until_quiet(scenario.patience_seconds)
        finally:
            await first.stop()
        began = time.time()
        operator = await start_operator(here.access, here.folder, "operator", ours(source))
        try:
            ready = await operator.until_ready()
            leading = await until_leading(operator)
            await operator.until_quiet(scenario.patience_seconds)
            figures = {
                "ready": round(ready, 2),
                "leading": round(leading, 2),
                "cpu seconds": round(operator.cpu_seconds(), 2),
                "rss": round(operator.rss_mib(), 1),
            }
        finally:
            await operator.stop()
    requests = await here.requests_of(NAMESPACE, began)
    return Outcome(scenario.name, scenario.jobs, scenario.workers, figures={**figures, "requests": sum(requests.values())})


async def change_of_leader(here: Place, scenario: Scenario, source: Path, step: Step) -> Outcome:
    """Measure from the end of a leader to the first sync by its successor: the condition Created of a job that comes just then."""
    figures = dict[str, float]()
    async with here.namespace(NAMESPACE):
        for number, (what, is_killed) in enumerate((("told to stop", False), ("killed", True))):
            step.now_left(what)
            leader = await start_operator(here.access, here.folder, "leader", ours(source))
            await until_leading(leader)
            standby = await start_operator(here.access, here.folder, "standby", ours(source))
            try:
                await standby.until_ready()
                await (leader.kill() if is_killed else _told(leader))
                begun = asyncio.get_running_loop().time()
                await here.client.create(MPIJOBS, mpijob(scenario, NAMESPACE, number))
                await _until_created(here, number)
                figures[what] = round(asyncio.get_running_loop().time() - begun, 2)
            finally:
                await leader.stop()
                await standby.stop()
    figures["conflicts"] = conflicts(await here.requests_of(NAMESPACE))
    return Outcome(scenario.name, scenario.jobs, scenario.workers, figures=figures)


async def _told(leader: OperatorProcess) -> None:
    leader.tell_to_stop()


async def _until_created(here: Place, number: int) -> None:
    """Wait until the job has a condition."""
    observer = Observer(here.client, NAMESPACE, 1)
    observer.submit(job_name(number))
    async with asyncio.timeout(_LEASE_SECONDS), observer.watching():
        await observer.until(lambda: observer.count("accepted") == 1)


RUNS: Final[Mapping[Kind, Callable[[Place, Scenario, Path, Step], Awaitable[Outcome]]]] = {
    Kind.RESTART: start_with_jobs,
    Kind.FAILOVER: change_of_leader,
    Kind.START: start_to_first_job,
}
