"""Watches over real connections: events, cuts, idle timeouts, closing (F19-F22, F31, R20, R22)."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fakes.http_server import Exchange
from mpiop.informers.pager import Pager
from mpiop.kube import answers, items, session, transport
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.large import LARGE_BYTES
from mpiop.kube.objects import WatchEvent, key_of, known_part
from mpiop.kube.request import Request
from mpiop.kube.resources import PODS, Selection

pytestmark = pytest.mark.real_time


def watch(client: Any, **how: Any) -> Any:
    return client.watch(Selection(PODS, "default"), **{"resource_version": "5", "timeout_seconds": 300, **how})


async def names(client: Any) -> list[str]:
    async with asyncio.timeout(10), watch(client) as events:
        return [event["object"]["metadata"]["name"] async for event in events]


async def one_event(exchange: Exchange) -> None:
    """Send an event, and nothing more."""
    await exchange.begin_stream()
    await exchange.event("ADDED", "a")
    await exchange.writer.wait_closed()


async def test_what_a_watch_asks_for(bench: Any) -> None:
    async def nothing(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.chunk(b"")

    server, client = await bench.connect(nothing)
    assert await names(client) == []
    async with watch(client, resource_version="", send_initial_events=True) as events:
        assert [event async for event in events] == []
    common = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "300"}
    assert server.exchanges[0].query == common | {"resourceVersion": "5"}
    assert server.exchanges[1].query == common | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert server.connections == 1, "a stream that ended in order leaves its connection for the next"


async def test_events_come_as_they_are_sent_and_the_end_is_the_end(bench: Any) -> None:
    gate = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.event("ADDED", "a")
        await gate.wait()
        await exchange.chunk(msgspec.json.encode({"type": "ERROR", "object": {"code": 410}}) + b"\n")
        await exchange.chunk(b"")

    client = await bench.client(await bench.serve(script))
    async with watch(client) as events:
        assert await anext(events) == {"type": "ADDED", "object": {"metadata": {"name": "a"}}}
        gate.set()
        assert await anext(events) == {"type": "ERROR", "object": {"code": 410}}
        assert [event async for event in events] == []
    assert bench.observed == [("watch", "pods", 200)]


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_F19_F20_a_cut_stream_is_an_error_and_the_half_line_is_dropped(bench: Any, how: str) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.event("ADDED", "a")
        await exchange.chunk(b'{"type":"ADDED","object":{"metadata":{"name":"\xcf')
        await asyncio.sleep(0.1)
        getattr(exchange, how)()

    client = await bench.client(await bench.serve(script))
    async with asyncio.timeout(10), watch(client) as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "a"
        with pytest.raises(TransportError, match=r"^watch pods default: "):
            await anext(events)


async def test_F20_an_orderly_end_inside_a_line_drops_the_line(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.event("ADDED", "a")
        await exchange.chunk(b'{"type":"ADDED"')
        await exchange.chunk(b"")

    assert await names(await bench.client(await bench.serve(script))) == ["a"]


async def test_F31_an_event_of_20_mebibytes(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.event("ADDED", "a", padding="x" * (20 * 1024 * 1024))
        await exchange.event("ADDED", "b")
        await exchange.chunk(b"")

    assert await names(await bench.client(await bench.serve(script))) == ["a", "b"]


async def test_R22_F22_an_idle_watch_is_an_error(bench: Any) -> None:
    client = await bench.client(await bench.serve(one_event), idle_timeout_seconds=0.3)
    with pytest.raises(TransportError, match=r"^watch pods default: .*[Tt]imeout"):
        await names(client)


async def test_R22_what_came_while_the_process_was_frozen_is_not_idle_time(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await asyncio.sleep(0.1)
        await exchange.event("ADDED", "a")  # in the kernel's buffer, for this process is the client too
        time.sleep(0.5)  # noqa: ASYNC251 - the freeze
        await asyncio.sleep(0.1)
        await exchange.event("ADDED", "b")
        await exchange.chunk(b"")

    assert await names(await bench.client(await bench.serve(script), idle_timeout_seconds=0.3)) == ["a", "b"]


async def test_a_watch_lives_longer_than_the_deadline_of_calls(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for name in "abcd":
            await asyncio.sleep(0.2)
            await exchange.event("ADDED", name)
        await exchange.chunk(b"")

    assert await names(await bench.client(await bench.serve(script), deadline_seconds=0.3)) == ["a", "b", "c", "d"]


async def test_a_watch_that_is_not_answered_ends_with_the_deadline(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        del exchange
        await asyncio.Event().wait()

    client = await bench.client(await bench.serve(script), deadline_seconds=0.2)
    with pytest.raises(TransportError, match=r"^watch pods default: no answer within 0\.2 s"):
        await names(client)


async def test_R7_a_refused_watch_is_reported_and_not_repeated(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.refuse(429, "TooManyRequests", "wait", Retry_After="1")

    server, client = await bench.connect(script)
    with pytest.raises(StatusError) as caught:
        await names(client)
    assert caught.value.retry_after_seconds == 1
    assert len(server.exchanges) == 1


async def test_F15_html_in_a_stream_is_a_transport_error(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.answer(b"<html>\n<body>", Content_Type="text/html")

    with pytest.raises(TransportError, match=r"^watch pods default: a line of the stream is not a watch event: <html>"):
        await names(await bench.client(await bench.serve(script)))


async def test_another_success_than_200_is_no_stream(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.answer({"kind": "PodList"}, 202)

    with pytest.raises(TransportError, match=r"^watch pods default: invalid answer 202 to a watch"):
        await names(await bench.client(await bench.serve(script)))


async def test_R20_leaving_early_closes_the_connection(bench: Any) -> None:
    server, client = await bench.connect(one_event)
    async with watch(client) as events:
        async for _ in events:
            break
    await gone(server)
    assert [event async for event in events] == [], "nothing is delivered afterwards"


async def test_R20_leaving_early_waits_for_no_farewell_of_the_server(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []
    open_socket = session.open_socket

    def open_and_keep(address: tuple[Any, ...]) -> socket.socket:
        opened.append(open_socket(address))
        return opened[-1]

    async def script(exchange: Exchange) -> None:
        exchange.writer.transport.pause_reading()  # as a server that is frozen
        await exchange.begin_stream()
        await exchange.event("ADDED", "a")
        await exchange.writer.wait_closed()

    server = await bench.serve(script)
    with monkeypatch.context() as patch:
        patch.setattr(session, "open_socket", open_and_keep)
        client = await bench.client(server)
    async with watch(client) as events:
        await anext(events)
    await asyncio.sleep(0)
    assert [each.fileno() for each in opened] == [-1]


async def test_R20_cancelling_closes_the_connection(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.writer.wait_closed()

    server, client = await bench.connect(script)
    task = asyncio.create_task(names(client))
    while not bench.observed:  # noqa: ASYNC110 - until the watch began
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(server)


async def test_an_exception_of_the_consumer_passes_unchanged(bench: Any) -> None:
    client = await bench.client(await bench.serve(one_event))

    async def consume() -> None:
        async with watch(client) as events:
            async for _ in events:
                raise OSError("mine")

    with pytest.raises(OSError, match=r"^mine$"):
        await consume()


async def test_watches_take_no_places_of_calls(bench: Any) -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.query.get("watch"):
            await exchange.begin_stream()
            await exchange.writer.wait_closed()
        else:
            await exchange.answer({"kind": "PodList", "metadata": {}, "items": []})

    client = await bench.client(await bench.serve(script), most_in_flight=1)
    async with watch(client), watch(client), watch(client), asyncio.timeout(5):
        await client.list_page(Selection(PODS), resource_version="0")


async def gone(server: Any) -> None:
    """Wait until the server has seen all connections end."""
    async with asyncio.timeout(5):
        while server.open_connections:  # noqa: ASYNC110 - the other side of a socket
            await asyncio.sleep(0.01)


async def test_a_large_event_is_read_in_a_thread_and_keeps_its_place(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is deeply nested takes 0.2 s to read, while probes and the lease are to be served."""
    threads: list[bool] = []

    def decode(request: Request, line: bytes) -> WatchEvent:
        threads.append(threading.current_thread() is threading.main_thread())
        return answers.decode_event(request, line)

    async def script(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for name in ("a", "b" * LARGE_BYTES, "c"):
            await exchange.event("ADDED", name)
        await exchange.chunk(b"")

    monkeypatch.setattr(transport, "decode_event", decode)
    assert [name[0] for name in await names(await bench.client(await bench.serve(script)))] == ["a", "b", "c"]
    assert threads == [True, False, True]


async def test_a_large_page_and_its_large_objects_are_read_in_a_thread_and_keep_their_order(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty deeply nested objects of 1.5 MB take seconds to read."""
    threads: list[tuple[str, bool]] = []

    def noting(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            threads.append((what, threading.current_thread() is threading.main_thread()))
            return function(*args)

        return call

    deep: dict[str, Any] = {"name": "b", "x": "y" * LARGE_BYTES}
    for _ in range(400):
        deep: dict[str, Any] = {"name": "b", "x": deep}

    async def script(exchange: Exchange) -> None:
        objects = [{"metadata": metadata} for metadata in ({"name": "a"}, deep, {"name": "c"})]
        await exchange.answer({"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": objects})

    monkeypatch.setattr(transport, "decode", noting("page", answers.decode))
    monkeypatch.setattr(items, "read_object", noting("object", items.read_object))
    pager = Pager(await bench.client(await bench.serve(script)), Selection(PODS), lambda pod: pod)
    listing = await pager.read("0", 500)
    assert [key_of(known_part(item)).name for item in listing.items] == ["a", "b", "c"]
    assert threads == [("page", False), ("object", True), ("object", False), ("object", True)]
