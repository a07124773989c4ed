"""The outside watcher: notes, for each job of a namespace, when the API server first reported each thing that a user waits for."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.objects import job_of_pod
from bench.watching import News, watching
from mpiop.api import constants as c
from mpiop.api.names import worker_prefix
from mpiop.controller.observe import pods
from mpiop.kube.client import Client
from mpiop.kube.objects import Object
from mpiop.kube.resources import JOBS, MPIJOBS, PODS


@dataclass
class JobTimes:
    """When what happened to a job, in loop time; None while it has not.

    Attributes:
        submitted: Its MPIJob was sent to the API server.
        accepted: The operator has written its condition Created.
        completed: Its launcher Job was complete.
        succeeded: Its condition Succeeded was True; in a floor, its launcher Job was complete.
        failed: What went wrong with it; "" is nothing.
        existing: Each of its Pods was seen for the first time, by name; those that are gone stay.
        remaining: Names of its worker Pods that exist now.
    """

    submitted: float
    accepted: float | None = None
    completed: float | None = None
    succeeded: float | None = None
    failed: str = ""
    existing: dict[str, float] = field(default_factory=dict[str, float], repr=False)
    remaining: set[str] = field(default_factory=set[str], repr=False)


class Observer:
    """Watches a namespace.

    Attributes:
        jobs: What was seen, by the name of the MPIJob.
        clean: When no worker was left, or when nobody waited for that any more; None before.
    """

    def __init__(self, client: Client, namespace: str, *, is_of_floor: bool = False) -> None:
        """Watch with `client`; in a floor the launcher Job reports the end of a job."""
        self._client = client
        self._namespace = namespace
        self._is_of_floor = is_of_floor
        self._news = News()
        self.jobs: dict[str, JobTimes] = {}
        self.clean: float | None = None

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
    def makespan_seconds(self) -> float:
        """Return how long it took from the first job sent until the last one Succeeded."""
        ends = [job.succeeded for job in self.jobs.values() if job.succeeded is not None]
        return max(ends) - self._began

    @property
    def made_seconds(self) -> float:
        """Return how long it took from the first job sent until the last Pod existed."""
        return max(seen for job in self.jobs.values() for seen in job.existing.values()) - self._began

    @property
    def report_seconds(self) -> float:
        """Return how long it took from a complete launcher Job until its MPIJob had Succeeded: the median of the jobs."""
        return median(job.succeeded - job.completed for job in self.jobs.values() if job.succeeded and job.completed)

    @property
    def clean_seconds(self) -> float:
        """Return how long it took from the first job sent until no worker was left, or nobody waited for that any more."""
        return (self.clean or math.nan) - self._began

    @property
    def _began(self) -> float:
        return min(job.submitted for job in self.jobs.values())

    @property
    def remaining_workers(self) -> int:
        """Return how many worker pods exist now."""
        return sum(len(job.remaining) for job in self.jobs.values())

    async def until_clean(self, timeout_seconds: float) -> None:
        """Wait until no worker is left, but not longer than `timeout_seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self.until(lambda: self.remaining_workers == 0)
        self.clean = asyncio.get_running_loop().time()

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait until `is_reached`, which is asked after each change."""
        await self._news.until(is_reached)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch for as long as the block runs; a watch that cannot be kept up ends it."""
        sees = {PODS: self._see_pod, JOBS: self._see_launcher, MPIJOBS: self._see_mpijob}
        async with watching(self._client, self._namespace, sees, self._news):
            yield

    def _see_pod(self, type_: str, pod: Object) -> None:
        name = pod["metadata"].get("name", "")
        if (job := self.jobs.get(job_of_pod(name))) is None:
            return
        job.existing.setdefault(name, asyncio.get_running_loop().time())
        if worker_prefix("") in name:
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
        if c.CONDITION_SUCCEEDED in true and job.succeeded is None:
            job.succeeded = now
        if c.CONDITION_FAILED in true:
            job.failed = f"{true[c.CONDITION_FAILED].get('reason')}: {true[c.CONDITION_FAILED].get('message')}"

    def _see_launcher(self, _type: str, raw: Object) -> None:
        job, outcome = self.jobs.get(job_of_pod(raw["metadata"].get("name", ""))), pods.job_outcome(raw)
        if job is None or outcome is None:
            return
        if outcome["type"] == "Complete" and job.completed is None:
            job.completed = asyncio.get_running_loop().time()
            if self._is_of_floor:
                job.succeeded = job.completed
        if outcome["type"] == "Failed":
            job.failed = str(outcome.get("message"))
