"""Bursts of jobs on simulated nodes: how long they take, and what an operator uses for them."""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from bench.bench_cluster import BenchCluster
from bench.late_writes import late_writes
from bench.objects import children, foreign_pod, job_name, mpijob
from bench.observer import JobTimes, Observer
from bench.operator_process import OperatorProcess
from bench.results import FLOOR, Sample
from bench.scenarios import Scenario
from bench.session import NAMESPACE, OPERATORS, Setting, Turn, operator_at
from embedded.progress import Step
from fakes.following import background
from mpiop.kube.client import Client
from mpiop.kube.objects import Object
from mpiop.kube.resources import MPIJOBS, PODS

SUBMITTERS: Final = 8
"""How many jobs are sent at the same time."""
FLOOR_IN_FLIGHT: Final = 16
"""How many requests of the floor are under way at a time: more of them are not faster on two cores."""
FOREIGN_IN_FLIGHT: Final = 32
CLEAN_UP_SECONDS: Final = 60.0
"""Now and then the reference forgets the workers of a job for minutes; the measurement does not wait for that."""
_SHOW_SECONDS: Final = (15.0, 1.0)
_SYNCS: Final = "mpiop_sync_duration_seconds_count"

Then: TypeAlias = Callable[[Object, JobTimes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Load:
    """What an operator took for a load.

    Attributes:
        made_seconds: From the first job sent until the last Pod existed.
        makespan_seconds: From the first job sent until the last one Succeeded.
        clean_seconds: From the first job sent until no worker was left; at most `CLEAN_UP_SECONDS` after the makespan.
        report_seconds: From a complete launcher Job until its MPIJob had Succeeded: the median of the jobs.
        cpu_seconds: Processor time from the first job until there was nothing more to do, clean-up included.
        idle_mib: Resident memory before the first job.
        peak_mib: The most resident memory.
        syncs: As mpiop counts them; 0 for the reference.
        requests: By the audit log: `create pods`, `patch pods: 409`. Without one, as mpiop counts them, by resource alone.
    """

    made_seconds: float
    makespan_seconds: float
    clean_seconds: float
    report_seconds: float
    cpu_seconds: float
    idle_mib: float
    peak_mib: float
    syncs: int
    requests: Mapping[str, int]


@contextlib.asynccontextmanager
async def turns(setting: Setting) -> AsyncIterator[Mapping[str, Turn]]:
    """Yield the turns of each operator, and of the floor."""
    yield {FLOOR: partial(_floor, setting), **{who: partial(_operator, setting, who) for who in OPERATORS}}


async def _operator(setting: Setting, who: str, step: Step) -> Sample:
    scenario = setting.scenario
    step.now_left("a cluster")
    async with setting.bench_cluster(has_audit=True) as here:
        async with operator_at(here, who) as operator:
            load = await loaded(here, scenario, operator, step)
        requests = await here.requests_of(NAMESPACE)
    print(who, dict(requests), file=sys.stderr)
    return {
        "all made": load.made_seconds,
        "makespan": load.makespan_seconds,
        "clean": load.clean_seconds,
        "report": load.report_seconds,
        "CPU a job": 1000 * load.cpu_seconds / scenario.jobs,
        "CPU a worker": 1000 * load.cpu_seconds / scenario.jobs / scenario.workers,
        "requests a job": sum(requests.values()) / scenario.jobs,
        "statuses a job": _count(requests, "mpijobs/status") / scenario.jobs,
        "host lists a job": _count(requests, "configmaps") / scenario.jobs,
        "peak": load.peak_mib,
    }


def _count(requests: Mapping[str, int], what: str) -> int:
    """Return how many updates and patches of `what` there were, refused ones included."""
    return sum(count for name, count in requests.items() if name.split(":")[0] in {f"update {what}", f"patch {what}"})


async def _floor(setting: Setting, step: Step) -> Sample:
    """Measure the same objects, made by a client that only sends them: no operator can be faster than the server lets that client be."""
    step.now_left("a cluster")
    async with setting.bench_cluster(has_audit=True) as here, here.client_of(FLOOR_IN_FLIGHT) as client:
        return {"makespan": (await jobs_seen(here, setting.scenario, step, partial(_make_children, client))).makespan_seconds}


async def _make_children(client: Client, stored: Object, _times: JobTimes) -> None:
    await asyncio.gather(*(client.create(child.resource, child.body) for child in children(stored)))


async def loaded(here: BenchCluster, scenario: Scenario, operator: OperatorProcess, step: Step) -> Load:
    """Return what an operator that leads and has nothing to do takes for the jobs of a scenario.

    Raises:
        RuntimeError: A job failed, or took too long.
    """
    idle_mib, before, cpu_before = operator.rss_mib(), await operator.metrics(), operator.cpu_seconds()
    seen = await jobs_seen(here, scenario, step)
    await operator.until_quiet()
    after = await operator.metrics()
    return Load(
        made_seconds=seen.made_seconds,
        makespan_seconds=seen.makespan_seconds,
        clean_seconds=seen.clean_seconds,
        report_seconds=seen.report_seconds,
        cpu_seconds=operator.cpu_seconds() - cpu_before,
        idle_mib=idle_mib,
        peak_mib=operator.peak_mib(),
        syncs=int(after.get(_SYNCS, 0) - before.get(_SYNCS, 0)),
        requests=own_requests(before, after),
    )


def own_requests(before: Mapping[str, float], after: Mapping[str, float]) -> Mapping[str, int]:
    """Return which requests mpiop's metrics counted between two scrapes, those about its Lease left out: `patch mpijobs: 409`."""
    counts = Counter[str]()
    for name, value in after.items():
        if name.startswith("mpiop_api_requests_total") and "leases" not in name:
            labels = dict(label.split("=") for label in name.partition("{")[2].rstrip("}").split(","))
            words = {label: text.strip('"') for label, text in labels.items()}
            code = "" if words["code"].startswith("2") else f": {words['code']}"
            counts[f"{words['verb']} {words['resource']}{code}"] += int(value - before.get(name, 0.0))
    return {name: count for name, count in sorted(counts.items()) if count}


async def jobs_seen(
    here: BenchCluster, scenario: Scenario, step: Step, then: Then | None = None, *, pause_seconds: float = 0.0
) -> Observer:
    """Run the jobs until all have Succeeded and their workers are gone; `then` makes their objects where no operator does.

    Args:
        here: Where they run.
        scenario: Which they are.
        step: Receives their progress.
        then: Called with each job as it was stored, and its times.
        pause_seconds: Between two jobs.

    Raises:
        RuntimeError: One failed, or they took too long.
    """
    await here.make_namespace(NAMESPACE)
    observer = Observer(here.client, NAMESPACE, is_of_floor=then is not None)
    late = late_writes(here, NAMESPACE, scenario.write_delay_seconds)
    try:
        async with late, asyncio.timeout(scenario.patience_seconds), observer.watching(), _shown(step, scenario, observer):
            await _submit(here.client, scenario, observer, then, pause_seconds)
            await observer.until(lambda: bool(observer.failed) or observer.count("succeeded") == scenario.jobs)
            if not observer.failed and then is None:
                await observer.until_clean(CLEAN_UP_SECONDS)
    except TimeoutError as error:
        raise RuntimeError(f"not done after {scenario.patience_seconds:.0f} s: {_state(scenario, observer)}") from error
    if observer.failed:
        raise RuntimeError(f"{len(observer.failed)} jobs failed: {'; '.join(observer.failed[:3])}")
    return observer


async def _submit(client: Client, scenario: Scenario, observer: Observer, then: Then | None, pause_seconds: float) -> None:
    """Create the jobs; `then` is called with each as it was stored, and waited for."""
    places = asyncio.Semaphore(SUBMITTERS)

    async def one(number: int) -> None:
        async with places:
            observer.submit(job_name(number))
            stored = await client.create(MPIJOBS, mpijob(scenario, NAMESPACE, number))
        if then is not None:
            await then(stored, observer.jobs[job_name(number)])

    async with asyncio.TaskGroup() as group:
        for number in range(scenario.jobs):
            group.create_task(one(number))
            await asyncio.sleep(pause_seconds)


async def make_foreign_pods(here: BenchCluster, scenario: Scenario) -> None:
    """Make the Pods of others, in a namespace of their own."""
    namespace = f"{NAMESPACE}-foreign"
    await here.make_namespace(namespace)
    async with here.client_of(FOREIGN_IN_FLIGHT) as client:
        await asyncio.gather(*(client.create(PODS, foreign_pod(namespace, number)) for number in range(scenario.foreign_pods)))


@contextlib.asynccontextmanager
async def _shown(step: Step, scenario: Scenario, observer: Observer) -> AsyncIterator[None]:
    """Show how far the jobs are, for as long as the block runs."""

    async def show() -> None:
        while True:
            await asyncio.sleep(_SHOW_SECONDS[sys.stderr.isatty()])
            step.now_left(_state(scenario, observer))

    async with background(asyncio.create_task(show())):
        yield


def _state(scenario: Scenario, observer: Observer) -> str:
    pods = sum(len(job.existing) for job in observer.jobs.values())
    return f"{scenario.jobs - observer.count('succeeded')} of {scenario.jobs} jobs ({pods} of {scenario.pods} Pods made)"
