"""Invariants R1 to R16 and R20 to R22: a reflector that lists, then watches."""

import asyncio
import random
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest

from fakes.following import LISTS, background, follow, following
from fakes.scripted_server import (
    EXPIRED,
    SELECTION,
    Hang,
    ListReply,
    ScriptedServer,
    Sleep,
    StreamItem,
    StreamReply,
    added,
    bookmark,
    deleted,
    error_event,
    event,
    modified,
    page,
    pod,
    refusal,
    unreadable,
)
from mpiop.informers.backoff import ReflectorBackoff
from mpiop.informers.compaction import preparation
from mpiop.informers.pager import Pager
from mpiop.informers.reflector import Output, Reflector
from mpiop.informers.watching import Apply
from mpiop.kube.errors import KubeError, StatusError, TooLargeError, TransportError
from mpiop.kube.objects import ObjectList, Unreadable
from virtual_time import run_ready_tasks

TOO_LARGE = [
    refusal(504, "Timeout", "not yet", causes=[{"reason": "ResourceVersionTooLarge"}]),
    refusal(504, "Timeout", "retry", causes=[{"message": "Too large resource version"}]),
    refusal(500, "InternalError", "Too large resource version: 10, current: 5"),
]
REFUSED = TransportError("watch pods: connection refused")


def server_of(lists: list[ListReply], watches: list[StreamReply] | None = None) -> ScriptedServer:
    return ScriptedServer(list_replies=lists, watch_replies=watches or [])


async def test_R01_first_list_is_at_0_and_relists_are_at_the_last_version_seen() -> None:
    server = server_of(
        [page(pod("a", 5), version=10), page(version=30)],
        [[modified(pod("a", 20)), error_event(403, "Forbidden")]],
    )
    followed = await follow(server, 60)
    assert server.log == ["LIST 0", "WATCH 10", "LIST 20", "WATCH 30"]
    assert followed.said() == ["replace a 10", "put a 20", "replace  30"]


async def test_R02_expired_list_is_repeated_at_once_at_the_newest_version_and_the_flag_clears() -> None:
    server = server_of(
        [page(version=10), refusal(**EXPIRED), page(version=10), page(version=11)],
        [[error_event(403)], [error_event(403)]],
    )
    await follow(server, 60)
    assert [asked.resource_version for asked in server.lists] == ["0", "10", "", "10"]
    assert server.lists[1].asked_at == server.lists[2].asked_at


async def test_R02_when_the_list_at_the_newest_version_fails_too_it_is_repeated_there_after_a_pause() -> None:
    server = server_of([page(version=10), refusal(**EXPIRED), refusal(**EXPIRED), page(version=4)], [[error_event(403)]])
    followed = await follow(server, 60)
    assert [asked.resource_version for asked in server.lists] == ["0", "10", "", ""]
    assert server.lists[3].asked_at > server.lists[2].asked_at
    assert followed.reflector.resource_version == "4"  # etcd was restored to an older state, and we follow


@pytest.mark.parametrize("error", TOO_LARGE, ids=["cause", "message of a cause", "message"])
async def test_R03_too_large_version_is_repeated_at_once_at_the_newest_version(error: StatusError) -> None:
    server = server_of([page(version=10), error, page(version=5)], [[error_event(403)]])
    followed = await follow(server, 60)
    assert server.log == ["LIST 0", "WATCH 10", "LIST 10", "LIST ", "WATCH 5"]
    assert followed.said()[-1] == "replace  5"


@pytest.mark.parametrize(
    "watch", [[error_event(410, "Expired")], [error_event(410, "Gone")], refusal(**EXPIRED)], ids=["Expired", "Gone", "HTTP"]
)
async def test_R04_expired_watch_relists_once_at_last_version(watch: StreamReply) -> None:
    last: StreamReply = [Sleep(2), modified(pod("a", 15)), bookmark(20)]
    server = server_of([page(pod("a", 5), pod("b", 6), version=10), page(pod("a", 15), version=25)], [last, watch])
    followed = await follow(server, 60)
    assert server.log == ["LIST 0", "WATCH 10", "WATCH 20", "LIST 20", "WATCH 25"]
    assert followed.said() == ["replace a,b 10", "put a 15", "bookmark 20", "replace a 25"]
    assert all(asked.closed_at is not None for asked in server.watches if asked.accepted)


async def test_R05_normal_end_of_a_watch_is_followed_by_a_watch_and_no_list() -> None:
    server = server_of([page(version=10)], [[Sleep(400)], [Sleep(30), modified(pod("a", 15)), Sleep(300)], [Sleep(400)]])
    followed = await follow(server, 1200)
    assert server.log == ["LIST 0", "WATCH 10", "WATCH 10", "WATCH 15", "WATCH 15"]
    assert [watch.opened_at for watch in server.watches] == [0, 400, 730, 1130]
    assert followed.measured.failures == []


async def test_R05_a_stream_cut_after_an_event_is_followed_by_a_watch_from_there_at_once() -> None:
    server = server_of(
        [page(version=10)],
        [[Sleep(2), modified(pod("a", 15)), TransportError("reset")], [Sleep(2), modified(pod("a", 16)), TransportError("reset")]],
    )
    async with following(server) as followed:
        await asyncio.sleep(4)
        await run_ready_tasks()
        assert server.log == ["LIST 0", "WATCH 10", "WATCH 15", "WATCH 16"]
    assert len(followed.measured.failures) == 2


@pytest.mark.parametrize("end", [[], [TransportError("reset")]], ids=["ended", "cut"])
async def test_R05_R06_watches_that_all_end_right_after_an_event_are_a_second_apart_and_need_no_list(end: list[StreamItem]) -> None:
    server = server_of([page(version=10)], [[modified(pod("a", version)), *end] for version in range(11, 51)])
    followed = await follow(server, 70)
    gaps = [later.opened_at - earlier.opened_at for earlier, later in pairwise(server.watches)]
    assert len(gaps) == 40
    assert all(0.8 <= gap <= 1.6 for gap in gaps)
    assert server.log == ["LIST 0", *(f"WATCH {version}" for version in range(10, 51))]
    assert followed.said()[-1] == "put a 50"


async def test_R06_a_watch_that_ends_at_once_with_nothing_goes_through_the_backoff() -> None:
    server = server_of([page(version=10), page(version=11)], [[], [], [], [], [], []])
    await follow(server, 10)
    assert server.log[:4] == ["LIST 0", "WATCH 10", "WATCH 10", "LIST 10"]
    gaps = [later.opened_at - earlier.opened_at for earlier, later in pairwise(server.watches)]
    assert all(gap >= 0.8 for gap in gaps)
    assert len(server.log) < 12


@pytest.mark.parametrize(
    "failure",
    [
        REFUSED,
        refusal(429, "TooManyRequests"),
        refusal(502),
        refusal(503, "ServiceUnavailable"),
        refusal(504, "Timeout"),
        [Sleep(2), error_event(429, "TooManyRequests")],
    ],
    ids=["connection refused", "429 at the start", "502 at the start", "503 at the start", "504 at the start", "429 event"],
)
async def test_R07_refused_connection_and_429_are_followed_by_watches_without_a_list(failure: StreamReply) -> None:
    server = server_of([page(version=10)], [failure] * 4)
    followed = await follow(server, 200)
    assert server.log == ["LIST 0", *["WATCH 10"] * 5]
    pauses = [later.opened_at - (earlier.closed_at or earlier.opened_at) for earlier, later in pairwise(server.watches)]
    assert all(0.8 * 2**turn <= pause < 1.6 * 2**turn for turn, pause in enumerate(pauses))
    assert len(followed.measured.failures) == 4


@pytest.mark.parametrize(("asked", "pause"), [(42, 42), (86400, 60)])
async def test_R07_the_pause_is_as_long_as_the_server_asks_but_not_without_end(asked: int, pause: float) -> None:
    server = server_of([page(version=10)], [refusal(429, "TooManyRequests", retryAfterSeconds=asked)])
    await follow(server, 90)
    assert [watch.opened_at for watch in server.watches] == [0, pause]


async def test_R08_internal_errors_are_followed_by_watches_within_their_window_and_then_by_a_list() -> None:
    server = server_of([page(version=10), page(version=11)], [[error_event(500, "InternalError")]] * 5)
    await follow(server, 60, replace(LISTS, internal_error_seconds=6.0))
    assert server.log[0] == "LIST 0"
    relisted = server.log.index("LIST 10")
    assert relisted >= 3
    opened = [watch.opened_at for watch in server.watches]
    assert opened[relisted - 3] < 6.0 <= opened[relisted - 2]


async def test_R08_without_a_window_an_internal_error_is_followed_by_a_list() -> None:
    server = server_of([page(version=10), page(version=11)], [[error_event(500, "InternalError")]])
    await follow(server, 60, replace(LISTS, internal_error_seconds=0.0))
    assert server.log == ["LIST 0", "WATCH 10", "LIST 10", "WATCH 11"]


async def test_R08_a_status_without_code_and_reason_counts_as_internal_error() -> None:
    server = server_of([page(version=10)], [[event("ERROR", {"kind": "Status"})], [event("ERROR", None)]])
    followed = await follow(server, 60)
    assert server.log == ["LIST 0", "WATCH 10", "WATCH 10", "WATCH 10"]
    assert len(followed.measured.failures) == 2


@pytest.mark.parametrize("seed", range(20))
def test_R09_backoff_doubles_from_800_ms_to_30_s_with_jitter_and_resets_after_two_healthy_minutes(seed: int) -> None:
    backoff = ReflectorBackoff(random.Random(seed))  # noqa: S311 - chance, not secrets
    now = 1000.0
    for base in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0):
        delay = backoff.delay(now)
        assert base <= delay < 2 * base
        now += delay + 119.0  # not quite healthy
    assert 0.8 <= backoff.delay(now + 1.1) < 1.6


def test_R09_jitter_spreads_clients() -> None:
    first = {ReflectorBackoff(random.Random(seed)).delay(0.0) for seed in range(50)}  # noqa: S311 - chance, not secrets
    assert len(first) == 50
    assert max(first) - min(first) > 0.5


async def test_R09_each_turn_of_the_loop_is_paused() -> None:
    server = server_of([*[TransportError("down")] * 4, page(version=1)])
    await follow(server, 120)
    asked = [listed.asked_at for listed in server.lists]
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert len(pauses) == 4
    assert all(0.8 * 2**turn <= pause < 1.6 * 2**turn for turn, pause in enumerate(pauses))


async def test_R09_after_a_restart_of_the_server_the_relist_does_not_wait_as_long_as_the_server_was_away() -> None:
    server = server_of(
        [page(version=10), page(version=20), page(version=30)],
        [*[REFUSED] * 6, refusal(**EXPIRED), [Sleep(2), error_event(410, "Expired")]],
    )
    await follow(server, 400)
    assert [asked.resource_version for asked in server.lists] == ["0", "10", "20"]
    restarted_at = server.watches[6].opened_at
    assert restarted_at > 50
    assert 0.8 <= server.lists[1].asked_at - restarted_at < 1.6
    again = server.watches[7].closed_at
    assert again is not None
    assert 1.6 <= server.lists[2].asked_at - again < 3.2  # forgiven once, not for ever


async def test_R10_a_server_that_does_not_end_the_watch_in_time_is_left_and_watched_again() -> None:
    server = server_of([page(version=10)], [[bookmark(11), Hang()]])
    followed = await follow(server, 700)
    assert server.log == ["LIST 0", "WATCH 10", "WATCH 11"]
    assert server.watches[0].closed_at == server.watches[0].timeout_seconds + 30
    assert followed.measured.failures == []


async def test_R11_each_kind_of_event_advances_the_version() -> None:
    events: list[StreamItem] = [added(pod("a", 11)), modified(pod("a", 12)), deleted(pod("a", 13)), bookmark(14)]
    server = server_of([page(version=10)], [[item, Sleep(2)] for item in events])
    followed = await follow(server, 60)
    assert [watch.resource_version for watch in server.watches] == ["10", "11", "12", "13", "14"]
    assert followed.said()[1:] == ["put a 11", "put a 12", "delete a 13", "bookmark 14"]


@pytest.mark.parametrize("start", ["", "0"])
async def test_R11_a_watch_from_nowhere_advances_only_from_the_first_event_that_is_no_add(start: str) -> None:
    server = server_of(
        [page(version=start)],
        [[added(pod("a", 30)), added(pod("b", 20)), Sleep(2)], [added(pod("c", 8)), modified(pod("a", 31)), added(pod("d", 32))]],
    )
    followed = await follow(server, 60)
    assert server.log == ["LIST 0", f"WATCH {start}", f"WATCH {start}", "WATCH 32"]
    assert followed.said()[1:] == ["put a", "put b", "put c", "put a 31", "put d 32"]


MALFORMED = {
    "another kind": added({**pod("x", 11), "kind": "Job"}),
    "a Table": added({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "11"}, "rows": []}),
    "no metadata": added({"kind": "Pod"}),
    "metadata is null": modified({"kind": "Pod", "metadata": None}),
    "no name": deleted({"kind": "Pod", "metadata": {"resourceVersion": "11"}}),
    "no object": added(None),
    "a string": added("pod"),
    "unknown type": event("EXPLODED", pod("x", 11)),
    "type missing": cast("StreamItem", {"object": pod("x", 11)}),
    "bookmark without version": event("BOOKMARK", {"kind": "Pod", "metadata": {}}),
}


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
async def test_R13_a_malformed_event_is_skipped_and_the_next_one_delivered(malformed: StreamItem) -> None:
    server = server_of([page(version=10)], [[malformed, modified(pod("a", 12)), Hang()]])
    async with following(server) as followed:
        await asyncio.sleep(1)
        assert followed.reflector.resource_version == "12"
    assert followed.said() == ["replace  10", "put a 12"]
    assert server.log == ["LIST 0", "WATCH 10"]


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "Table", "metadata": {"resourceVersion": "1"}, "items": [], "rows": []},
        {"kind": "PodList", "metadata": {}},
        {"kind": "PodList", "items": []},
    ],
    ids=["Table", "no items", "no metadata"],
)
async def test_R13_a_list_that_is_none_is_an_error(answer: ObjectList) -> None:
    server = server_of([answer, page(pod("a", 1), version=2)])
    followed = await follow(server, 10)
    assert followed.said() == ["replace a 2"]
    assert "is not a list of objects" in str(followed.measured.failures[0])


async def test_R13_an_item_without_a_name_is_left_out_of_a_list() -> None:
    server = server_of([page(pod("a", 1), cast("ObjectList", {"metadata": {}}), pod("b", 2), version=3)])  # type: ignore[arg-type] # malformed by intent
    followed = await follow(server, 1)
    assert followed.said() == ["replace a,b 3"]


async def test_R13_an_object_that_cannot_be_decoded_is_passed_on_with_its_version() -> None:
    server = server_of([page(pod("a", 1), unreadable("b", 2), version=10)], [[modified(unreadable("a", 11)), deleted(unreadable("b", 12))]])
    followed = await follow(server, 3)
    assert followed.said() == ["replace a,b? 10", "put a? 11", "delete b? 12"]
    assert server.log[:3] == ["LIST 0", "WATCH 10", "WATCH 12"]


async def test_R13_what_has_not_even_a_name_is_skipped() -> None:
    nameless = Unreadable({"metadata": {"resourceVersion": "11"}}, "no UTF-8")
    server = server_of([page(nameless, pod("a", 1), version=10)], [[modified(nameless), modified(pod("a", 12))]])
    followed = await follow(server, 3)
    assert followed.said() == ["replace a 10", "put a 12"]


@pytest.mark.parametrize("error", [TransportError("body cut"), StatusError("list", {"code": 500})], ids=["cut", "refused"])
async def test_R14_a_relist_is_all_or_nothing(error: KubeError) -> None:
    server = server_of(
        [
            page(pod("a", 1), version=10),
            page(pod("a", 1), version=20, token="t"),
            error,
            page(pod("b", 21), version=22),
        ],
        [[error_event(410, "Expired")]],
    )
    followed = await follow(server, 60, replace(LISTS, page_limit=1))
    assert followed.said() == ["replace a 10", "replace b 22"]
    assert server.log == ["LIST 0", "WATCH 10", "LIST 10", "PAGE t", "LIST 10", "WATCH 22"]


async def test_R15_pages_hold_500_and_a_continuation_names_no_version() -> None:
    server = server_of([
        page(pod("a", 1), version=10, token="t1"),
        page(pod("b", 2), version=10, token="t2"),
        page(pod("c", 3), version=10),
    ])
    followed = await follow(server, 1)
    assert [(asked.limit, asked.resource_version, asked.continue_token) for asked in server.lists] == [
        (500, "0", ""),
        (500, "", "t1"),
        (500, "", "t2"),
    ]
    assert followed.said() == ["replace a,b,c 10"]


async def test_R15_a_continuation_that_expired_is_followed_by_a_full_list_at_the_first_version() -> None:
    server = server_of([page(pod("a", 1), version=10, token="t1"), refusal(**EXPIRED), page(pod("b", 2), pod("c", 3), version=12)])
    followed = await follow(server, 1)
    assert server.log == ["LIST 0", "PAGE t1", "LIST 0", "WATCH 12"]
    assert [asked.limit for asked in server.lists] == [500, 500, 0]
    assert followed.said() == ["replace b,c 12"]


TOO_MANY_BYTES = TooLargeError("list pods: the answer has too many bytes")


async def test_R15_a_list_of_too_many_bytes_is_read_in_smaller_pages_of_the_newest_version() -> None:
    pages: list[ListReply] = [page(pod(f"p{number}", 1), version=10, token=f"t{number}") for number in range(6)]
    server = server_of([TOO_MANY_BYTES, *pages, page(version=10)])
    followed = await follow(server, 1)
    assert server.log == ["LIST 0", "LIST ", *(f"PAGE t{number}" for number in range(6)), "WATCH 10"]
    assert [asked.limit for asked in server.lists] == [500, 50, 100, 200, 400, 500, 500, 500]
    assert followed.said() == ["replace p0,p1,p2,p3,p4,p5 10"]


async def test_R15_a_page_of_too_many_bytes_is_read_again_with_a_smaller_limit_down_to_one() -> None:
    first = page(pod("a", 1), version=10, token="t")
    server = server_of([first, *[TOO_MANY_BYTES] * 3, page(pod("b", 1), version=10, token="u"), page(version=10)])
    followed = await follow(server, 1)
    assert server.log == ["LIST 0", *["PAGE t"] * 4, "PAGE u", "WATCH 10"]
    assert [asked.limit for asked in server.lists] == [500, 500, 50, 5, 1, 2]
    assert followed.said() == ["replace a,b 10"]


@pytest.mark.parametrize(
    ("lists", "error", "log"),
    [
        pytest.param([refusal(**EXPIRED)], "410", ["LIST 7"], id="a first page that expired"),
        pytest.param([page(version=10, token="t"), refusal(500)], "500", ["LIST 7", "PAGE t"], id="another error of a later page"),
        pytest.param([TOO_MANY_BYTES] * 5, "too many bytes", ["LIST 7", *["LIST "] * 3], id="one object of too many bytes"),
        pytest.param(
            [page(version=10, token="t"), refusal(**EXPIRED), TOO_MANY_BYTES, page(version=11, token="u"), refusal(**EXPIRED)],
            "410",
            ["LIST 7", "PAGE t", "LIST 7", "LIST ", "PAGE u"],
            id="too large in one piece, and expired in pages",
        ),
    ],
)
async def test_R15_what_pages_do_not_help_against_is_an_error_upward(lists: list[ListReply], error: str, log: list[str]) -> None:
    server = server_of(lists)
    with pytest.raises(KubeError, match=error):
        await Pager(server, SELECTION, preparation()).read("7", 500)
    assert server.log == log


@pytest.mark.parametrize(
    ("lists", "asked"),
    [
        pytest.param([page(version=10), page(version=11)], [("0", 500), ("10", 0)], id="at a known version"),
        pytest.param(
            [page(version=10, token="t"), page(version=10), page(version=11)],
            [("0", 500), ("", 500), ("10", 500)],
            id="the list at 0 came in pages",
        ),
        pytest.param(
            [page(version=10, token="t"), refusal(**EXPIRED), page(version=12), page(version=13)],
            [("0", 500), ("", 500), ("0", 0), ("12", 500)],
            id="it came in pages, of which one expired",
        ),
    ],
)
async def test_R16_no_limit_at_a_known_version_unless_the_server_has_shown_that_it_pages(
    lists: list[ListReply], asked: list[tuple[str, int]]
) -> None:
    server = server_of(lists, [[error_event(410, "Expired")]])
    await follow(server, 60)
    assert [(listed.resource_version, listed.limit) for listed in server.lists] == asked


STOPS: dict[str, tuple[ScriptedServer, float, int]] = {
    "before the list": (server_of([]), 0.0, 0),
    "during the list": (server_of([Sleep(30), page(version=1)]), 10.0, 0),
    "between pages": (server_of([page(version=1, token="t"), Sleep(30), page(version=1)]), 10.0, 0),
    "in the backoff": (server_of([TransportError("down"), page(version=1)]), 0.5, 0),
    "between events": (server_of([page(version=1)], [[added(pod("a", 2)), Sleep(30), added(pod("b", 3))]]), 10.0, 2),
    "in the backoff of a watch": (server_of([page(version=1)], [REFUSED, [added(pod("a", 2))]]), 0.5, 1),
}


@pytest.mark.parametrize("server, seconds, outputs", STOPS.values(), ids=STOPS.keys())  # noqa: PT006 - one string reads like the signature
async def test_R20_a_stop_returns_promptly_closes_the_stream_and_nothing_is_delivered_after(
    server: ScriptedServer, seconds: float, outputs: int
) -> None:
    async with following(server) as followed:
        await asyncio.sleep(seconds)
        stopped_at = asyncio.get_running_loop().time()
        followed.task.cancel()
        await asyncio.wait([followed.task])
        assert asyncio.get_running_loop().time() == stopped_at
        assert followed.task.cancelled()
        await asyncio.sleep(3600)
    assert len(followed.outputs) == outputs
    opened = [watch for watch in server.watches if watch.accepted]
    assert all(watch.closed_at == stopped_at for watch in opened)


async def test_R21_nothing_ends_the_loop_and_every_failure_is_reported() -> None:
    failures: list[ListReply] = [
        refusal(401, "Unauthorized"),
        refusal(403, "Forbidden"),
        refusal(404, "NotFound"),
        refusal(500),
        TransportError("html from a proxy"),
        ValueError("a defect of ours"),
    ]
    server = server_of([*failures, page(version=10), page(version=11), page(version=12)], [[refusal(403)], [KeyError("another defect")]])
    async with following(server) as followed:
        await asyncio.sleep(400)
        assert not followed.task.done()
    assert [type(error) for error in followed.measured.failures] == [StatusError] * 4 + [TransportError, ValueError, StatusError, KeyError]
    assert server.log == [*["LIST 0"] * 7, "WATCH 10", "LIST 10", "WATCH 11", "LIST 11", "WATCH 12"]


async def test_R21_a_sink_that_fails_is_reported_and_the_list_repeated() -> None:
    server = server_of([page(version=10), page(version=11), page(version=12)], [[modified(pod("bad", 15))]])
    taken: list[Output] = []

    def sink(output: Output) -> None:
        if isinstance(output, Apply):
            raise RuntimeError("cannot take it")  # noqa: TRY004 - represents any defect
        taken.append(output)

    reflector = Reflector(Pager(server, SELECTION, preparation()), sink, LISTS)
    async with background(asyncio.create_task(reflector.run())):
        await asyncio.sleep(30)
    assert server.log == ["LIST 0", "WATCH 10", "LIST 10", "WATCH 11"]
    assert len(taken) == 2


async def test_R22_two_streams_that_never_said_anything_are_followed_by_a_list() -> None:
    """Detects that etcd was restored from a backup: a watch from a version that is yet to come is idle, a list from it is refused."""
    idle = TransportError("watch pods: no byte for 150 s")
    server = server_of([page(version=10), TOO_LARGE[0], page(version=4)], [[Sleep(150), idle], [Sleep(150), idle]])
    followed = await follow(server, 400)
    assert server.log == ["LIST 0", "WATCH 10", "WATCH 10", "LIST 10", "LIST ", "WATCH 4"]
    assert followed.reflector.resource_version == "4"
