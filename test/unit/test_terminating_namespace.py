"""F61, E59: what the operator asks of a namespace that is being deleted and stays so, with a job in each phase."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest

from fakes.cluster import Cluster
from fakes.world import KEY, mpijob
from mpiop.api import constants as c
from mpiop.api.annotations import AVOID_FAILED_NODES, MAX_RESTARTS
from mpiop.api.status import parse_status
from mpiop.api.status_types import MPIJobStatus
from mpiop.kube.objects import Key, key_of
from mpiop.kube.request import Request
from mpiop.kube.resources import CONFIG_MAPS, JOBS, LEASES, MPIJOBS, PODS, SECRETS, SERVICES
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

SECONDS = 600
MOST_SYNCS = 30
"""With a back-off of 5 ms, 10 ms … 60 s."""


def asked(requests: list[Request]) -> Counter[str]:
    """Count the requests by what they ask for, without those of the election and of the informers."""
    about = (request for request in requests if request.resource is not LEASES and request.verb not in {"list", "watch"})
    return Counter(f"{request.verb} {request.resource.kind}" for request in about)


class Scene:
    """The operator, and the rest of a cluster that works for a job."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cluster = Cluster(self.clock, Random(1))  # noqa: S311 - a reproducible cluster, no secret
        self.client = self.cluster.client
        self.server = self.cluster.server

    @contextlib.asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(Operator(Options(health_port=0), self.client, Metrics(version="test"), self.clock).run())]
        tasks.append(asyncio.create_task(self._drive()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _drive(self) -> None:
        while True:
            self.cluster.end_terminating_pods()
            if "default" not in self.server.writes.terminating_namespaces:
                self.cluster.control_jobs()
                self.cluster.start_pods()
            await asyncio.sleep(0.5)

    async def edit(self, **run_policy: Any) -> None:
        await self.client.patch(MPIJOBS, KEY, {"spec": {"runPolicy": run_policy}})

    def lose_all(self) -> None:
        """Delete the children, as the namespace controller does: the MPIJob is still there, for a webhook does not let it go."""
        for resource in (PODS, SERVICES, CONFIG_MAPS, SECRETS, JOBS):
            for obj in self.server.objects(resource):
                self.server.remove(resource, key_of(obj))

    def lose_pods(self) -> None:
        for pod in self.cluster.pods():
            self.server.remove(PODS, key_of(pod))

    def evict(self) -> None:
        self.server.put_status(PODS, Key("default", "pi-worker-1"), {"phase": "Failed", "reason": "Evicted", "conditions": []})

    @property
    def status(self) -> MPIJobStatus:
        job = self.cluster.job
        assert job is not None
        return parse_status(job.get("status"))


def nothing(_scene: Scene) -> None:
    """Let the namespace controller not have begun."""


LOSSES: dict[str, Callable[[Scene], None]] = {"nothing": nothing, "pods": Scene.lose_pods, "all": Scene.lose_all}
PHASES = ("created", "waits for its workers", "runs", "restarts", "suspended", "resumes", "ended", "ended, and its TTL is over")


async def reach(phase: str, scene: Scene) -> None:
    """Bring the job to the phase in which the namespace is deleted."""
    await asyncio.sleep(20)
    if phase == "created":
        scene.server.terminate_namespace("default")
    policy = "WaitForWorkersReady" if phase == "waits for its workers" else "AtStartup"
    job = mpijob(workers=3, launcherCreationPolicy=policy, runPolicy={"ttlSecondsAfterFinished": 60, "cleanPodPolicy": "Running"})
    job["metadata"]["annotations"] = {MAX_RESTARTS.name: "3", AVOID_FAILED_NODES.name: "true"}
    await scene.client.create(MPIJOBS, job) if phase != "created" else scene.server.put(MPIJOBS, job)
    if phase in {"created", "waits for its workers"}:
        await asyncio.sleep(1)
        return
    await asyncio.sleep(20)
    assert scene.status.is_true(c.CONDITION_RUNNING)
    match phase:
        case "restarts":
            scene.server.terminate_namespace("default")
            scene.evict()
        case "suspended" | "resumes":
            await scene.edit(suspend=True)
            await asyncio.sleep(20)
            if phase == "resumes":
                scene.server.terminate_namespace("default")
                await scene.edit(suspend=False)
        case "ended" | "ended, and its TTL is over":
            scene.cluster.end_launcher()
            await asyncio.sleep(5 if phase == "ended" else 58)
        case _:
            return


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("phase", PHASES)
async def test_nothing_is_asked_at_full_speed_in_a_namespace_that_is_being_deleted(phase: str, lose: Callable[[Scene], None]) -> None:
    scene = Scene()
    async with scene.live():
        await reach(phase, scene)
        scene.server.terminate_namespace("default")
        lose(scene)
        before = len(scene.server.requests)
        await asyncio.sleep(SECONDS)
        counts = asked(scene.server.requests[before:])
    assert max(counts.values(), default=0) <= MOST_SYNCS, counts


@pytest.mark.parametrize("annotations", [{}, {MAX_RESTARTS.name: "3"}], ids=["no budget", "a budget"])
async def test_each_of_a_hundred_pods_that_disappear_costs_nothing(annotations: dict[str, str]) -> None:
    scene = Scene()
    async with scene.live():
        await asyncio.sleep(20)
        job = mpijob(workers=100)
        job["metadata"]["annotations"] = annotations
        scene.server.put(MPIJOBS, job)
        await asyncio.sleep(60)
        assert scene.status.is_true(c.CONDITION_RUNNING)
        scene.server.terminate_namespace("default")
        before = len(scene.server.requests)
        for pod in scene.cluster.pods():
            scene.server.remove(PODS, key_of(pod))
            await asyncio.sleep(0.1)
        counts = asked(scene.server.requests[before:])
        assert max(counts.values()) <= MOST_SYNCS, counts
        uid = scene.server.objects(MPIJOBS)[0]["metadata"]["uid"]
        scene.lose_all()
        scene.server.remove(MPIJOBS, KEY)
        scene.server.writes.terminating_namespaces.clear()  # another namespace of the same name
        scene.server.put(MPIJOBS, mpijob(workers=1))
        await asyncio.sleep(2)
        assert scene.server.objects(MPIJOBS)[0]["metadata"]["uid"] != uid
        assert [key_of(pod).name for pod in scene.cluster.workers()] == ["pi-worker-0"], "it is not held back for its predecessor"
