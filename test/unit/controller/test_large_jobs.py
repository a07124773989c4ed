"""Jobs with a large spec: read live where it is not kept, computed one at a time, and nobody waits for them."""

import asyncio
import threading
from typing import Any

import pytest

from fakes.world import KEY, World, mpijob, new, running, starting
from mpiop.controller.observe.projections import trims
from mpiop.controller.observe.stored_specs import Specs, stored_spec
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS
from mpiop.workqueue import NotReady

LARGE = {"env": [{"name": f"VARIABLE_{number}", "value": "value"} for number in range(2000)]}
TOLERATIONS = [{"key": f"example.com/{number}"} for number in range(4000)]


def large(**spec: Any) -> dict[str, Any]:
    """Return the specs of the replicas of a job of 100 kB, whose templates have these fields too."""
    template = {"spec": {"containers": [{"name": "mpi", "image": "mpi", **LARGE}], **spec}}
    return {"Launcher": {"template": template}, "Worker": {"replicas": 2, "template": template}}


def forgetful() -> World:
    """Return a world in which no spec is kept."""
    world = World()
    world.trims = trims(Specs(budget_bytes=0))
    return world


def reads(world: World) -> int:
    return sum(request.verb == "get" and request.resource is MPIJOBS for request in world.client.server.requests)


async def test_a_spec_that_is_not_kept_is_read_once_and_the_job_runs() -> None:
    world = forgetful()
    await world.submit()
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    await world.run_job()
    assert reads(world) == 1, "its parsed form is remembered"


async def test_a_spec_that_is_kept_is_not_read() -> None:
    world = await running()
    assert reads(world) == 0


async def test_no_spec_of_another_generation_is_taken_for_the_cached_one() -> None:
    world = forgetful()
    await world.submit()
    world.refresh()
    await world.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}})
    with pytest.raises(NotReady):
        await world.syncer.sync(KEY)
    assert world.writes == []
    await world.sync()
    assert len(world.names(PODS)) == 4


async def test_a_job_of_another_manager_is_neither_read_nor_touched() -> None:
    world = forgetful()
    await world.submit(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
    await world.sync()
    assert (reads(world), world.writes) == (0, [])


async def test_a_spec_that_cannot_be_read_is_retried() -> None:
    world = forgetful()
    await world.submit()
    world.client.refuse("get", MPIJOBS, "pi", StatusError("get", {"code": 500}), times=1)
    await world.sync_refused(StatusError)
    await world.sync()
    assert world.names(JOBS) == ["pi-launcher"]


@pytest.mark.real_time
async def test_a_large_job_runs_and_is_computed_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    world, threads = World(), set[threading.Thread]()
    read, reader = world.observer.reader.read, world.observer.reader

    def noted(*args: Any) -> Any:
        threads.add(threading.current_thread())
        return read(*args)

    monkeypatch.setattr(reader, "read", noted)
    await world.submit(mpiReplicaSpecs=large())
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert world.names(CONFIG_MAPS) == ["pi-config"]
    await world.run_job()
    assert world.status.is_true("Running")
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.real_time
async def test_one_large_job_is_computed_at_a_time_and_no_small_one_waits() -> None:
    world = World()
    for name in ("pi", "other"):
        await world.client.create(MPIJOBS, mpijob(name, mpiReplicaSpecs=large()))
    await world.client.create(MPIJOBS, mpijob("small"))
    world.refresh()
    mine = asyncio.create_task(world.syncer.sync(KEY))
    await asyncio.sleep(0)
    with pytest.raises(NotReady):
        await world.syncer.sync(Key("default", "other"))
    await world.syncer.sync(Key("default", "small"))
    await mine
    await world.syncer.sync(Key("default", "other"))
    assert {"pi-launcher", "other-launcher", "small-launcher"} == set(world.names(JOBS))


async def test_an_invalid_large_job_is_reported_and_leaves_the_turn() -> None:
    world = await new(mpiReplicaSpecs=large(), mpiImplementation="Other")
    await world.sync()
    await world.sync()
    assert "mpiImplementation" in str(world.status.conditions)
    assert stored_spec(world.stores[MPIJOBS].get(KEY) or mpijob()).is_large


@pytest.mark.real_time
async def test_a_pod_template_that_is_not_kept_is_read_before_the_launcher_is_resumed() -> None:
    world = await starting(mpiReplicaSpecs=large(nodeSelector={"old": "1"}, tolerations=TOLERATIONS), runPolicy={"suspend": True})
    selector = {"old": None, "new": "1"}
    await world.resume(mpiReplicaSpecs={"Launcher": {"template": {"spec": {"nodeSelector": selector, "tolerations": []}}}})
    job = world.one(JOBS, "pi-launcher")["spec"]
    assert not job["suspend"]
    assert job["template"]["spec"]["nodeSelector"] == {"new": "1"}
    assert not job["template"]["spec"].get("tolerations")


async def test_a_launcher_that_does_not_go_and_whose_template_is_not_kept_does_not_stop_a_suspension() -> None:
    world = await running(mpiReplicaSpecs=large(tolerations=TOLERATIONS))
    launcher: Any = world.one(JOBS, "pi-launcher")
    metadata = {**launcher["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
    world.client.server.put(JOBS, {**launcher, "spec": {**launcher["spec"], "suspend": True}, "metadata": metadata})
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    await world.sync()
    await world.sync()
    assert world.names(PODS) == ["pi-launcher-x"] or not world.names(PODS)
    assert world.status.is_true("Suspended")
