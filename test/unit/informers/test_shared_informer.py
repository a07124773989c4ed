"""Invariants I26, I27 and I30 to I38: handlers of an informer."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import cast

import pytest

from fakes.following import LISTS, background
from fakes.scripted_server import (
    SELECTION,
    Hang,
    ListReply,
    ScriptedServer,
    Sleep,
    StreamReply,
    added,
    bookmark,
    deleted,
    modified,
    page,
    pod,
)
from mpiop.informers import InformerSettings, Notification, SharedInformer
from mpiop.informers.listener import Listener
from mpiop.kube.objects import Key, Object
from virtual_time import VirtualTimeLoop, run_ready_tasks, turns_until

SETTINGS = InformerSettings(reflector=LISTS)


@dataclass
class Heard:
    """A handler that remembers its notifications."""

    notifications: list[Notification] = field(default_factory=list[Notification])

    def __call__(self, notification: Notification) -> None:
        self.notifications.append(notification)

    def lines(self) -> list[str]:
        return [line(notification) for notification in self.notifications]


def line(notification: Notification) -> str:
    def version(obj: Object | None) -> str:
        return obj["metadata"].get("resourceVersion", "") if obj else "-"

    return f"{notification.key.name} {version(notification.old)}>{version(notification.new)}"


def informer_of(lists: list[ListReply], watches: list[StreamReply] | None = None) -> SharedInformer:
    return SharedInformer(ScriptedServer(list_replies=lists, watch_replies=watches or []), SELECTION, settings=SETTINGS)


def running(informer: SharedInformer) -> AbstractAsyncContextManager[object]:
    return background(asyncio.create_task(informer.run()))


def live_timers(of: str = "") -> list[asyncio.TimerHandle]:
    """Return the timers that are still to come, of the function `of`."""
    scheduled: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
    return [timer for timer in scheduled if not timer.cancelled() and of in repr(timer)]


def busy_handler(seconds: float, heard: list[str]) -> Callable[[Notification], None]:
    """Return a handler that keeps the processor busy for `seconds` each time."""

    def handle(notification: Notification) -> None:
        cast("VirtualTimeLoop", asyncio.get_running_loop()).advance(seconds)
        heard.append(line(notification))

    return handle


async def test_I26_the_store_is_updated_before_a_handler_is_called() -> None:
    informer = informer_of([page(pod("a", 1), version=10)], [[modified(pod("a", 11)), deleted(pod("a", 12)), Hang()]])
    ahead: list[bool] = []

    def handle(notification: Notification) -> None:
        stored = informer.store.get(notification.key)
        version = int(stored["metadata"].get("resourceVersion", "")) if stored else 1000
        reported = int(notification.new["metadata"].get("resourceVersion", "")) if notification.new else 1000
        ahead.append(version >= reported)

    informer.add_handler(handle)
    async with running(informer):
        await asyncio.sleep(1)
    assert ahead == [True, True, True]


async def test_who_reads_the_store_next_finds_what_followed_it() -> None:
    informer = informer_of([page(pod("a", 1), version=10)], [[deleted(pod("a", 12)), Hang()]])
    gone, seen = list[Key](), list[tuple[int, list[Key]]]()

    def read_next(_notification: Notification) -> None:
        asyncio.get_running_loop().call_soon(lambda: seen.append((len(informer.store), list(gone))))
        raise RuntimeError("cannot stand changes")

    def remember(notification: Notification) -> None:
        if notification.new is None:
            gone.append(notification.key)

    informer.follow(read_next)
    informer.follow(remember)
    async with running(informer):
        await asyncio.sleep(1)
    assert gone == [Key("ns", "a")]
    assert all(stored + len(lost) == 1 for stored, lost in seen), seen
    assert len(seen) == 2


async def test_R12_I29_a_bookmark_moves_the_version_of_the_store_and_calls_nobody() -> None:
    informer = informer_of([page(pod("a", 1), version=10)], [[bookmark(42), Hang()]])
    heard = Heard()
    informer.add_handler(heard)
    async with running(informer):
        await asyncio.sleep(1)
    assert informer.store.resource_version == "42"
    assert heard.lines() == ["a ->1"]


async def test_I30_synced_when_the_whole_first_list_is_in_the_store() -> None:
    informer = informer_of([page(pod("a", 1), version=10, token="t"), Sleep(5), page(pod("b", 2), version=10)])
    assert not informer.has_synced
    async with running(informer):
        await asyncio.sleep(4)
        assert (informer.has_synced, len(informer.store)) == (False, 0)
        await asyncio.wait_for(informer.wait_for_sync(), 10)
        assert len(informer.store) == 2
    assert informer.has_synced


async def test_I30_an_empty_list_is_synced() -> None:
    informer = informer_of([page(version=10)])
    registration = informer.add_handler(Heard())
    async with running(informer):
        await asyncio.wait_for(informer.wait_for_sync(), 1)
    assert informer.has_synced
    assert registration.has_synced


async def test_I30_initial_items_deleted_before_they_are_handled_do_not_hinder_it() -> None:
    informer = informer_of([page(pod("a", 1), version=10)], [[deleted(pod("a", 11)), Hang()]])
    heard = Heard()
    registration = informer.add_handler(heard)
    async with running(informer):
        await asyncio.wait_for(registration.wait_for_sync(), 1)
        await run_ready_tasks()
    assert heard.lines() == ["a ->1", "a 11>-"]


async def test_I31_a_handler_is_synced_only_after_all_its_initial_adds() -> None:
    informer = informer_of([page(*(pod(f"p{number}", 1) for number in range(20)), version=10)])
    states: list[bool] = []
    registration = informer.add_handler(lambda _notification: states.append(registration.has_synced))
    async with running(informer):
        await registration.wait_for_sync()
        assert states == [False] * 20
        assert registration.has_synced


async def test_I31_a_busy_handler_is_synced_later_than_the_informer() -> None:
    informer = informer_of([page(*(pod(f"p{number}", 1) for number in range(20)), version=10)])
    heard: list[str] = []
    registration = informer.add_handler(busy_handler(1.0, heard))
    async with running(informer):
        await turns_until(lambda: informer.has_synced)
        assert not registration.has_synced
        await informer.wait_for_sync()
        assert len(heard) == 20


async def test_I32_a_late_handler_gets_each_object_once_and_loses_no_event() -> None:
    stream: StreamReply = [Sleep(5), modified(pod("a", 11)), Sleep(5), modified(pod("a", 12)), added(pod("c", 13)), Hang()]
    informer = informer_of([page(pod("a", 1), pod("b", 2), version=10)], [stream])
    late = Heard()
    async with running(informer):
        await asyncio.sleep(7)
        registration = informer.add_handler(late)
        assert not registration.has_synced
        await asyncio.wait_for(registration.wait_for_sync(), 0.1)
        assert late.lines() == ["a ->11", "b ->2"]
        await asyncio.sleep(10)
    assert late.lines() == ["a ->11", "b ->2", "a 11>12", "c ->13"]


async def test_I32_a_late_handler_of_an_empty_store_is_synced_at_once() -> None:
    informer = informer_of([page(version=10)])
    async with running(informer):
        await informer.wait_for_sync()
        assert informer.add_handler(Heard()).has_synced


async def test_I33_a_removed_handler_is_not_called_again() -> None:
    informer = informer_of([page(pod("a", 1), version=10)], [[Sleep(5), modified(pod("a", 11)), Hang()]])
    removed, kept = Heard(), Heard()
    registration = informer.add_handler(removed)
    informer.add_handler(kept)
    async with running(informer):
        await asyncio.sleep(1)
        registration.remove()
        registration.remove()
        await asyncio.sleep(10)
    assert removed.lines() == ["a ->1"]
    assert kept.lines() == ["a ->1", "a 1>11"]
    assert len(informer.registrations) == 1


async def test_I33_removal_drops_what_is_buffered_and_who_waits_for_it_waits_no_more() -> None:
    informer = informer_of([page(pod("a", 1), pod("b", 2), version=10)])
    heard = Heard()

    def once(notification: Notification) -> None:
        heard(notification)
        registration.remove()

    registration = informer.add_handler(once)
    async with running(informer):
        await asyncio.wait_for(registration.wait_for_sync(), 1)
        await asyncio.sleep(1)
    assert heard.lines() == ["a ->1"]
    assert registration.backlog == 0


async def test_I34_resync_notifies_of_stored_objects_again_without_a_request() -> None:
    informer = informer_of([page(pod("a", 1), pod("b", 2), version=10)])
    heard, other = Heard(), Heard()
    informer.add_handler(heard, resync_seconds=60)
    informer.add_handler(other)
    async with running(informer):
        await asyncio.sleep(130)
    assert heard.lines() == ["a ->1", "b ->2", *["a 1>1", "b 2>2"] * 2]
    assert other.lines() == ["a ->1", "b ->2"]


async def test_I34_resync_skips_objects_with_changes_in_the_buffer() -> None:
    heard = Heard()
    listener = Listener(heard, 0.0, lambda _listener: None)
    listener.push([Notification(pod("a", 1), pod("a", 11))])
    listener.resync([pod("a", 11), pod("b", 2)])
    await run_ready_tasks()
    assert heard.lines() == ["a 1>11", "b 2>2"]


async def test_I34_a_late_handler_is_resynced_and_a_removed_one_is_not() -> None:
    informer = informer_of([page(pod("a", 1), version=10)])
    heard = Heard()
    async with running(informer):
        await asyncio.sleep(10)
        registration = informer.add_handler(heard, resync_seconds=1)
        await asyncio.sleep(1.5)
        assert heard.lines() == ["a ->1", "a 1>1"]
        registration.remove()
        assert informer.backlog == 0
        await asyncio.sleep(5)
        assert live_timers("SharedInformer._resync") == []
    assert len(heard.lines()) == 2


async def test_I35_an_exception_loses_one_item_of_one_handler() -> None:
    informer = informer_of([page(pod("a", 1), pod("b", 2), pod("c", 3), version=10)], [[Sleep(5), modified(pod("b", 11)), Hang()]])
    heard, other = Heard(), Heard()

    def fragile(notification: Notification) -> None:
        if line(notification) == "b ->2":
            raise RuntimeError("cannot stand b")
        heard(notification)

    registration = informer.add_handler(fragile)
    informer.add_handler(other)
    async with running(informer):
        await asyncio.sleep(10)
    assert registration.has_synced
    assert heard.lines() == ["a ->1", "c ->3", "b 2>11"]
    assert other.lines() == ["a ->1", "b ->2", "c ->3", "b 2>11"]


async def test_I36_a_slow_handler_delays_neither_others_nor_the_reflector_and_its_backlog_is_measured() -> None:
    events = [modified(pod("a", version)) for version in range(11, 111)]
    informer = informer_of([page(pod("a", 1), version=10)], [[*events, Hang()]])
    slow: list[str] = []
    quick = Heard()
    slow_registration = informer.add_handler(busy_handler(0.1, slow))
    informer.add_handler(quick)
    async with running(informer):
        await turns_until(lambda: informer.store.resource_version == "110")
        await turns_until(lambda: len(quick.notifications) == 101)
        assert len(slow) < 10  # it lags
        assert slow_registration.backlog > 90
        assert informer.backlog == slow_registration.backlog
        await asyncio.sleep(20)
        assert len(slow) == 101  # and gets there
        assert informer.backlog == 0


async def test_I37_runs_once_refuses_handlers_afterwards_and_leaves_no_task() -> None:
    informer = informer_of([page(pod("a", 1), version=10)])
    heard = Heard()
    registration = informer.add_handler(heard, resync_seconds=60)
    states = [informer.is_running]
    before = asyncio.all_tasks()
    async with running(informer):
        await informer.wait_for_sync()
        with pytest.raises(RuntimeError, match="called twice"):
            await informer.run()
        states.append(informer.is_running)
    states.append(informer.is_running)
    assert states == [False, True, False]
    with pytest.raises(RuntimeError, match="after it has stopped"):
        informer.add_handler(heard)
    with pytest.raises(RuntimeError, match="called twice"):
        await informer.run()
    await asyncio.sleep(600)
    assert asyncio.all_tasks() == before
    assert live_timers() == []
    assert heard.lines() == ["a ->1"]
    registration.remove()
    assert informer.has_synced


async def test_I37_after_a_stop_nothing_that_is_buffered_is_delivered() -> None:
    informer = informer_of([page(*(pod(f"p{number}", 1) for number in range(100)), version=10)])
    slow: list[str] = []
    informer.add_handler(busy_handler(1.0, slow))
    async with running(informer):
        await turns_until(lambda: len(slow) > 0)
    handled = len(slow)
    await asyncio.sleep(600)
    assert len(slow) == handled < 100


async def test_I36_a_quick_handler_gets_through_its_backlog_in_one_turn() -> None:
    heard = Heard()
    Listener(heard, 0.0, lambda _listener: None).push([Notification(None, pod(f"p{number}", 1)) for number in range(100)])
    assert await turns_until(lambda: bool(heard.notifications)) == 1
    assert len(heard.notifications) == 100


async def test_I38_what_the_client_gave_is_not_changed() -> None:
    original = pod("a", 1)
    original["metadata"]["managedFields"] = [{"manager": "somebody"}]  # type: ignore[typeddict-unknown-key] # a field we do not know
    given = page(original, version=10)
    informer = informer_of([given])
    async with running(informer):
        await informer.wait_for_sync()
    assert "managedFields" in original["metadata"]
    assert informer.store.get(Key("ns", "a")) == pod("a", 1)


async def test_last_activity_follows_lists_events_and_bookmarks() -> None:
    informer = informer_of([Sleep(5), page(version=10)], [[Sleep(10), added(pod("a", 11)), Sleep(60), bookmark(20), Hang()]])
    assert informer.last_activity is None
    moments: list[float | None] = []
    async with running(informer):
        for seconds in (4, 2, 10, 61):
            await asyncio.sleep(seconds)
            moments.append(informer.last_activity)
    assert moments == [None, 5, 15, 75]
