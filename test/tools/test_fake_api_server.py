"""What tests may ask of the fake API server, beyond what an API server does (that is in test/contract)."""

from typing import Any

import pytest

from fakes.api_server import FakeClient
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, resource_version_of
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, PODS, Selection

KEY = Key("n", "a")
BODY: Any = {"metadata": {"name": "a", "namespace": "n"}, "data": {"x": "1"}}


def refused(code: int = 500) -> StatusError:
    return StatusError("x", {"code": code})


async def test_a_refusal_is_for_what_it_names_and_for_as_often_as_asked() -> None:
    client = FakeClient()
    client.refuse("create", CONFIG_MAPS, "a", refused(), times=1)
    with pytest.raises(StatusError):
        await client.create(CONFIG_MAPS, BODY)
    await client.create(CONFIG_MAPS, BODY)
    client.refuse("*", None, "", refused(503))
    for _ in range(3):
        with pytest.raises(StatusError):
            await client.get(CONFIG_MAPS, KEY)
    client.server.allow()
    await client.get(CONFIG_MAPS, KEY)
    assert [(str(action), action.error is None) for action in client.actions] == [
        ("create ConfigMap n/a", False),
        ("create ConfigMap n/a", True),
    ]


async def test_a_lost_answer_takes_effect() -> None:
    client = FakeClient()
    client.refuse("create", CONFIG_MAPS, "a", TransportError("reset"), takes_effect=True, times=1)
    with pytest.raises(TransportError):
        await client.create(CONFIG_MAPS, BODY)
    assert (await client.get(CONFIG_MAPS, KEY)).get("data") == {"x": "1"}


async def test_what_others_do_is_seen_and_not_logged() -> None:
    client = FakeClient()
    async with client.watch(Selection(PODS), resource_version="0", timeout_seconds=60) as events:
        client.server.put(PODS, {"metadata": {"name": "a", "namespace": "n"}, "spec": {}, "status": {"phase": "Running"}})
        client.server.put_status(PODS, KEY, {"phase": "Failed"})
        client.server.put(PODS, {"metadata": {"name": "a", "namespace": "n"}, "spec": {"x": 1}})
        client.server.remove(PODS, KEY)
        found = [await anext(events) for _ in range(5)]
    assert [(event["type"], event["object"].get("status"), event["object"]["metadata"].get("generation")) for event in found[1:]] == [
        ("ADDED", {"phase": "Running"}, 1),
        ("MODIFIED", {"phase": "Failed"}, 1),
        ("MODIFIED", None, 2),
        ("DELETED", None, 2),
    ]
    assert client.actions == []
    assert client.server.objects(PODS) == []


async def test_what_is_given_out_and_taken_in_is_a_copy() -> None:
    client = FakeClient()
    body: Any = {"metadata": {"name": "a", "namespace": "n"}, "data": {"x": "1"}}
    created = await client.create(CONFIG_MAPS, body)
    body["data"]["x"] = created["data"]["x"] = "changed"
    assert (await client.get(CONFIG_MAPS, KEY)).get("data") == {"x": "1"}


async def test_an_old_version_is_answered_with_gone() -> None:
    client = FakeClient()
    old = await client.create(CONFIG_MAPS, BODY)
    await client.patch(CONFIG_MAPS, KEY, {"data": {"x": "2"}})
    await client.create(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "n"}})
    paged = await client.list_page(Selection(CONFIG_MAPS), resource_version="", limit=1)
    client.server.compact()
    async with client.watch(Selection(CONFIG_MAPS), resource_version=resource_version_of(old), timeout_seconds=60) as events:
        found = [event async for event in events]
    assert [(event["type"], event["object"]["code"]) for event in found] == [("ERROR", 410)]
    with pytest.raises(StatusError) as caught:
        await client.list_page(Selection(CONFIG_MAPS), resource_version="", limit=1, continue_token=paged["metadata"]["continue"])
    assert caught.value.is_expired


async def test_streams_can_be_cut() -> None:
    client = FakeClient()
    async with client.watch(Selection(PODS), resource_version="100", timeout_seconds=60) as events:
        client.server.cut_streams()
        with pytest.raises(TransportError, match=r"^watch pods: "):
            await anext(events)


async def test_bookmarks_come_each_minute() -> None:
    client = FakeClient()
    async with client.watch(Selection(PODS, metadata_only=True), resource_version="100", timeout_seconds=150) as events:
        found = [event async for event in events]
    assert [(event["type"], event["object"]["kind"]) for event in found] == [("BOOKMARK", "PartialObjectMetadata")] * 2


async def test_a_terminating_namespace_takes_nothing_new() -> None:
    client = FakeClient()
    client.server.terminate_namespace("n")
    with pytest.raises(StatusError) as caught:
        await client.create(CONFIG_MAPS, BODY)
    assert caught.value.is_terminating_namespace


async def test_a_resource_can_be_not_served() -> None:
    client = FakeClient()
    client.server.served.discard(MPIJOBS)
    for call in (client.list_page(Selection(MPIJOBS), resource_version="0"), client.get(MPIJOBS, KEY)):
        with pytest.raises(StatusError) as caught:
            await call
        assert caught.value.is_not_found
    assert await client.discover("kubeflow.org", "v2beta1") == frozenset()


async def owned(client: FakeClient, name: str, owner: Any) -> Any:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return await client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "n", "ownerReferences": [reference]}})  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("propagation", "left"), [("Background", ["other"]), ("Foreground", ["other"]), ("Orphan", ["a-child", "a-grandchild", "other"])]
)
async def test_garbage_is_collected_through_the_generations(propagation: str, left: list[str]) -> None:
    client = FakeClient()
    root = await client.create(CONFIG_MAPS, BODY)
    await owned(client, "a-grandchild", await owned(client, "a-child", root))
    await client.create(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": "n"}})
    assert client.server.collect_garbage() == []
    await client.delete(CONFIG_MAPS, KEY, uid=root["metadata"]["uid"], propagation=propagation)
    client.server.collect_garbage()
    assert [obj["metadata"]["name"] for obj in client.server.objects(CONFIG_MAPS)] == left
