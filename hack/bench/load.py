"""What comes over a cluster: jobs, the floor's objects, and other people's Pods."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from bench.objects import Child, children, foreign_pod, job_name, mpijob, reports
from bench.observer import JobTimes, Observer
from bench.scenarios import Scenario
from mpiop.kube.client import Client
from mpiop.kube.objects import Key, Object, key_of
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS

SUBMITTERS: Final = 8
"""How many jobs are sent at the same time."""
_REPORTED: Final = (("pods_running", ("accepted", "running")), ("ended", ("succeeded",)))
"""What `JobTimes` knows of a job: when a floor that reports writes a status, and what that tells."""

Then = Callable[[Object, JobTimes], Awaitable[None]]


async def submit(client: Client, scenario: Scenario, namespace: str, observer: Observer, then: Then | None = None) -> None:
    """Create the jobs at the scenario's pace; `then` is called with each as it was stored, and waited for."""
    loop, begun, places = asyncio.get_running_loop(), asyncio.get_running_loop().time(), asyncio.Semaphore(SUBMITTERS)

    async def one(number: int) -> None:
        if scenario.rate:
            await asyncio.sleep(begun + number / scenario.rate - loop.time())
        async with places:
            observer.submit(job_name(number))
            stored = await client.create(MPIJOBS, mpijob(scenario, namespace, number))
        if then is not None:
            await then(stored, observer.jobs[job_name(number)])

    async with asyncio.TaskGroup() as group:
        for number in range(scenario.jobs):
            group.create_task(one(number))


def floor(client: Client, reporter: Client | None = None) -> Then:
    """Return what makes the objects of a job, with `client` as fast as it can: no look, no order, no second thought.

    Args:
        client: Bounds how many requests are under way.
        reporter: Writes what any operator owes, which is not to stand behind the objects of other jobs: a status when the job's pods all
            run, and when its launcher has ended, with the Events Created, Running and Succeeded. None writes nothing.
    """

    async def create(child: Child) -> None:
        await client.create(child.resource, child.body)

    async def make(stored: Object, times: JobTimes) -> None:
        await asyncio.gather(*map(create, children(stored)))
        if reporter is None:
            await times.until("ended")
            times.succeeded = times.ended
            return
        rows = iter(reports(stored))
        for cause, told in _REPORTED:
            await times.until(cause)
            new = [next(rows) for _ in told]
            await reporter.patch(MPIJOBS, key_of(stored), new[-1].status, subresource="status")
            for name in told:
                setattr(times, name, asyncio.get_running_loop().time())
            for row in new:
                await reporter.create(EVENTS, row.event)

    return make


@contextlib.asynccontextmanager
async def foreign_load(client: Client, scenario: Scenario, namespace: str) -> AsyncIterator[None]:
    """Let other people have their Pods in `namespace`, and change them, for as long as the block runs."""
    await asyncio.gather(*(client.create(PODS, foreign_pod(namespace, number)) for number in range(scenario.foreign_pods)))
    if not scenario.foreign_changes:
        yield
        return
    changing = asyncio.create_task(_change(client, scenario, namespace))
    try:
        yield
    finally:
        changing.cancel()
        await asyncio.wait({changing})
    if not changing.cancelled():
        await changing


async def _change(client: Client, scenario: Scenario, namespace: str) -> None:
    """Change one Pod after the other, at the scenario's rate; what the server is too slow for is left out."""
    loop, due, round_ = asyncio.get_running_loop(), asyncio.get_running_loop().time(), 0
    async with asyncio.TaskGroup() as group:
        while True:
            name = foreign_pod(namespace, round_ % scenario.foreign_pods)["metadata"].get("name", "")
            body = {"metadata": {"annotations": {"example.com/round": str(round_)}}}
            group.create_task(client.patch(PODS, Key(namespace, name), body))
            round_ += 1
            due = max(due + 1 / scenario.foreign_changes, loop.time() - 1)
            await asyncio.sleep(due - loop.time())
