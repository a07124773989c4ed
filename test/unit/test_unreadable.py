"""An object that cannot be decoded is known, reported, and never taken for deleted; its job is left as it is, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from example_children import launcher_pod
from fakes.api_server import FakeClient
from fakes.following import background
from fakes.world import KEY, mpijob
from mpiop.api import constants as c
from mpiop.api.status import parse_status
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SERVICES, Resource
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

LAUNCHER_POD = str(launcher_pod()["metadata"].get("name"))


@dataclass
class Scene:
    """An operator over a server in memory."""

    client: FakeClient
    metrics: Metrics

    def object(self, resource: Resource, name: str) -> Object:
        """Return an object as the server has it."""
        return self.client.server.storage.get(resource, Key("default", name))

    def spoil(self, resource: Resource, name: str) -> Object:
        """Nest a field of an object more deeply than anybody can read; return the object as it was."""
        deep: Any = 1
        for _ in range(400):
            deep = [deep]
        before = self.object(resource, name)
        self.client.server.put(resource, cast("Object", {**before, "strange": deep}))
        self.client.actions.clear()
        return before

    def start(self) -> None:
        """Do what the Job controller and kubelets do."""
        for pod in self.client.server.objects(PODS):
            self.client.server.put_status(PODS, Key("default", pod["metadata"].get("name", "")), status(pod))
        pod, job = launcher_pod(), self.object(JOBS, "pi-launcher")
        reference = {**pod["metadata"]["ownerReferences"][0], "uid": uid_of(job)}
        self.client.server.put(PODS, cast("Object", {**pod, "metadata": {**pod["metadata"], "ownerReferences": [reference]}}))

    def end(self) -> None:
        """Let the launcher Job complete."""
        self.client.server.put_status(JOBS, Key("default", "pi-launcher"), {"conditions": [{"type": "Complete", "status": "True"}]})

    @property
    def status(self) -> MPIJobStatus:
        """Return the job's status as stored."""
        return parse_status(self.object(MPIJOBS, "pi").get("status"))

    def problem(self) -> Condition | None:
        """Return the condition that reports a problem."""
        return self.status.true_condition(c.CONDITION_DEGRADED) or self.status.true_condition(c.CONDITION_STALLED)

    def writes(self) -> list[str]:
        """Return the writes since the last spoiling, but those of the status and of events."""
        writes = map(str, self.client.actions)
        return [write for write in writes if "/status" not in write and " Event " not in write and " Lease " not in write]

    def unreadable(self, resource: Resource) -> float | None:
        """Return what the metric shows."""
        return self.metrics.registry.get_sample_value("mpiop_informer_unreadable", {"informer": resource.plural})


def status(pod: Object) -> dict[str, Any]:
    index = int(pod["metadata"].get("name", "").rpartition("-")[2])
    return {"phase": "Running", "podIP": f"10.0.0.{index + 1}", "conditions": [{"type": "Ready", "status": "True"}]}


@asynccontextmanager
async def operator(client: FakeClient) -> AsyncIterator[Scene]:
    metrics = Metrics(version="test")
    async with background(asyncio.create_task(Operator(Options(health_port=0), client, metrics, VirtualClock()).run())):
        await asyncio.sleep(5)
        yield Scene(client, metrics)


async def run_job(scene: Scene) -> None:
    await scene.client.create(MPIJOBS, mpijob())
    await asyncio.sleep(5)
    scene.start()
    await asyncio.sleep(5)
    assert scene.status.is_true(c.CONDITION_RUNNING)


CHILDREN = [
    (JOBS, "pi-launcher"),
    (PODS, LAUNCHER_POD),
    (PODS, "pi-worker-0"),
    (CONFIG_MAPS, "pi-config"),
    (SERVICES, "pi"),
]
each_child = pytest.mark.parametrize(("resource", "name"), CHILDREN, ids=[f"{resource.kind} {name}" for resource, name in CHILDREN])


@each_child
async def test_a_job_with_an_unreadable_child_is_left_as_it_is_until_the_child_is_readable(resource: Resource, name: str) -> None:
    async with operator(FakeClient()) as scene:
        await run_job(scene)
        with capture_logs() as logs:
            before = scene.spoil(resource, name)
            await asyncio.sleep(60)
            scene.client.server.remove(PODS, Key("default", "pi-worker-1"))
            await asyncio.sleep(400)
        assert scene.writes() == []
        assert scene.unreadable(resource) == 1
        problem = scene.problem()
        assert problem is not None
        assert problem.type == c.CONDITION_DEGRADED
        assert problem.reason == scene.status.summary.state == "Unreadable"
        assert problem.message.startswith(f"{resource.kind} {name} cannot be decoded: nested more than 256 levels deep.")
        warnings = [(line["object"], line["problem"]) for line in logs if line["event"] == "object unreadable"]
        assert warnings == [(f"default/{name}", "nested more than 256 levels deep")]
        scene.client.server.put(resource, before)
        await asyncio.sleep(5)
        assert scene.problem() is None
        assert scene.writes() == ["patch ConfigMap default/pi-config", "create Pod default/pi-worker-1"]
        assert scene.unreadable(resource) == 0
        scene.end()
        await asyncio.sleep(5)
        assert scene.status.is_true(c.CONDITION_SUCCEEDED)


@each_child
async def test_an_operator_that_starts_takes_no_unreadable_child_for_missing(resource: Resource, name: str) -> None:
    client = FakeClient()
    async with operator(client) as scene:
        await run_job(scene)
        before = scene.spoil(resource, name)
    async with operator(client) as scene:
        await asyncio.sleep(100)
        assert scene.writes() == []
        assert not scene.status.is_finished
        client.server.put(resource, before)
        scene.end()
        await asyncio.sleep(5)
        assert scene.writes() == []
        assert scene.status.is_true(c.CONDITION_SUCCEEDED)


async def test_an_unreadable_child_that_is_deleted_is_made_again() -> None:
    async with operator(FakeClient()) as scene:
        await run_job(scene)
        scene.spoil(CONFIG_MAPS, "pi-config")
        await asyncio.sleep(5)
        scene.client.server.remove(CONFIG_MAPS, Key("default", "pi-config"))
        await asyncio.sleep(5)
        assert scene.writes() == ["create ConfigMap default/pi-config"]
        assert scene.problem() is None


@pytest.mark.parametrize("has_begun", [False, True])
async def test_the_children_of_an_unreadable_job_are_not_touched_and_other_jobs_run(*, has_begun: bool) -> None:
    client = FakeClient()
    async with operator(client) as scene:
        if has_begun:
            await run_job(scene)
        else:
            client.server.put(MPIJOBS, mpijob())
        before = scene.spoil(MPIJOBS, "pi")
        await asyncio.sleep(5)
        if has_begun:
            client.server.remove(PODS, Key("default", "pi-worker-1"))
            client.server.remove(CONFIG_MAPS, Key("default", "pi-config"))
        await client.create(MPIJOBS, mpijob("other"))
        await asyncio.sleep(5)
        assert {write.split(" default/")[1].split("-")[0] for write in scene.writes()} == {"other"}
        assert scene.unreadable(MPIJOBS) == 1
        events = [event for event in client.server.objects(EVENTS) if cast("Any", event)["reason"] == "Unreadable"]
        assert [(cast("Any", event)["involvedObject"]["name"], cast("Any", event)["type"]) for event in events] == [("pi", "Warning")]
        client.actions.clear()
        client.server.put(MPIJOBS, before)
        await asyncio.sleep(5)
        assert "create Pod default/pi-worker-1" in scene.writes()


async def test_an_unreadable_job_may_be_deleted() -> None:
    async with operator(FakeClient()) as scene:
        scene.client.server.put(MPIJOBS, mpijob())
        scene.spoil(MPIJOBS, "pi")
        await asyncio.sleep(5)
        scene.client.server.remove(MPIJOBS, KEY)
        await asyncio.sleep(5)
        assert scene.unreadable(MPIJOBS) == 0
        await scene.client.create(MPIJOBS, mpijob())
        await asyncio.sleep(5)
        assert scene.object(JOBS, "pi-launcher")


async def test_how_a_launcher_ended_is_remembered_while_its_job_is_unreadable() -> None:
    async with operator(FakeClient()) as scene:
        await run_job(scene)
        before = scene.spoil(MPIJOBS, "pi")
        await asyncio.sleep(5)
        scene.end()
        await asyncio.sleep(5)
        scene.client.server.remove(JOBS, Key("default", "pi-launcher"))
        await asyncio.sleep(5)
        scene.client.server.put(MPIJOBS, before)
        await asyncio.sleep(5)
        assert scene.status.is_true(c.CONDITION_SUCCEEDED)
