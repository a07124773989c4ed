"""Invariants R17 to R19: a reflector that streams its first list over a watch."""

import asyncio

import pytest

from fakes.following import STREAMS, follow, following
from fakes.scripted_server import (
    EXPIRED,
    Hang,
    ListReply,
    ScriptedServer,
    Sleep,
    StreamReply,
    added,
    bookmark,
    deleted,
    error_event,
    initial_end,
    modified,
    page,
    pod,
    refusal,
    unreadable,
)
from mpiop.kube.errors import TransportError


def server_of(watches: list[StreamReply], lists: list[ListReply] | None = None) -> ScriptedServer:
    return ScriptedServer(list_replies=lists or [], watch_replies=watches)


async def test_R17_nothing_is_delivered_before_the_bookmark_then_one_replace_and_the_stream_goes_on() -> None:
    stream: StreamReply = [
        added(pod("a", 5)),
        added(pod("b", 6)),
        Sleep(5),
        modified(pod("a", 11)),
        deleted(pod("b", 12)),
        added(unreadable("d", 7)),
        added(unreadable("e", 8)),
        deleted(unreadable("e", 12)),
        initial_end(12),
        Sleep(5),
        added(pod("c", 13)),
        bookmark(20),
        Hang(),
    ]
    server = server_of([stream])
    async with following(server, STREAMS) as followed:
        await asyncio.sleep(4)
        assert followed.said() == []
        assert followed.reflector.resource_version == ""
        await asyncio.sleep(2)
        assert followed.said() == ["replace a,d? 12"]
        await asyncio.sleep(10)
    assert followed.said() == ["replace a,d? 12", "put c 13", "bookmark 20"]
    assert server.log == ["STREAM "]
    assert server.watches[0].send_initial_events


@pytest.mark.parametrize("value", ["false", "", "TRUE", "1"])
async def test_R17_only_the_exact_value_true_ends_the_initial_events(value: str) -> None:
    server = server_of([[added(pod("a", 5)), bookmark(8), initial_end(9, value), Sleep(5), initial_end(10), Hang()]])
    async with following(server, STREAMS) as followed:
        await asyncio.sleep(4)
        assert followed.said() == []
        await asyncio.sleep(4)
    assert followed.said() == ["replace a 10"]


async def test_R17_the_end_mark_of_a_later_bookmark_is_an_ordinary_bookmark() -> None:
    server = server_of([[initial_end(10), initial_end(20), Hang()]])
    followed = await follow(server, 1, STREAMS)
    assert followed.said() == ["replace  10", "bookmark 20"]


@pytest.mark.parametrize(
    "cut",
    [
        [added(pod("gone", 5)), TransportError("reset")],
        [added(pod("gone", 5))],
        [added(pod("gone", 5)), error_event(429, "TooManyRequests")],
        refusal(429, "TooManyRequests"),
        TransportError("connection refused"),
    ],
    ids=["reset", "ended", "429 event", "429 at the start", "connection refused"],
)
async def test_R18_cut_before_the_bookmark_drops_what_came_and_streams_again(cut: StreamReply) -> None:
    server = server_of([cut, [added(pod("a", 6)), initial_end(10), Hang()]])
    followed = await follow(server, 30, STREAMS)
    assert server.log == ["STREAM ", "STREAM "]
    assert server.watches[1].opened_at >= 0.8
    assert followed.said() == ["replace a 10"]


async def test_R18_cut_after_the_bookmark_is_followed_by_a_plain_watch_from_the_last_version() -> None:
    server = server_of([[initial_end(10), added(pod("a", 11)), TransportError("reset")], [modified(pod("a", 12)), Hang()]])
    followed = await follow(server, 30, STREAMS)
    assert server.log == ["STREAM ", "WATCH 11"]
    assert followed.said() == ["replace  10", "put a 11", "put a 12"]


@pytest.mark.parametrize("code", [400, 403, 404, 405, 422, 500, 503])
async def test_R19_refused_watch_list_is_followed_by_list_and_watch_at_once(code: int) -> None:
    server = server_of([refusal(code, "Whatever")], [page(pod("a", 1), version=10)])
    followed = await follow(server, 0.1, STREAMS)
    assert server.log == ["STREAM ", "LIST 0", "WATCH 10"]
    assert followed.said() == ["replace a 10"]


async def test_R19_an_expired_established_stream_is_started_anew_from_the_last_version() -> None:
    server = server_of([[initial_end(10), bookmark(15), error_event(410, "Expired")], [initial_end(20), Hang()]])
    followed = await follow(server, 30, STREAMS)
    assert server.log == ["STREAM ", "STREAM 15"]
    assert server.watches[1].opened_at >= 0.8
    assert followed.said() == ["replace  10", "bookmark 15", "replace  20"]


async def test_R19_a_version_that_the_server_does_not_have_is_given_up_at_once() -> None:
    server = server_of([
        [initial_end(10), error_event(403)],
        refusal(**EXPIRED),
        [added(pod("a", 3)), initial_end(4), error_event(403)],
        [initial_end(5), Hang()],
    ])
    followed = await follow(server, 60, STREAMS)
    assert server.log == ["STREAM ", "STREAM 10", "STREAM ", "STREAM 4"]
    assert server.watches[1].opened_at == server.watches[2].opened_at
    assert followed.said() == ["replace  10", "replace a 4", "replace  5"]


async def test_R19_a_stream_that_expires_at_the_newest_version_is_followed_by_a_list_there() -> None:
    server = server_of([[initial_end(10), error_event(403)], refusal(**EXPIRED), refusal(**EXPIRED)], [page(version=12)])
    await follow(server, 60, STREAMS)
    assert server.log == ["STREAM ", "STREAM 10", "STREAM ", "LIST ", "WATCH 12"]


async def test_R19_a_server_that_never_sends_the_bookmark_is_listed_from_then_on() -> None:
    server = server_of(
        [[added(pod("a", 5)), bookmark(7), Hang()], [bookmark(12), error_event(410, "Expired")]],
        [page(pod("a", 5), version=10), page(version=20)],
    )
    followed = await follow(server, 100, STREAMS)
    assert server.log == ["STREAM ", "LIST 0", "WATCH 10", "LIST 12", "WATCH 20"]
    assert server.lists[0].asked_at == 60
    assert "no bookmark" in str(followed.measured.failures[0])
    assert followed.said() == ["replace a 10", "bookmark 12", "replace  20"]


async def test_R19_a_long_stream_is_not_bound_by_the_patience_for_its_beginning() -> None:
    server = server_of([[initial_end(10), Sleep(200), added(pod("a", 11)), Hang()]])
    followed = await follow(server, 250, STREAMS)
    assert server.log == ["STREAM "]
    assert followed.said() == ["replace  10", "put a 11"]
