"""`make bench-prices`: what the control plane pays for each write of a job, in processor time: what no client can save in a burst."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from bench import command
from bench.load import SUBMITTERS
from bench.objects import children, key, mpijob, reports
from bench.operator_process import cpu_seconds
from bench.place import Place, place
from bench.scenarios import find
from demonstration.cluster import ROOT, is_current_wanted
from e2e.waiting import until
from embedded.layout import layout_of
from embedded.progress import Progress
from embedded.status import report
from mpiop.controller.observe import pods
from mpiop.kube.client import Client
from mpiop.kube.objects import key_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, MPIJOBS, PODS, SECRETS, SERVICES, Selection

SCENARIO: Final = "burst-100x4"
NAMESPACE: Final = "bench-prices"
FOLDER: Final = ROOT / "build" / "bench" / "prices"
_PATIENCE_SECONDS: Final = 120.0
_WARM_UP: Final = 20
"""Jobs that are made and told of before anything is measured."""

_KINDS: Final = 10
_PODS: Final = Selection(PODS, NAMESPACE)

Work = Callable[[], Awaitable[object]]
Check = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Price:
    """What one write takes, with all that follows from it.

    Attributes:
        server_ms: Of the API server.
        others_ms: Of etcd, controllers, scheduler and the simulated kubelets.
    """

    title: str
    server_ms: float
    others_ms: float


class Till:
    """Adds up what the components of a cluster use."""

    def __init__(self, here: Place) -> None:
        """Know the processes of that embedded cluster."""
        self.prices: list[Price] = []
        self._progress = Progress()
        self._progress.expect(_KINDS)
        self._pids = {one.name: one.pid for one in report(layout_of(here.cluster)).components if one.pid}

    async def ring(self, title: str, works: Sequence[Work], is_settled: Check | None = None) -> None:
        """Do `works`, some at a time, wait until what they bring about `is_settled`, and note what one of them took."""
        with self._progress.step(title):
            waiting, before = list(works), self._read()

            async def work_off() -> None:
                while waiting:
                    await waiting.pop()()

            await asyncio.gather(*(work_off() for _ in range(SUBMITTERS)))
            if is_settled is not None:
                await until(f"the end of what follows: {title}", is_settled, timeout_seconds=_PATIENCE_SECONDS)
            server, others = (1000 * (now - then) / len(works) for now, then in zip(self._read(), before, strict=True))
            self.prices.append(Price(title, server, others))

    def _read(self) -> tuple[float, float]:
        """Return the processor time so far, in seconds: of the API server, and of all others."""
        used = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        server = used.pop("kube-apiserver")
        return server, sum(used.values())


async def prices(here: Place, client: Client) -> Sequence[Price]:
    """Return the price of each write that MPIJobs with four workers need, those of pods with what kubelets and controllers write then."""
    scenario, till = find([SCENARIO])[0], Till(here)
    patch = partial(client.patch, MPIJOBS, subresource="status")
    stored = [await client.create(MPIJOBS, mpijob(scenario, NAMESPACE, number)) for number in range(_WARM_UP)]
    for job in stored:
        await patch(key_of(job), reports(job)[0].status)
    numbers = range(_WARM_UP, _WARM_UP + scenario.jobs)
    await till.ring("create an MPIJob", [partial(client.create, MPIJOBS, mpijob(scenario, NAMESPACE, number)) for number in numbers])
    jobs = [await client.get(MPIJOBS, key(NAMESPACE, number)) for number in numbers]
    made = [child for job in jobs for child in children(job)]
    for resource in (SECRETS, SERVICES, CONFIG_MAPS, PODS):
        works = [partial(client.create, resource, child.body, metadata_only=True) for child in made if child.resource is resource]
        if resource is PODS:
            await till.ring("create a worker, until it runs", works, lambda: _has_running(client, scenario.jobs * scenario.workers))
        else:
            await till.ring(f"create a {resource.kind}", works)
    told = {job["metadata"]["uid"]: reports(job) for job in jobs}
    for step, condition in enumerate(("Created", "Running", "Succeeded")):
        await till.ring(f"patch the status: {condition}", [partial(patch, key_of(job), told[uid_of(job)][step].status) for job in jobs])
    events = [row.event for rows in told.values() for row in rows]
    await till.ring("create an Event", [partial(client.create, EVENTS, event, metadata_only=True) for event in events])
    workers = (await client.list_page(_PODS, resource_version=""))["items"]
    deletions = [partial(client.delete, PODS, key_of(pod), uid=uid_of(pod)) for pod in workers]
    await till.ring("delete a worker, until it is gone", deletions, lambda: _has_running(client, 0))
    return till.prices


async def _has_running(client: Client, count: int) -> bool:
    """Return whether there are just so many pods, and all of them run."""
    found = (await client.list_page(_PODS, resource_version="0"))["items"]
    return len(found) == count and all(map(pods.is_running, found))


async def measured(cluster: str) -> Sequence[Price]:
    """Return the prices on an embedded cluster of that name."""
    async with place(FOLDER, cluster=cluster) as here, here.client_of(SUBMITTERS) as client, here.namespace(NAMESPACE):
        return await prices(here, client)


def main() -> int:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="make bench-prices", description=__doc__)
    parser.add_argument("--name", default="bench", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    if is_current_wanted():
        parser.error("it reads the processor time of the control plane, and needs one of its own: unset MPIOP_CLUSTER")
    found = asyncio.run(measured(given.name))
    print("| write, with what follows from it | API server | etcd, controllers, scheduler, kubelets |\n|---|---|---|")
    for price in found:
        print(f"| {price.title} | {price.server_ms:.1f} ms | {price.others_ms:.1f} ms |")
    return 0


if __name__ == "__main__":
    sys.exit(command.run("bench-prices", main))
