"""Lanes: urgent keys first, each lane first in, first out, and nobody kept out for ever."""

import asyncio

import pytest

from mpiop.workqueue import WorkQueue
from mpiop.workqueue.lanes import MOST_IN_A_ROW, Lanes

CASES = {
    "usual keys come as they went in": ("a b c", "a b c"),
    "an urgent key goes before usual ones": ("a b c!", "c a b"),
    "urgent keys come as they went in": ("a b! c! d", "b c a d"),
}


@pytest.mark.parametrize(("given", "order"), CASES.values(), ids=CASES.keys())
def test_keys_are_handed_out(given: str, order: str) -> None:
    lanes = Lanes[str]()
    for word in given.split():
        lanes.append(word.rstrip("!"), is_urgent=word.endswith("!"))
    assert [lanes.popleft() for _ in range(len(lanes))] == order.split()
    assert len(lanes) == 0


def test_a_key_that_becomes_urgent_changes_its_lane_and_is_handed_out_once() -> None:
    lanes = Lanes[str]()
    for key in "abc":
        lanes.append(key, is_urgent=False)
    lanes.hurry("c")
    lanes.hurry("c")
    lanes.hurry("unknown")
    assert len(lanes) == 3
    assert [lanes.popleft() for _ in range(3)] == ["c", "a", "b"]


def test_urgent_keys_without_end_do_not_keep_out_a_usual_one() -> None:
    lanes = Lanes[str]()
    lanes.append("usual", is_urgent=False)
    lanes.append("another", is_urgent=False)
    handed = list[str]()
    for number in range(3 * MOST_IN_A_ROW):
        lanes.append(str(number), is_urgent=True)
        handed.append(lanes.popleft())
    assert handed.index("usual") == MOST_IN_A_ROW
    assert handed.index("another") == 2 * MOST_IN_A_ROW + 1


def test_from_empty_lanes_comes_nothing() -> None:
    with pytest.raises(KeyError):
        Lanes[str]().popleft()


async def test_a_key_that_was_added_as_urgent_while_in_work_is_urgent_when_it_is_given_back() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a", is_urgent=True)
    queue.add("b")
    queue.done("a")
    assert [await queue.get(), await queue.get()] == ["a", "b"]


async def test_urgency_ends_with_the_run_that_it_was_for() -> None:
    queue = WorkQueue[str]()
    queue.add("a", is_urgent=True)
    assert await queue.get() == "a"
    queue.add("b")
    queue.add("a")
    queue.done("a")
    assert [await queue.get(), await queue.get()] == ["b", "a"]


async def test_a_queued_key_that_becomes_urgent_goes_first() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    queue.add("b", is_urgent=True)
    assert [await queue.get(), await queue.get()] == ["b", "a"]


async def test_a_delayed_key_is_usual_unless_asked_otherwise() -> None:
    queue = WorkQueue[str]()
    queue.add("first")
    queue.add_after("delayed", 0)
    assert [await queue.get(), await queue.get()] == ["first", "delayed"]


@pytest.mark.parametrize("is_urgent_first", [True, False])
async def test_a_delayed_key_that_anybody_called_urgent_is_urgent(*, is_urgent_first: bool) -> None:
    queue = WorkQueue[str]()
    for is_urgent, delay_seconds in ((is_urgent_first, 2), (not is_urgent_first, 1), (is_urgent_first, 3)):
        queue.add_after("delayed", delay_seconds, is_urgent=is_urgent)
    await asyncio.sleep(0.9)
    assert len(queue) == 0, "news does not come before its time"
    queue.add("usual")
    await asyncio.sleep(0.2)
    assert [await queue.get(), await queue.get()] == ["delayed", "usual"]


async def test_a_delayed_key_is_as_urgent_as_was_asked() -> None:
    queue = WorkQueue[str]()
    queue.add_after("late", 1, is_urgent=True)
    queue.add_after("now", 0, is_urgent=True)
    assert await queue.get() == "now"
    queue.add("usual")
    queue.done("now")
    await asyncio.sleep(2)
    assert await queue.get() == "late"
