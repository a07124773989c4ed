"""Several namespaces of one resource, followed by an informer each and read as one."""

import asyncio

import pytest

from fakes.api_server import FakeClient
from fakes.following import background, by_role
from mpiop.informers import InformerFactory, JoinedInformer
from mpiop.informers.joined import wait_for_any
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import CONFIG_MAPS, Selection
from virtual_time import VirtualClock


def body(namespace: str, name: str, role: str = "worker") -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name, "labels": {"role": role}}}


def joined(factory: InformerFactory, *namespaces: str) -> JoinedInformer:
    return JoinedInformer([factory.informer(Selection(CONFIG_MAPS, each), indexers={"role": by_role}) for each in namespaces])


async def test_objects_of_the_namespaces_and_no_others_are_read_as_one() -> None:
    fake, heard = FakeClient(VirtualClock()), list[Key]()
    factory = InformerFactory(fake)
    informer = joined(factory, "a", "b", "idle")
    informer.add_handler(lambda notification: heard.append(notification.key))
    for namespace in ("a", "b", "other"):
        await fake.create(CONFIG_MAPS, body(namespace, "pi"))
    assert informer.last_activity is None
    async with background(asyncio.create_task(factory.run())):
        for namespace in ("a", "b", "idle"):
            await informer.wait_for_sync(namespace)
            assert informer.has_synced(namespace)
        store = informer.store
        served = {Key("a", "pi"), Key("b", "pi")}
        assert set(store.keys()) == set(heard) == served
        assert len(store.values()) == len(store.by_index("role", "worker")) == 2
        assert store.get(Key("b", "pi")) is not None
        assert store.get(Key("other", "pi")) is None
        assert informer.last_activity is not None
        fake.server.remove(CONFIG_MAPS, Key("a", "pi"))
        await asyncio.sleep(1)
        assert set(store.keys()) == {Key("b", "pi")}
        with pytest.raises(KeyError):
            store.by_index("none", "worker")


async def test_each_namespace_is_as_current_as_its_own_informer() -> None:
    fake = FakeClient(VirtualClock())
    factory = InformerFactory(fake)
    store = joined(factory, "a", "idle").store
    assert (store.current_to("a"), store.current_to("other")) == ("", "")
    async with background(asyncio.create_task(factory.run())):
        await asyncio.sleep(1)
        before = store.current_to("idle")
        created = await fake.create(CONFIG_MAPS, body("a", "pi"))
        await asyncio.sleep(1)
        assert store.current_to("a") == created["metadata"]["resourceVersion"]
        assert store.current_to("idle") == before


class Broken(JoinedInformer):
    """Fails to wait."""

    async def wait_for_sync(self, namespace: str) -> None:
        raise RuntimeError(namespace)


async def test_what_ends_the_wait_for_a_namespace_is_raised() -> None:
    informer = Broken(joined(InformerFactory(FakeClient(VirtualClock())), "a").parts)
    with pytest.raises(RuntimeError, match="a"):
        await wait_for_any([informer], ["a"])
