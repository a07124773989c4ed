"""What a reflector counts and measures: watches that brought nothing, durations, portions of work (R5 to R11, R16, R20, R22)."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest
from structlog.testing import capture_logs

from fakes.following import LISTS, STREAMS, background, follow, following
from fakes.scripted_server import (
    EXPIRED,
    SELECTION,
    Hang,
    ScriptedServer,
    Sleep,
    StreamReply,
    added,
    bookmark,
    error_event,
    initial_end,
    modified,
    page,
    pod,
    refusal,
)
from mpiop.informers.compaction import preparation
from mpiop.informers.pager import Pager
from mpiop.informers.reflector import Reflector, ReflectorSettings
from mpiop.kube.errors import TransportError
from mpiop.kube.objects import Object
from virtual_time import VirtualTimeLoop, turns_until

CUT: StreamReply = [TransportError("reset")]


@pytest.mark.parametrize(
    ("between", "log"),
    [
        pytest.param([[Sleep(400)]], [*["WATCH 10"] * 4], id="a watch that ended as it should"),
        pytest.param(
            [[bookmark(11), TransportError("reset")]], ["WATCH 10", "WATCH 10", "WATCH 11", "WATCH 11"], id="one that brought something"
        ),
        pytest.param([refusal(503)], [*["WATCH 10"] * 3, "LIST 10"], id="one that was refused says nothing"),
        pytest.param([refusal(**EXPIRED)], ["WATCH 10", "WATCH 10", "LIST 10", "WATCH 20", "WATCH 20"], id="a list"),
        pytest.param([], ["WATCH 10", "WATCH 10", "LIST 10"], id="nothing"),
    ],
)
async def test_R22_only_watches_in_a_row_that_brought_nothing_lead_to_a_list(between: list[StreamReply], log: list[str]) -> None:
    server = ScriptedServer(list_replies=[page(version=10), page(version=20)], watch_replies=[CUT, *between, CUT])
    await follow(server, 500)
    assert server.log[: len(log) + 1] == ["LIST 0", *log]


async def portions(seen: Sequence[object]) -> list[int]:
    """Return by how much `seen` grows in each turn of the loop until it grows no more, from its first growth on."""
    await turns_until(lambda: bool(seen))
    sizes = [0, len(seen)]
    while sizes[-1] > sizes[-2]:
        await asyncio.sleep(0)
        sizes.append(len(seen))
    return [later - earlier for earlier, later in pairwise(sizes)][:-1]


async def test_R20_others_run_after_each_fifty_events() -> None:
    events = [modified(pod("a", version)) for version in range(2, 122)]
    server = ScriptedServer(list_replies=[Sleep(1), page(version=1)], watch_replies=[[Sleep(1), *events, Hang()]])
    async with following(server) as followed:
        await asyncio.sleep(1.5)
        followed.outputs.clear()
        await asyncio.sleep(0.5)
        assert await portions(followed.outputs) == [50, 50, 20]


async def test_R20_others_run_after_some_milliseconds_of_a_list() -> None:
    server = ScriptedServer(list_replies=[page(*(pod(f"p{number}", 1) for number in range(8)), version=1)])
    loop = cast("VirtualTimeLoop", asyncio.get_running_loop())
    seen: list[object] = []

    def prepare(obj: Object) -> Object:
        seen.append(obj)
        loop.advance(0.002)
        return obj

    async with background(asyncio.create_task(Pager(server, SELECTION, prepare).read("0", 500))) as reading:
        assert await portions(seen) == [3, 3, 2]
        assert len((await reading).items) == 8


async def test_R17_watch_lists_are_tried_unless_they_are_switched_off() -> None:
    server = ScriptedServer()
    await follow(server, 1, ReflectorSettings())
    assert server.log == ["STREAM "]


async def test_R22_streams_that_brought_nothing_are_counted_anew_after_a_list_that_failed() -> None:
    server = ScriptedServer(list_replies=[TransportError("down")], watch_replies=[CUT, CUT, CUT, [initial_end(10), Hang()]])
    await follow(server, 100, STREAMS)
    assert server.log == ["STREAM ", "STREAM ", "LIST 0", "STREAM ", "STREAM "]


@pytest.mark.parametrize(
    ("between", "log"),
    [
        pytest.param([[Sleep(400)]], [*["WATCH 10"] * 4], id="a watch that ended as it should"),
        pytest.param([refusal(**EXPIRED)], ["WATCH 10", "WATCH 10", "LIST 10", "WATCH 20", "WATCH 20"], id="a list"),
        pytest.param(
            [[Sleep(5), bookmark(11), Sleep(20), TransportError("reset")]],
            ["WATCH 10", "WATCH 10", "WATCH 11", "WATCH 11"],
            id="a watch that was cut",
        ),
    ],
)
async def test_R08_the_window_of_internal_errors_begins_anew_after_what_went_well(between: list[StreamReply], log: list[str]) -> None:
    fault = error_event(500, "InternalError")
    server = ScriptedServer(list_replies=[page(version=10), page(version=20)], watch_replies=[[fault], *between, [Sleep(15), fault]])
    await follow(server, 500)
    assert server.log[: len(log) + 1] == ["LIST 0", *log]


async def test_R08_only_internal_errors_open_their_window() -> None:
    busy, fault = refusal(429, "TooManyRequests", retryAfterSeconds=60), error_event(500, "InternalError")
    server = ScriptedServer(list_replies=[page(version=10)], watch_replies=[busy, [fault]])
    await follow(server, 100)
    assert server.log == ["LIST 0", *["WATCH 10"] * 3]


class Fixed(random.Random):
    """Chance that always reports the same."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def unjittered(server: ScriptedServer, value: float) -> Reflector:
    return Reflector(Pager(server, SELECTION, preparation()), lambda _output: None, replace(LISTS, chance=Fixed(value)))


@pytest.mark.parametrize(("value", "seconds"), [(0.0, 300), (0.999999, 599)])
async def test_R10_a_watch_is_asked_for_from_five_to_ten_minutes(value: float, seconds: int) -> None:
    server = ScriptedServer(list_replies=[page(version=10)])
    async with background(asyncio.create_task(unjittered(server, value).run())):
        await asyncio.sleep(1)
    assert [watch.timeout_seconds for watch in server.watches] == [seconds]


@pytest.mark.parametrize(
    ("watch", "again_at"),
    [
        pytest.param([Sleep(0.9)], 1.7, id="too short: a pause"),
        pytest.param([Sleep(1.0)], 1.0, id="just long enough"),
        pytest.param([Sleep(1.5)], 1.5, id="longer"),
        pytest.param([bookmark(11)], 0.8, id="too short, though it brought something: a pause"),
        pytest.param([bookmark(11), Sleep(1.0)], 1.0, id="just long enough, and it brought something"),
        pytest.param(refusal(503), 0.8, id="refused: a pause"),
        pytest.param(TransportError("connection refused"), 0.8, id="not even an answer: a pause"),
    ],
)
async def test_R06_R09_what_is_followed_by_a_pause_of_what_length(watch: StreamReply, again_at: float) -> None:
    server = ScriptedServer(list_replies=[page(version=10)], watch_replies=[watch])
    async with background(asyncio.create_task(unjittered(server, 0.0).run())):
        await asyncio.sleep(10)
    assert [watch.opened_at for watch in server.watches] == pytest.approx([0.0, again_at])


async def test_R11_after_a_bookmark_a_watch_from_nowhere_is_in_order() -> None:
    server = ScriptedServer(
        list_replies=[page(version="")], watch_replies=[[added(pod("a", 30)), bookmark(40), added(pod("b", 41)), Sleep(2)]]
    )
    followed = await follow(server, 60)
    assert followed.said()[1:] == ["put a", "bookmark 40", "put b 41"]


async def test_R21_lists_watches_events_and_failures_are_measured_and_failures_logged() -> None:
    server = ScriptedServer(
        list_replies=[page(pod("a", 1), pod("b", 2), version=10), page(version=20)],
        watch_replies=[[modified(pod("a", 11)), TransportError("cut")], [bookmark(12), error_event(403)], [ValueError()]],
    )
    with capture_logs() as logs:
        followed = await follow(server, 60)
    measured = followed.measured
    assert (measured.lists, measured.watches, measured.events, len(measured.failures)) == ([2, 0], 3, 4, 3)
    reported = [(line["log_level"], line["ending"], line["error"]) for line in logs if line["event"] == "list or watch broke off"]
    assert [line[:2] for line in reported] == [("info", "SHORT"), ("warning", "FAILED"), ("warning", "FAILED")]
    assert "cut" in reported[0][2]
    assert reported[2][2] == "ValueError()"
