"""What tests may ask of the fake API server and no other test would miss; what an API server does is in test/contract."""

from typing import Any

import pytest

from fakes.api_server import FakeClient
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, resource_version_of
from mpiop.kube.resources import CONFIG_MAPS, PODS, Selection

KEY = Key("n", "a")
BODY: Any = {"metadata": {"name": "a", "namespace": "n"}, "data": {"x": "1"}}


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


async def test_bookmarks_come_each_minute() -> None:
    client = FakeClient()
    async with client.watch(Selection(PODS, metadata_only=True), resource_version="100", timeout_seconds=150) as events:
        found = [event async for event in events]
    assert [(event["type"], event["object"]["kind"]) for event in found] == [("BOOKMARK", "PartialObjectMetadata")] * 2


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
