"""The factory: one informer for each selection, run and waited for together."""

import asyncio
from dataclasses import replace

import pytest

from fakes.api_server import FakeClient
from fakes.following import background, by_role
from mpiop.informers import InformerFactory
from mpiop.kube.objects import Key, Object, PartialObjectMetadata
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS, Selection
from virtual_time import VirtualClock

PODS_OF_PI = Selection(PODS, label_selector="app=pi")
ALL_JOBS = Selection(JOBS)


def body(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": name, "labels": labels}}


def client() -> FakeClient:
    return FakeClient(VirtualClock())


async def test_a_selection_has_one_informer() -> None:
    factory = InformerFactory(client())
    informer = factory.informer(PODS_OF_PI)
    assert factory.informer(PODS_OF_PI, indexers={"role": by_role}) is informer
    assert list(informer.store.indexers) == ["role"]
    assert factory.informer(ALL_JOBS) is not informer
    assert len(list(factory)) == 2


async def test_who_needs_more_of_the_objects_has_an_informer_of_its_own() -> None:
    factory = InformerFactory(client())
    projected = replace(PODS_OF_PI, projection=PartialObjectMetadata)
    assert factory.informer(PODS_OF_PI) is not factory.informer(projected)
    assert factory.informer(projected) is factory.informer(projected)


async def test_all_run_together_and_those_unsynced_are_named() -> None:
    fake = client()
    await fake.create(PODS, body("ours", app="pi", role="worker"))
    await fake.create(PODS, body("theirs", app="e"))
    factory = InformerFactory(fake)
    pods = factory.informer(PODS_OF_PI, indexers={"role": by_role})
    factory.informer(ALL_JOBS)
    heard: list[Key] = []
    pods.add_handler(lambda notification: heard.append(notification.key))
    assert list(map(str, factory.unsynced())) == ["pods with app=pi", "jobs"]
    async with background(asyncio.create_task(factory.run())):
        await asyncio.sleep(10)
        assert factory.unsynced() == []
        assert heard == [Key("ns", "ours")]
        assert [obj["metadata"].get("name") for obj in pods.store.by_index("role", "worker")] == ["ours"]
        await fake.create(PODS, body("another", app="pi", role="worker"))
        await asyncio.sleep(1)
        assert heard == [Key("ns", "ours"), Key("ns", "another")]


async def test_an_informer_made_while_running_runs_too() -> None:
    fake = client()
    factory = InformerFactory(fake)
    async with background(asyncio.create_task(factory.run())):
        await asyncio.sleep(1)
        late = factory.informer(Selection(CONFIG_MAPS))
        await asyncio.wait_for(late.wait_for_sync(), 10)
        assert late.is_running
    assert not late.is_running


async def test_an_informer_that_dies_ends_all() -> None:
    factory = InformerFactory(client())
    pods, jobs = factory.informer(PODS_OF_PI), factory.informer(ALL_JOBS)
    running = asyncio.create_task(factory.run())
    await asyncio.sleep(1)

    async def die() -> None:
        raise MemoryError

    assert factory._group is not None
    factory._group.create_task(die())
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(running, 1)
    assert not pods.is_running
    assert not jobs.is_running
