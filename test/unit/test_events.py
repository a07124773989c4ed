"""Events: recorded without waiting, counted, combined, limited, and dropped rather than waited for (T5)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from fakes.api_server import FakeClient
from mpiop.events import EventRecorder
from mpiop.events.correlator import MAX_OBJECTS, MAX_SERIES, Correlator, Occurrence, Regarding
from mpiop.kube.errors import CalledOffError, StatusError, TransportError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import EVENTS, Resource
from virtual_time import VirtualClock

PI: Object = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"namespace": "ns", "name": "pi", "uid": "u-1", "resourceVersion": "7"},
}
NO_ANSWER = TransportError("create Event: no answer")


def other(number: int, namespace: str = "ns") -> Object:
    return {**PI, "metadata": {"namespace": namespace, "name": f"pi-{number}", "uid": f"{namespace}-u-{number}"}}


def status(code: int, reason: str, **details: Any) -> StatusError:
    return StatusError("create Event", {"kind": "Status", "code": code, "reason": reason, "message": reason, "details": details})


class Scene:
    """A recorder at work, and the server it writes to."""

    def __init__(self) -> None:
        self.client = FakeClient(VirtualClock())
        self.outcomes: list[str] = []
        self.has_lost_lease = False
        client = self.client.fenced(self.fencing)
        self.recorder = EventRecorder(client, VirtualClock(), count=self.outcomes.append)
        self.task = asyncio.create_task(self.recorder.run())

    def fencing(self) -> None:
        if self.has_lost_lease:
            raise CalledOffError

    def record(self, message: str = "MPIJob ns/pi is created.", *, obj: Object = PI, reason: str = "MPIJobCreated") -> None:
        self.recorder.record(obj, "Normal", reason, message)

    async def record_and_wait(self, message: str = "MPIJob ns/pi is created.", **what: Any) -> None:
        """Record an event, and wait for a second."""
        self.record(message, **what)
        await asyncio.sleep(1)

    def events(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self.client.server.objects(EVENTS))

    def event(self) -> dict[str, Any]:
        (event,) = self.events()
        return event

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    await scene.end()


async def test_an_event_has_what_describe_shows_and_what_the_reference_writes(scene: Scene) -> None:
    await asyncio.sleep(90)
    scene.record()
    await asyncio.sleep(0.1)
    event = scene.event()
    name = event["metadata"].pop("name")
    assert name.startswith("pi.")
    assert int(name.removeprefix("pi."), 16) > 10**18, "nanoseconds"
    assert event["metadata"]["namespace"] == "ns"
    assert {key: value for key, value in event.items() if key not in {"metadata", "apiVersion", "kind"}} == {
        "involvedObject": {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "namespace": "ns", "name": "pi", "uid": "u-1"},
        "type": "Normal",
        "reason": "MPIJobCreated",
        "message": "MPIJob ns/pi is created.",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:01:30Z",
        "lastTimestamp": "2026-01-01T00:01:30Z",
        "source": {"component": "mpi-job-controller"},
        "reportingComponent": "mpi-job-controller",
    }
    assert scene.outcomes == ["written"]


async def test_T5_record_returns_at_once_whatever_the_server_does(scene: Scene) -> None:
    scene.client.refuse("*", EVENTS, "", NO_ANSWER)
    for number in range(5000):
        scene.record(obj=other(number))
    assert asyncio.get_running_loop().time() == 0
    assert scene.outcomes.count("dropped") == 4000, "the queue is bounded"


async def test_T5_equal_events_are_one_object_with_a_count(scene: Scene) -> None:
    scene.record()
    await asyncio.sleep(60)
    scene.record()
    await asyncio.sleep(60)
    await scene.record_and_wait()
    event = scene.event()
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (3, "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z")
    assert [action.verb for action in scene.client.actions] == ["create", "patch", "patch"]


async def test_T5_equal_events_that_wait_together_are_one_write(scene: Scene) -> None:
    for _ in range(5):
        scene.record()
    await asyncio.sleep(1)
    assert scene.event()["count"] == 5
    assert [action.verb for action in scene.client.actions] == ["create"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"message": "another"}, id="message"),
        pytest.param({"reason": "Another"}, id="reason"),
        pytest.param({"obj": other(2)}, id="object"),
        pytest.param({"obj": {**PI, "metadata": {**PI["metadata"], "uid": "u-2"}}}, id="successor of the same name"),
    ],
)
async def test_events_that_differ_are_different_objects(scene: Scene, change: dict[str, Any]) -> None:
    scene.record()
    await scene.record_and_wait(**change)
    assert [event["count"] for event in scene.events()] == [1, 1]


async def test_T5_similar_events_are_combined_after_the_tenth(scene: Scene) -> None:
    for number in range(15):
        await scene.record_and_wait(f"worker {number} failed")
    events = scene.events()
    assert len(events) == 11
    (combined,) = [event for event in events if "combined" in event["message"]]
    assert combined["message"] == "(combined from similar events): worker 14 failed"
    assert combined["count"] == 5
    await scene.record_and_wait("worker 3 failed")
    assert sorted(event["count"] for event in scene.events()) == [1] * 9 + [2, 5], "one that is known is not combined"


async def test_T5_similar_events_of_long_ago_do_not_count(scene: Scene) -> None:
    for number in range(10):
        scene.record(f"worker {number} failed")
    await asyncio.sleep(601)
    await scene.record_and_wait("worker 10 failed")
    assert not [event for event in scene.events() if "combined" in event["message"]]


async def test_T5_chatter_about_one_object_is_limited_and_others_are_not(scene: Scene) -> None:
    for number in range(40):
        scene.record(reason=f"Reason{number}")
    assert scene.outcomes == ["limited"] * 15
    await scene.record_and_wait(obj=other(2))
    assert len(scene.events()) == 26
    scene.record(reason="StillTooMany")
    await asyncio.sleep(299)
    await scene.record_and_wait(reason="AfterFiveMinutes")
    reasons = [event["reason"] for event in scene.events()]
    assert "StillTooMany" not in reasons
    assert "AfterFiveMinutes" in reasons


@pytest.mark.parametrize(
    "error", [status(503, "ServiceUnavailable"), status(429, "TooManyRequests"), NO_ANSWER], ids=["503", "429", "no answer"]
)
async def test_T5_what_fails_is_tried_three_times_and_dropped(scene: Scene, error: StatusError | TransportError) -> None:
    scene.client.refuse("create", EVENTS, "", error)
    scene.record()
    await asyncio.sleep(60)
    assert [action.verb for action in scene.client.actions] == ["create"] * 3
    assert scene.outcomes == ["dropped"]
    scene.client.server.allow()
    await scene.record_and_wait()
    assert scene.event()["count"] == 1, "what was dropped is not counted"


@pytest.mark.parametrize("error", [status(503, "ServiceUnavailable"), NO_ANSWER], ids=["503", "no answer"])
async def test_T5_a_short_outage_loses_nothing(scene: Scene, error: StatusError | TransportError) -> None:
    scene.client.refuse("create", EVENTS, "", error, times=2)
    scene.record()
    await asyncio.sleep(1.5)
    scene.record()
    await asyncio.sleep(5)
    assert scene.event()["count"] == 2


@pytest.mark.parametrize(("seconds", "waited"), [(4, 4), (900, 10), (0, 0)])
async def test_T5_the_server_says_how_long_to_wait_but_not_for_ever(scene: Scene, seconds: int, waited: int) -> None:
    scene.client.refuse("create", EVENTS, "", status(429, "TooManyRequests", retryAfterSeconds=seconds), times=1)
    scene.record()
    await asyncio.sleep(waited - 0.1)
    assert scene.events() == []
    await asyncio.sleep(0.2)
    assert scene.event()["count"] == 1


@pytest.mark.parametrize("error", [status(403, "Forbidden"), status(422, "Invalid"), status(404, "NotFound")], ids=["403", "422", "404"])
async def test_T5_what_will_never_be_accepted_is_tried_once(scene: Scene, error: StatusError, capsys: pytest.CaptureFixture[str]) -> None:
    scene.client.refuse("create", EVENTS, "", error)
    scene.record()
    await asyncio.sleep(60)
    assert len(scene.client.actions) == 1
    assert scene.outcomes == ["dropped"]
    assert "event dropped" in capsys.readouterr().out


async def test_F61_in_a_namespace_that_ends_events_are_dropped_without_a_word(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.client.server.terminate_namespace("ns")
    scene.record()
    await asyncio.sleep(60)
    assert scene.outcomes == ["dropped"]
    assert capsys.readouterr().out == ""


async def test_an_event_whose_answer_was_lost_is_not_doubled(scene: Scene) -> None:
    scene.client.refuse("create", EVENTS, "", NO_ANSWER, times=1, takes_effect=True)
    scene.record()
    await asyncio.sleep(60)
    assert scene.event()["count"] == 1
    assert scene.outcomes == ["written"]


async def test_an_event_that_has_expired_is_made_anew(scene: Scene) -> None:
    await scene.record_and_wait()
    first = scene.event()["metadata"]["name"]
    for event in scene.events():
        scene.client.server.remove(EVENTS, Key("ns", event["metadata"]["name"]))
    await asyncio.sleep(4000)
    await scene.record_and_wait()
    event = scene.event()
    assert event["metadata"]["name"] != first
    assert (event["count"], event["firstTimestamp"]) == (2, "2026-01-01T00:00:00Z")


async def test_what_occurs_while_it_is_written_is_written_again(scene: Scene) -> None:
    scene.client.refuse("create", EVENTS, "", NO_ANSWER, times=1, takes_effect=True)
    scene.record()
    await asyncio.sleep(0.5)  # stored with count 1; the next attempt will learn that
    scene.record()
    await asyncio.sleep(60)
    assert scene.event()["count"] == 2


async def test_T5_a_slow_server_gets_events_of_many_objects_at_a_time(scene: Scene) -> None:
    scene.recorder._client = SlowClient(scene.client)
    for reason in ("MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"):
        for number in range(8):
            scene.record(obj=other(number), reason=reason)
    await asyncio.sleep(1.5)
    assert {event["reason"] for event in scene.events()} == {"MPIJobCreated"}
    await asyncio.sleep(2)
    assert len(scene.events()) == 24, "one after the other they would take 24 s"


async def test_T5_a_namespace_in_which_writes_take_long_does_not_hold_up_events_of_others(scene: Scene) -> None:
    scene.recorder._client = client = SlowClient(scene.client, 9)
    for number in range(1100):
        scene.record(obj=other(number))
    await asyncio.sleep(1)
    client.seconds = 0.01
    for number in range(20):
        scene.record(obj=other(number, "good"))
    await asyncio.sleep(1)
    assert len(scene.events()) == 20, "the queue was full of those of the other namespace"
    assert {event["metadata"]["namespace"] for event in scene.events()} == {"good"}
    assert scene.outcomes.count("dropped") == 120


async def test_T5_idle_writers_notice_that_an_event_of_another_namespace_may_begin(scene: Scene) -> None:
    scene.recorder._client = client = SlowClient(scene.client, 9)
    for number in range(7):
        scene.record(obj=other(number))
    await asyncio.sleep(0.1)
    client.seconds = 0.1
    scene.record(obj=other(0, "good"))
    await asyncio.sleep(0.05)
    client.seconds = 9
    for number in range(7, 60):
        scene.record(obj=other(number))
    await asyncio.sleep(0)
    client.seconds = 0.1
    for number in range(1, 4):
        scene.record(obj=other(number, "good"))
    await asyncio.sleep(2)
    assert [event["metadata"]["namespace"] for event in scene.events()].count("good") == 4


async def test_at_the_end_slow_writes_of_a_namespace_do_not_hold_up_those_of_others(scene: Scene) -> None:
    scene.recorder._client = client = SlowClient(scene.client, 1000)
    for number in range(20):
        scene.record(obj=other(number))
    await asyncio.sleep(1)
    client.seconds = 0.1
    scene.task.cancel()
    scene.record(obj=other(0, "good"))
    await asyncio.wait({scene.task})
    assert "good" in {event["metadata"]["namespace"] for event in scene.events()}


async def test_T5_one_write_without_an_answer_does_not_hold_up_the_others(scene: Scene) -> None:
    scene.recorder._client = client = SlowClient(scene.client, 1000)
    await scene.record_and_wait()
    client.seconds = 1
    scene.record(obj=other(2))
    await asyncio.sleep(1.5)
    assert [event["involvedObject"]["name"] for event in scene.events()] == ["pi-2"]


async def test_T5_what_happened_later_to_an_object_is_sent_later(scene: Scene) -> None:
    scene.recorder._client = client = SlowClient(scene.client, 5)
    await scene.record_and_wait()
    client.seconds = 0.1
    scene.record(reason="MPIJobRunning")
    await asyncio.sleep(10)
    assert [action.body["reason"] for action in scene.client.actions if action.body] == ["MPIJobCreated", "MPIJobRunning"]


async def test_a_long_message_is_cut_between_characters(scene: Scene) -> None:
    await scene.record_and_wait("é" * 1000)
    message = scene.event()["message"]
    assert message == "é" * 510 + "..."
    assert len(message.encode()) <= 1024


async def test_names_of_events_differ_even_in_the_same_instant_and_are_never_too_long(scene: Scene) -> None:
    long_one: Object = {**PI, "metadata": {"namespace": "ns", "name": "a" * 236 + "." + "b" * 16, "uid": "u-9"}}
    for number in range(20):
        scene.record(obj=long_one, reason=f"Reason{number}")
    await asyncio.sleep(1)
    names = {event["metadata"]["name"] for event in scene.events()}
    assert len(names) == 20
    assert max(map(len, names)) <= 253
    assert all(name.startswith("a" * 236 + ".1") for name in names), "no dot before the dot"


async def test_an_event_about_an_object_of_the_whole_cluster_goes_to_the_default_namespace(scene: Scene) -> None:
    node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-3"}}
    await scene.record_and_wait(obj=node)
    assert scene.event()["metadata"]["namespace"] == "default"


async def test_at_the_end_what_waits_is_written(scene: Scene) -> None:
    for number in range(10):
        scene.record(obj=other(number))
    await scene.end()
    assert len(scene.events()) == 10
    assert scene.task.cancelled()


async def test_at_the_end_an_event_that_was_being_tried_is_not_doubled(scene: Scene) -> None:
    scene.client.refuse("create", EVENTS, "", NO_ANSWER, times=1, takes_effect=True)
    scene.record()
    await asyncio.sleep(0.5)
    await scene.end()
    assert scene.event()["count"] == 1


async def test_at_the_end_nobody_waits_for_a_server_that_is_gone(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.recorder._client = SlowClient(scene.client, 1000)
    scene.record()
    await scene.record_and_wait(obj=other(2))
    await scene.end()
    assert asyncio.get_running_loop().time() == pytest.approx(1 + 2)
    assert "events lost at the end" in capsys.readouterr().out


async def test_at_the_end_an_unexpected_error_of_one_write_ends_the_others(scene: Scene) -> None:
    scene.recorder._client = FaultyClient(scene.client)
    scene.record()
    scene.record(obj=other(2))
    await scene.end()
    assert scene.task.exception() is not None
    await asyncio.sleep(60)
    assert scene.events() == []


async def test_F40_whoever_has_lost_its_lease_writes_no_event_any_more(scene: Scene) -> None:
    scene.client.refuse("create", EVENTS, "", NO_ANSWER, times=2)
    scene.record()
    scene.record(obj=other(2))
    await asyncio.sleep(0.5)  # the first tries have failed
    scene.has_lost_lease = True
    await asyncio.sleep(60)
    await scene.end()
    assert len(scene.client.actions) == 2
    assert scene.outcomes == ["dropped", "dropped"]


@dataclass
class SlowClient:
    """A client over another that takes some seconds for each event."""

    client: FakeClient
    seconds: float = 1.0

    async def create(self, resource: Resource, body: Object, *, metadata_only: bool) -> Object:
        await asyncio.sleep(self.seconds)
        return await self.client.create(resource, body, metadata_only=metadata_only)

    async def patch(self, resource: Resource, key: Key, body: Mapping[str, Any]) -> Object:
        await asyncio.sleep(self.seconds)
        return await self.client.patch(resource, key, body)


class FaultyClient(SlowClient):
    """A slow client with a defect: it cannot write events about `PI`."""

    async def create(self, resource: Resource, body: Object, *, metadata_only: bool) -> Object:
        if cast("dict[str, Any]", body)["involvedObject"]["uid"] == PI["metadata"]["uid"]:
            await asyncio.sleep(self.seconds / 2)
            raise ValueError("a defect")
        return await super().create(resource, body, metadata_only=metadata_only)


def occurrence(name: str, message: str) -> Occurrence:
    return Occurrence(Regarding("v1", "Pod", "ns", name, f"uid of {name}"), "Normal", "Reason", message)


async def test_memory_is_bounded() -> None:
    clock = VirtualClock()
    correlator = Correlator(clock)
    for number in range(MAX_OBJECTS + 100):
        correlator.note(occurrence(f"p-{number}", "message"))
    assert len(correlator._subjects) == MAX_OBJECTS
    for number in range(2 * MAX_SERIES):
        await asyncio.sleep(3600)
        correlator.note(occurrence("a", f"message {number}"))
    assert len(correlator._subjects[occurrence("a", "").regarding].series) == MAX_SERIES


async def test_what_is_gone_is_forgotten_but_what_waits_to_be_written_is_written(scene: Scene) -> None:
    scene.record()
    scene.recorder.forget(PI)
    await asyncio.sleep(1)
    assert scene.event()["count"] == 1
    assert not scene.recorder._correlator._subjects
