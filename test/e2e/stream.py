"""A steady stream of short jobs on simulated nodes, and what became of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from e2e.jobs import is_true
from e2e.waiting import until
from mpiop.kube.client import Client
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import MPIJOBS, Selection

LOOK_SECONDS = 0.2

MOST_UNDER_WAY = 20
"""Jobs that have not ended. Where the machine cannot keep the pace, more of them would only make it slower."""


def short_job(key: Key, *, runs_seconds: float = 1.0) -> Object:
    """Return an MPIJob of a launcher and a worker; kwok lets the launcher end well after `runs_seconds`."""
    annotations = {"mpiop.test/complete-after": f"{runs_seconds:g}s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "main", "image": "simulated"}]}}
    made: Any = {
        "apiVersion": MPIJOBS.api_version,
        "kind": MPIJOBS.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": template}, "Worker": {"replicas": 1, "template": template}}},
    }
    return cast("Object", made)


@dataclass
class JobStream:
    """Creates jobs `job-0`, `job-1`, … at a steady pace, and looks what becomes of them.

    Attributes:
        client: Who creates them.
        namespace: Where.
        jobs_a_second: How many a second, if the machine bears it; what was held up is not made up for.
        most: The stream ends after so many; 0 means no end.
        created: Names of those that the API server has.
        succeeded: When each was first seen to have Succeeded, in loop time.
        failed: Names of those that Failed.
    """

    client: Client
    namespace: str
    jobs_a_second: float
    most: int = 0
    created: list[str] = field(default_factory=list[str])
    succeeded: dict[str, float] = field(default_factory=dict[str, float])
    failed: set[str] = field(default_factory=set[str])

    @property
    def under_way(self) -> int:
        return len(self.created) - len(self.succeeded) - len(self.failed)

    async def run(self) -> None:
        """Create jobs until there are `most`, or until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self.most or len(self.created) < self.most:
            while self.under_way >= MOST_UNDER_WAY:
                await asyncio.sleep(LOOK_SECONDS)
                with contextlib.suppress(KubeError):
                    await self.read_jobs()
            await self._create(f"job-{len(self.created)}")
            due = max(due + 1 / self.jobs_a_second, loop.time() - 1)
            await asyncio.sleep(due - loop.time())

    async def read_jobs(self) -> Sequence[Any]:
        """Note which jobs have ended, and return those that there are.

        Raises:
            KubeError: The server does not answer.
        """
        # As the server's cache has them: that costs it least.
        jobs: Sequence[Any] = (await self.client.list_page(Selection(MPIJOBS, self.namespace), resource_version="0"))["items"]
        now = asyncio.get_running_loop().time()
        for job in jobs:
            if is_true(job, "Succeeded"):
                self.succeeded.setdefault(job["metadata"]["name"], now)
            if is_true(job, "Failed"):
                self.failed.add(job["metadata"]["name"])
        return jobs

    async def until_more(self, count: int, *, timeout_seconds: float = 120) -> None:
        """Return when `count` more jobs have been created than now."""
        desired = len(self.created) + count

        async def is_enough() -> bool:
            return len(self.created) >= desired

        await until(f"{count} more jobs created", is_enough, timeout_seconds=timeout_seconds)

    async def until_succeeded(self, *, timeout_seconds: float = 120) -> None:
        """Return when each of the jobs created until now has Succeeded.

        Raises:
            AssertionError: One failed.
            TimeoutError: One was left at the end of the time.
        """
        desired = set(self.created)

        async def have_ended() -> bool:
            with contextlib.suppress(KubeError):
                await self.read_jobs()
            return desired <= self.succeeded.keys() | self.failed

        await until("the end of all jobs", have_ended, timeout_seconds=timeout_seconds, look_seconds=LOOK_SECONDS)
        assert self.failed == set()

    async def _create(self, name: str) -> None:
        body = short_job(Key(self.namespace, name))
        while True:
            try:
                await self.client.create(MPIJOBS, body)
            except KubeError as error:
                # A request without an answer may have been carried out.
                if not (isinstance(error, StatusError) and error.is_already_exists):
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
            self.created.append(name)
            return


@contextlib.asynccontextmanager
async def streaming(client: Client, namespace: str, jobs_a_second: float) -> AsyncIterator[JobStream]:
    """Yield a stream that runs until the block ends."""
    stream = JobStream(client, namespace, jobs_a_second)
    running = asyncio.create_task(stream.run())
    try:
        yield stream
    finally:
        running.cancel()
        await asyncio.wait({running})
