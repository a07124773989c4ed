"""The outside watcher: notes, for each job of a namespace, when the API server first told of each thing that a user waits for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from bench import fixed_work
from bench.objects import job_of_pod
from mpiop.api import constants as c
from mpiop.controller.observe import pods
from mpiop.kube.client import Client
from mpiop.kube.errors import TransportError
from mpiop.kube.objects import Object
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, Resource, Selection

_WATCH_SECONDS = 3600
_AGAIN_SECONDS = 0.1


class Transition:
    """Wakes those who wait for something to become so."""

    def __init__(self) -> None:
        """Tell of nothing yet."""
        self._told = asyncio.Event()

    def tell(self) -> None:
        """Let all who wait ask once more."""
        self._told.set()

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait until `is_reached`, which is asked after each piece of news."""
        while not is_reached():
            self._told.clear()
            await self._told.wait()


@dataclass
class JobTimes:
    """When what happened to a job, in loop time; None while it has not.

    Attributes:
        submitted: Its MPIJob was sent to the API server.
        accepted: The operator has written its condition Created.
        created: All of its pods exist.
        pods_running: All of its pods have been seen running.
        running: Its condition Running was True.
        ended: Its launcher Job was complete (in a floor).
        succeeded: Its condition Succeeded was True; in a floor that does not report, the same as `ended`.
        failed: What went wrong with it; "" is nothing.
        news: Of this job alone.
    """

    submitted: float
    accepted: float | None = None
    created: float | None = None
    pods_running: float | None = None
    running: float | None = None
    ended: float | None = None
    succeeded: float | None = None
    failed: str = ""
    existing: set[str] = field(default_factory=set[str], repr=False)
    started: set[str] = field(default_factory=set[str], repr=False)
    remaining: set[str] = field(default_factory=set[str], repr=False)
    news: Transition = field(default_factory=Transition, repr=False)

    async def until(self, what: str) -> None:
        """Wait until the job has come to `what`, the name of an attribute, or has failed."""
        await self.news.until(lambda: getattr(self, what) is not None or bool(self.failed))


class Observer:
    """Watches a namespace.

    Attributes:
        jobs: What was seen, by the name of the MPIJob.
        work_ms: What the machine took for a fixed piece of work when it was made (`fixed_work`).
    """

    def __init__(self, client: Client, namespace: str, pods_each: int, *, is_of_floor: bool = False) -> None:
        """Watch with `client`; a job has `pods_each` pods, and in a floor its launcher Job tells of its end."""
        self._client = client
        self._namespace = namespace
        self._pods_each = pods_each
        self._is_of_floor = is_of_floor
        self._news = Transition()
        self.jobs: dict[str, JobTimes] = {}
        self.work_ms = fixed_work.work_ms()

    def submit(self, name: str) -> None:
        """Note that the job `name` is sent now."""
        self.jobs[name] = JobTimes(asyncio.get_running_loop().time())

    def count(self, what: str) -> int:
        """Return how many jobs have come to `what`, the name of an attribute of `JobTimes`."""
        return sum(getattr(job, what) is not None for job in self.jobs.values())

    @property
    def failed(self) -> list[str]:
        """Return the jobs that failed, with why."""
        return [f"{name}: {job.failed}" for name, job in self.jobs.items() if job.failed]

    @property
    def remaining_workers(self) -> int:
        """Return how many worker pods exist now."""
        return sum(len(job.remaining) for job in self.jobs.values())

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait until `is_reached`, which is asked after each change."""
        await self._news.until(is_reached)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch for as long as the block runs; a watch that cannot be kept up ends it."""
        judge = (JOBS, self._see_launcher) if self._is_of_floor else (MPIJOBS, self._see_mpijob)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._follow(*each)) for each in ((PODS, self._see_pod), judge)]
            yield
            for task in tasks:
                task.cancel()

    async def _follow(self, resource: Resource, see: Callable[[str, Object], None]) -> None:
        """Tell `see` of each event; what a broken watch missed comes with the next one."""
        selection, version = Selection(resource, self._namespace), ""
        while True:
            watch = self._client.watch(selection, resource_version=version, timeout_seconds=_WATCH_SECONDS)
            with contextlib.suppress(TransportError):
                async with watch as events:
                    async for event in events:
                        if event["type"] == "ERROR":
                            raise RuntimeError(f"the watch of {selection} ended with {event['object']}")
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            see(event["type"], event["object"])
                            self._news.tell()
            await asyncio.sleep(_AGAIN_SECONDS)  # a server that is gone is not asked at full speed

    def _see_pod(self, type_: str, pod: Object) -> None:
        name = pod["metadata"].get("name", "")
        job, now = self.jobs.get(job_of_pod(name)), asyncio.get_running_loop().time()
        if job is None:
            return
        job.existing.add(name)
        if pods.phase(pod) != "Pending":
            job.started.add(name)
        if len(job.existing) >= self._pods_each and job.created is None:
            job.created = now
        if len(job.started) >= self._pods_each and job.pods_running is None:
            job.pods_running = now
        job.news.tell()
        if "-worker-" in name:
            (job.remaining.discard if type_ == "DELETED" else job.remaining.add)(name)

    def _see_mpijob(self, _type: str, raw: Object) -> None:
        job = self.jobs.get(raw["metadata"].get("name", ""))
        conditions: list[dict[str, Any]] = raw.get("status", {}).get("conditions") or []
        if job is None:
            return
        now = asyncio.get_running_loop().time()
        true = {row["type"]: row for row in conditions if row["status"] == "True"}
        if true and job.accepted is None:
            job.accepted = now
        if c.CONDITION_RUNNING in true and job.running is None:
            job.running = now
        if c.CONDITION_SUCCEEDED in true and job.succeeded is None:
            job.succeeded = now
        if c.CONDITION_FAILED in true:
            job.failed = f"{true[c.CONDITION_FAILED].get('reason')}: {true[c.CONDITION_FAILED].get('message')}"

    def _see_launcher(self, _type: str, raw: Object) -> None:
        job, outcome = self.jobs.get(job_of_pod(raw["metadata"].get("name", ""))), pods.job_outcome(raw)
        if job is None or outcome is None:
            return
        if outcome["type"] == "Complete" and job.ended is None:
            job.ended = asyncio.get_running_loop().time()
        if outcome["type"] == "Failed":
            job.failed = str(outcome.get("message"))
        job.news.tell()
