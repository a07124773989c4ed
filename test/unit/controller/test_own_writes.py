"""What our own writes leave to wait for (E50 to E55 in place of expectations, docs/adr/0006), and how refused ones are tried again."""

import asyncio
import itertools
from typing import Any

import pytest

from example_jobs import PI
from fakes.api_server import FakeClient
from fakes.following import background
from fakes.world import KEY, World, new, running
from mpiop.api import constants as c
from mpiop.controller.gang.gang import Gang
from mpiop.controller.observe.consistency import ESCAPE_SECONDS
from mpiop.controller.observe.observed import Listers
from mpiop.controller.plan.diff import Delete
from mpiop.informers.store import Store
from mpiop.kube.errors import KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, resource_version_of, uid_of
from mpiop.kube.resources import MPIJOBS, PODS
from mpiop.workqueue import NotReady, WorkQueue, work
from unit.controller.write.test_apply import OWNER, applier, create, pod
from virtual_time import VirtualClock

STATUS = "patch MPIJob/status default/pi"


class Scene:
    """An applier whose cache of pods shows what the test lets it see."""

    def __init__(self) -> None:
        self.client = FakeClient(VirtualClock())
        self.pods = Store()
        self.applier = applier(self.client, self.pods)
        self.refresh()

    def refresh(self) -> None:
        self.pods.replace(self.client.server.objects(PODS), str(self.client.server.storage.version))

    def is_waiting(self) -> bool:
        return self.applier.consistency.wait_seconds(PI.key, PI.uid) > 0


@pytest.mark.parametrize("error", [StatusError("create", {"code": 500}), TransportError("no answer")], ids=["refused", "no answer"])
async def test_E50_a_write_that_failed_leaves_nothing_to_wait_for(error: KubeError) -> None:
    scene = Scene()
    scene.client.refuse("create", PODS, "", error)
    assert len((await scene.applier.apply(OWNER, [create("a")])).failed) == 1
    assert not scene.is_waiting()


async def test_E50_of_several_writes_those_that_succeeded_are_waited_for() -> None:
    scene = Scene()
    scene.client.refuse("create", PODS, "b", TransportError("no answer"))
    assert len((await scene.applier.apply(OWNER, [create("a"), create("b"), create("c")])).failed) == 1
    assert scene.is_waiting()
    scene.refresh()
    assert not scene.is_waiting()


async def test_E50_E58_a_create_that_meets_our_own_object_is_done_and_leaves_nothing_to_wait_for() -> None:
    scene = Scene()
    stored = scene.client.server.put(PODS, pod("a"))
    scene.refresh()
    result = await scene.applier.perform(OWNER, create("a"))  # it is there: the live object is the answer
    assert result is not None
    assert uid_of(result) == uid_of(stored)
    scene.refresh()
    assert not scene.is_waiting()


async def test_E51_a_cache_that_stands_still_holds_a_job_up_but_not_for_good_and_nothing_is_made_twice() -> None:
    world = await new()
    await world.sync()
    done = list(world.writes)
    for wait in (ESCAPE_SECONDS, ESCAPE_SECONDS / 2):
        with pytest.raises(NotReady) as caught:
            await world.syncer.sync(KEY)
        assert caught.value.seconds == wait
        assert world.writes == done, "held up"
        await asyncio.sleep(ESCAPE_SECONDS / 2)
    await asyncio.sleep(1)
    with pytest.raises(StatusError, match="Conflict"):
        await world.syncer.sync(KEY)  # continues with old reads; what it should not do is refused
    assert len(world.writes) > len(done)
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    world.client.actions.clear()
    await world.sync_until_idle()
    assert [write for write in world.writes if write.startswith("create")] == []
    assert world.recorder.reasons == ["MPIJobCreated"]


async def test_E52_a_deleted_pod_on_its_way_out_is_waited_for_until_the_cache_shows_that() -> None:
    scene = Scene()
    stored = scene.client.server.put(PODS, pod("a", finalizers=["example.com/x"]))
    scene.refresh()
    left = await scene.applier.perform(OWNER, Delete(PODS, stored))
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    assert scene.is_waiting()
    scene.pods.put(left, resource_version_of(left))
    assert not scene.is_waiting()
    scene.pods.remove(left, str(int(resource_version_of(left)) + 1))
    assert not scene.is_waiting(), "its end is no second thing to wait for"


@pytest.mark.parametrize("is_gone_before", [False, True], ids=["goes at once", "was gone"])
async def test_E52_E59_a_deletion_that_leaves_nothing_succeeds_and_is_not_waited_for(*, is_gone_before: bool) -> None:
    scene = Scene()
    stored = scene.client.server.put(PODS, pod("a"))
    scene.refresh()
    if is_gone_before:
        scene.client.server.remove(PODS, Key("default", "a"))
    await scene.applier.perform(OWNER, Delete(PODS, stored))
    assert scene.client.server.objects(PODS) == []
    assert not scene.is_waiting()


class Spy:
    """A lister that notes that it was read."""

    def __init__(self, store: Store) -> None:
        self.store, self.reads = store, 0

    def __getattr__(self, name: str) -> Any:
        self.reads += 1
        return getattr(self.store, name)


async def test_E54_no_child_is_read_from_a_cache_before_it_is_known_to_be_new_enough() -> None:
    world = await new()
    await world.sync()
    children = world.listers
    spies = [Spy(store) for store in (children.services, children.config_maps, children.jobs, children.pods)]  # type: ignore[arg-type]  # they are
    world.listers = Listers(*spies)
    world.build(Gang())
    world.refresh(MPIJOBS)
    with pytest.raises(NotReady):
        await world.syncer.sync(KEY)
    assert [spy.reads for spy in spies] == [0, 0, 0, 0]
    await world.sync()
    assert min(spy.reads for spy in spies) > 0


async def live_for(world: World, seconds: float) -> list[float]:
    """Let a worker sync the job for `seconds`, its cache always current; return the times of its syncs."""
    queue = WorkQueue[Key]()
    times: list[float] = []

    async def sync(key: Key) -> float | None:
        times.append(asyncio.get_running_loop().time())
        return await world.sync(key)

    queue.add(KEY)
    async with background(asyncio.create_task(work(queue, sync, lambda _key, _error: None))):
        await asyncio.sleep(seconds)
        queue.shut_down()
    return times


async def test_E59_in_a_terminating_namespace_nothing_is_reported_and_retries_grow_rare() -> None:
    world = await new()
    world.client.server.terminate_namespace("default")
    times = await live_for(world, 600)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert pauses[-1] >= 60
    assert len(times) < 25
    assert len([write for write in world.writes if write.startswith("create")]) <= len(times), "the first refusal ends a try"
    assert world.recorder.reasons == ["MPIJobCreated"]
    assert not world.status.is_true(c.CONDITION_STALLED)


async def test_E58_a_name_that_stays_taken_is_checked_rarely_and_reported_once() -> None:
    world = await new()
    world.client.server.put(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pi-worker-0", "namespace": "default"}})
    await live_for(world, 600)
    creates = [write for write in world.writes if write == "create Pod default/pi-worker-0"]
    assert 10 <= len(creates) <= 60
    assert world.recorder.reasons.count("MPIJobStalled") <= 1
    assert world.status.is_true(c.CONDITION_STALLED)


async def test_T4_a_status_that_met_a_conflict_is_computed_again_from_what_was_read_since() -> None:
    world = await new()
    world.refresh()
    await world.edit({"metadata": {"annotations": {"touched": "by kubectl"}}})  # between our reading and our writing
    with pytest.raises(StatusError) as caught:
        await world.syncer.sync(KEY)
    assert caught.value.is_conflict
    assert world.writes.count(STATUS) == 1, "the body that was refused is not sent again"
    await world.sync_until_idle()
    assert world.status.is_true(c.CONDITION_CREATED)
    assert world.one(MPIJOBS, "pi")["metadata"]["annotations"] == {"touched": "by kubectl"}
    assert world.recorder.reasons == ["MPIJobCreated"]


async def test_T4_conflicts_without_end_are_met_with_ever_longer_pauses() -> None:
    world = await new()
    world.client.refuse("patch", MPIJOBS, "", StatusError("patch", {"code": 409, "reason": "Conflict"}))
    times = await live_for(world, 600)
    assert world.writes.count(STATUS) == len(times), "one try for each reading"
    assert len(times) < 25


async def test_E54_workers_are_not_deleted_for_a_scale_up_that_the_cache_does_not_show_yet() -> None:
    world = await running()
    old = world.one(MPIJOBS, "pi")
    await world.change(mpiReplicaSpecs={"Worker": {"replicas": 4}})
    successor = World(client=world.client)
    successor.refresh()
    successor.stores[MPIJOBS].replace([successor.trims[MPIJOBS](old)], resource_version_of(old))
    with pytest.raises(NotReady):
        await successor.syncer.sync(KEY)
    assert world.names(PODS) == ["pi-launcher-x", *(f"pi-worker-{index}" for index in range(4))]
    await successor.change(mpiReplicaSpecs={"Worker": {"replicas": 2}})
    assert world.names(PODS) == ["pi-launcher-x", "pi-worker-0", "pi-worker-1"]
