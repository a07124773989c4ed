"""What an API server answers to lists and watches, as far as the informers rely on it."""

import pytest

from contract_subject import Subject, names, refused
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import resource_version_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, Resource, Selection

SELECTORS = [
    ("color=red", ["a"]),
    ("color==red", ["a"]),
    ("color!=red", ["b", "c"]),
    ("color", ["a", "b"]),
    ("!color", ["c"]),
    ("color in (red,blue)", ["a", "b"]),
    ("color notin (red)", ["b", "c"]),
    ("color,size=big", ["b"]),
    ("", ["a", "b", "c"]),
]


@pytest.mark.parametrize(("selector", "desired"), SELECTORS)
async def test_label_selectors(subject: Subject, selector: str, desired: list[str]) -> None:
    await subject.config_map("a", labels={"color": "red"})
    await subject.config_map("b", labels={"color": "blue", "size": "big"})
    await subject.config_map("c")
    page = await subject.client.list_page(subject.selection(labels=selector), resource_version="")
    assert names(page["items"]) == desired


async def test_a_list_has_the_version_to_watch_from_and_items_with_their_kind(subject: Subject) -> None:
    created = await subject.config_map("a", x="1")
    page = await subject.client.list_page(subject.selection(), resource_version="")
    assert int(page["metadata"]["resourceVersion"]) >= int(resource_version_of(created))
    assert list(page["items"]) == [created]
    assert page["items"][0].get("kind") == "ConfigMap"
    assert page["items"][0].get("apiVersion") == "v1"


async def test_of_an_object_metadata_alone_can_be_asked_for(subject: Subject) -> None:
    stored = await subject.config_map("a", x="1")
    found = await subject.client.get(CONFIG_MAPS, subject.key("a"), metadata_only=True)
    assert found.get("kind") == "PartialObjectMetadata"
    assert (uid_of(found), resource_version_of(found)) == (uid_of(stored), resource_version_of(stored))
    assert "data" not in found


async def test_an_empty_list_is_a_list(subject: Subject) -> None:
    page = await subject.client.list_page(subject.selection(MPIJOBS), resource_version="")
    assert list(page["items"]) == []
    assert page["metadata"]["resourceVersion"]


async def test_a_list_at_a_version_is_at_least_as_new(subject: Subject) -> None:
    created = await subject.config_map("a")
    page = await subject.client.list_page(subject.selection(), resource_version=resource_version_of(created))
    assert names(page["items"]) == ["a"]


async def test_a_field_selector_picks_a_name(subject: Subject) -> None:
    await subject.config_map("a")
    await subject.config_map("b")
    page = await subject.client.list_page(subject.selection(fields="metadata.name=b"), resource_version="")
    assert names(page["items"]) == ["b"]


async def test_pages_are_one_snapshot(subject: Subject) -> None:
    for name in "abc":
        await subject.config_map(name)
    selection = Selection(CONFIG_MAPS, subject.namespace, "!none")
    first = await subject.client.list_page(selection, resource_version="", limit=2)
    await subject.config_map("d")
    second = await subject.client.list_page(selection, resource_version="", limit=2, continue_token=first["metadata"]["continue"])
    assert names(first["items"]) == ["a", "b"]
    assert "d" not in names(second["items"])
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_version_from_the_future_is_too_large(subject: Subject) -> None:
    with pytest.raises(StatusError) as caught:
        await subject.client.list_page(subject.selection(), resource_version="999999999")
    assert caught.value.code == 504
    assert caught.value.is_too_large_resource_version
    assert caught.value.retry_after_seconds == 1


async def test_metadata_alone(subject: Subject) -> None:
    await subject.config_map("a", x="1")
    page = await subject.client.list_page(subject.selection(metadata_only=True), resource_version="")
    assert [(item.get("kind"), item.get("apiVersion"), "data" in item) for item in page["items"]] == [
        ("PartialObjectMetadata", "meta.k8s.io/v1", False)
    ]


async def test_a_resource_that_is_not_served_is_not_found(subject: Subject) -> None:
    selection = Selection(Resource("nobody.example.com", "v1", "things", "Thing"))
    with refused("not_found"):
        await subject.client.list_page(selection, resource_version="")
    with refused("not_found"):
        async with subject.client.watch(selection, resource_version="0", timeout_seconds=1):
            pass


async def test_discovery_names_what_is_served(subject: Subject) -> None:
    assert "jobs" in await subject.client.discover("batch", "v1")
    assert "pods" in await subject.client.discover("", "v1")
    assert "mpijobs" in await subject.client.discover("kubeflow.org", "v2beta1")
    assert await subject.client.discover("nobody.example.com", "v1") == frozenset()


async def test_a_watch_replays_from_its_version_on(subject: Subject) -> None:
    first = await subject.config_map("a", x="1")
    await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"data": {"x": "2"}})
    await subject.config_map("b")
    await subject.client.delete(CONFIG_MAPS, subject.key("a"), uid=first["metadata"]["uid"])
    events = await subject.events(subject.selection(), 3, since=resource_version_of(first))
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    versions = [int(resource_version_of(event["object"])) for event in events]
    assert versions == sorted(set(versions))
    assert events[2]["object"]["data"] == {"x": "2"}
    assert {event["object"]["kind"] for event in events} == {"ConfigMap"}


async def test_a_watch_goes_on_with_what_happens_later(subject: Subject) -> None:
    page = await subject.client.list_page(subject.selection(), resource_version="")
    version = page["metadata"]["resourceVersion"]
    async with subject.client.watch(subject.selection(), resource_version=version, timeout_seconds=60) as events:
        await subject.config_map("a")
        assert (await anext(events))["object"]["metadata"]["name"] == "a"
        await subject.config_map("b")
        assert (await anext(events))["object"]["metadata"]["name"] == "b"


async def test_to_a_selector_an_object_that_no_longer_matches_is_deleted(subject: Subject) -> None:
    first = await subject.config_map("a", labels={"color": "red"})
    await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"metadata": {"labels": {"color": "blue"}}})
    await subject.client.patch(CONFIG_MAPS, subject.key("a"), {"metadata": {"labels": {"color": "red"}}})
    events = await subject.events(subject.selection(labels="color=red"), 2, since=resource_version_of(first))
    assert [event["type"] for event in events] == ["DELETED", "ADDED"]
    assert events[0]["object"]["metadata"]["labels"] == {"color": "red"}


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_from_nowhere_begins_with_the_objects(subject: Subject, version: str) -> None:
    await subject.config_map("a")
    newest = resource_version_of(await subject.config_map("b"))
    await subject.client.list_page(subject.selection(), resource_version=newest)  # "0" may begin before what this waits for
    events = await subject.events(subject.selection(), 3, since=version)
    found = [(event["type"], event["object"]["metadata"].get("name")) for event in events]
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", None)]


async def test_a_streamed_list_ends_with_its_bookmark(subject: Subject) -> None:
    created = await subject.config_map("a")
    events = await subject.events(subject.selection(), 2, since="", send_initial_events=True)
    assert events[0] == {"type": "ADDED", "object": created}
    assert events[1]["type"] == "BOOKMARK"
    assert events[1]["object"]["kind"] == "ConfigMap"
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(resource_version_of(events[1]["object"])) >= int(resource_version_of(created))


async def test_a_streamed_list_of_metadata(subject: Subject) -> None:
    await subject.config_map("a", x="1")
    events = await subject.events(subject.selection(metadata_only=True), 2, since="", send_initial_events=True)
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}
    assert "data" not in events[0]["object"]


async def test_a_watch_ends_by_itself_when_its_time_is_over(subject: Subject) -> None:
    created = await subject.config_map("a")
    version = resource_version_of(created)
    async with subject.client.watch(subject.selection(), resource_version=version, timeout_seconds=1) as events:
        assert [event async for event in events if event["type"] != "BOOKMARK"] == []
