"""One job at a time on a real kubelet: how long a user waits for its launcher and its end, for its suspension and its resumption."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Final, TypeAlias, cast

from bench import reference
from bench.bench_cluster import BenchCluster, bench_cluster
from bench.results import Sample
from bench.session import NAMESPACE, OPERATORS, Setting, Turn, leading, program_of
from bench.watching import News, watching
from demonstration.operator_images import built_archives
from e2e.jobs import LAUNCHER, held, is_true, phase, pi_job
from embedded.progress import Step
from faults.testbed import command
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, Resource

JOBS_A_TURN: Final = 3
"""A round counts with the median of so many jobs."""
STEADY_SECONDS: Final = 3.0
"""How long a job runs before it is suspended: a kubelet still at work on a start ends a Pod seconds later, no matter who asks."""
PATIENCE_SECONDS: Final = 300.0

Wire: TypeAlias = dict[str, Any]


@dataclass
class Watched:
    """The objects of the namespace as they were last seen, by kind and name."""

    here: BenchCluster
    changes: News = field(default_factory=News)
    objects: dict[str, dict[str, Wire]] = field(default_factory=lambda: {MPIJOBS.kind: {}, JOBS.kind: {}, PODS.kind: {}})

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch for as long as the block runs."""
        async with watching(self.here.client, NAMESPACE, {each: partial(self._see, each) for each in (MPIJOBS, JOBS, PODS)}, self.changes):
            yield

    def _see(self, resource: Resource, type_: str, body: Object) -> None:
        name, found = body["metadata"].get("name", ""), self.objects[resource.kind]
        if type_ == "DELETED":
            found.pop(name, None)
        else:
            found[name] = cast("Wire", body)

    @property
    def pods(self) -> list[Wire]:
        """Return all Pods."""
        return list(self.objects[PODS.kind].values())

    @property
    def launchers(self) -> list[Wire]:
        """Return the Pods of launchers."""
        role, _, value = LAUNCHER.partition("=")
        return [pod for pod in self.pods if pod["metadata"]["labels"].get(role) == value]

    def job(self, name: str) -> Wire:
        """Return an MPIJob; {} when it was not seen yet."""
        return self.objects[MPIJOBS.kind].get(name, {})

    async def until(self, what: str, is_reached: Callable[[], bool]) -> float:
        """Wait until `is_reached` and return the loop time.

        Raises:
            RuntimeError: It was not within minutes.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.changes.until(is_reached)
        except TimeoutError as error:
            shown = {name: job.get("status") for name, job in self.objects[MPIJOBS.kind].items()}
            raise RuntimeError(f"not seen in {PATIENCE_SECONDS:.0f} s: {what}; jobs: {shown}") from error


@contextlib.asynccontextmanager
async def turns(setting: Setting) -> AsyncIterator[Mapping[str, Turn]]:
    """Bring up a cluster with a real node for all rounds, and yield the turns of each operator."""
    async with real_cluster(setting, "pi") as here:
        await reference.give_rights(here)
        numbers = itertools.count()
        yield {who: partial(_turn, here, who, numbers) for who in OPERATORS}


@contextlib.asynccontextmanager
async def real_cluster(setting: Setting, *images: str) -> AsyncIterator[BenchCluster]:
    """Yield a new cluster with a real node, which has these images of the catalogue."""
    archives = await asyncio.to_thread(built_archives, *images)
    async with bench_cluster(setting.cluster, setting.folder / "logs" / setting.scenario.name) as here:
        await command("hack/cluster", "load-image", "--name", here.cluster, *archives)
        await here.make_namespace(NAMESPACE)
        yield here


async def _turn(here: BenchCluster, who: str, numbers: Iterator[int], step: Step) -> Sample:
    watched = Watched(here)
    async with leading(here, await program_of(who)) as operator, operator.alive(), watched.watching():
        step.now_left("suspend and resume")
        seconds = await _suspended_and_resumed(watched, f"held-{next(numbers)}")
        runs = list[Sample]()
        for number in range(JOBS_A_TURN):
            step.now_left(f"{JOBS_A_TURN - number} jobs")
            runs.append(await run(watched, pi_job(f"pi-{next(numbers)}")))
    return {
        **seconds,
        "launcher runs": median(run["launcher runs"] for run in runs),
        "Succeeded": median(run["Succeeded"] for run in runs),
        "failed tries": sum(run["failed tries"] for run in runs),
        "runs": len(runs),
    }


async def run(watched: Watched, job: Wire) -> Sample:
    """Run a job to its end, and return its times."""
    name = job["metadata"]["name"]
    begun = await _create(watched, job)
    launched = await watched.until("a launcher that runs", lambda: any(phase(pod) in {"Running", "Succeeded"} for pod in watched.launchers))
    ended = await watched.until("the job's end", lambda: is_true(watched.job(name), "Succeeded") or is_true(watched.job(name), "Failed"))
    if is_true(watched.job(name), "Failed"):
        raise RuntimeError(f"{name} failed: {watched.job(name)['status']['conditions']}")
    tries = _failed_tries(watched, name)
    await _delete(watched, name)
    return {"launcher runs": launched - begun, "Succeeded": ended - begun, "failed tries": tries}


def _failed_tries(watched: Watched, name: str) -> int:
    """Return how often the launcher failed: its Pods that did, and restarts of their containers."""
    pods = watched.objects[JOBS.kind].get(f"{name}-launcher", {}).get("status", {}).get("failed", 0)
    restarts = (each["restartCount"] for pod in watched.launchers for each in pod["status"].get("containerStatuses", ()))
    return int(pods + sum(restarts))


async def _suspended_and_resumed(watched: Watched, name: str) -> Sample:
    """Suspend a job that runs, and resume it when its Pods are gone."""
    await _create(watched, held(pi_job(name)))
    await watched.until(
        "a job that runs", lambda: is_true(watched.job(name), "Running") and _active(watched.job(name)) == len(watched.pods)
    )
    await asyncio.sleep(STEADY_SECONDS)
    begun = await _patch(watched, name, suspend=True)
    # The reference reports `active: 0` of workers that still run.
    await watched.until("a suspended job", lambda: is_true(watched.job(name), "Suspended") and not _active(watched.job(name)))
    ended = await watched.until("a job without a container", lambda: not any(phase(pod) == "Running" for pod in watched.pods))
    gone = await watched.until("a job without a Pod", lambda: not watched.pods)
    resumed = await _patch(watched, name, suspend=False)
    running = await watched.until("a job that runs again", lambda: is_true(watched.job(name), "Running"))
    await _delete(watched, name)
    return {"suspended": ended - begun, "gone": gone - begun, "resumed": running - resumed}


def _active(job: Wire) -> int:
    """Return how many of its Pods run, by its status."""
    counts: Wire = job["status"].get("replicaStatuses") or {}
    return sum(each.get("active", 0) for each in counts.values())


async def _create(watched: Watched, job: Wire) -> float:
    """Create a job, and return the loop time before."""
    begun = asyncio.get_running_loop().time()
    job["metadata"]["namespace"] = NAMESPACE
    await watched.here.client.create(MPIJOBS, cast("Object", job))
    return begun


async def _patch(watched: Watched, name: str, *, suspend: bool) -> float:
    """Suspend or resume a job, and return the loop time before."""
    begun = asyncio.get_running_loop().time()
    await watched.here.client.patch(MPIJOBS, Key(NAMESPACE, name), {"spec": {"runPolicy": {"suspend": suspend}}})
    return begun


async def _delete(watched: Watched, name: str) -> None:
    """Delete a job, and return when its Pods are gone."""
    await watched.here.client.delete(MPIJOBS, Key(NAMESPACE, name), uid=uid_of(cast("Object", watched.job(name))))
    await watched.until("the end of the job's objects", lambda: not watched.pods and not watched.objects[JOBS.kind])
