"""Lanes: pressing keys first, then a few usual ones, or news before many; each lane first in, first out, and nobody kept out for ever."""

import asyncio
from collections.abc import Iterator

import pytest

from mpiop.workqueue import Lane, WorkQueue
from mpiop.workqueue.lanes import FEW, MOST_IN_A_ROW, Lanes

NEWS, PRESSING, USUAL = Lane.NEWS, Lane.PRESSING, Lane.USUAL
LANES = {"": USUAL, "?": NEWS, "!": PRESSING}
CASES = {
    "usual keys come as they went in": ("a b c", "a b c"),
    "a pressing key goes before all others": ("a b? c!", "c a b"),
    "pressing keys come as they went in": ("a b! c! d", "b c a d"),
    "a few usual keys go before news": ("a? b? c d", "c d a b"),
}


@pytest.mark.parametrize(("given", "order"), CASES.values(), ids=CASES.keys())
def test_keys_are_handed_out(given: str, order: str) -> None:
    lanes = Lanes[str](most_busy=1)
    for word in given.split():
        lanes.append(word[0], LANES[word[1:]])
    assert all(word[0] in lanes for word in given.split())
    assert list(drained(lanes)) == order.split()
    assert len(lanes) == 0
    assert "a" not in lanes


def drained(lanes: Lanes[str], in_work: int = 0) -> Iterator[str]:
    while lanes.has_next(in_work):
        yield lanes.popleft(in_work)


def test_news_goes_before_many_usual_keys_and_after_few() -> None:
    lanes = Lanes[str](most_busy=1)
    for number in range(FEW + 2):
        lanes.append(f"usual {number}", USUAL)
    for number in range(3):
        lanes.append(f"news {number}", NEWS)
    handed = list(drained(lanes))
    assert handed[:5] == ["news 0", "news 1", "news 2", "usual 0", "usual 1"]
    lanes.append("news", NEWS)
    for number in range(FEW):
        lanes.append(f"usual {number}", USUAL)
    assert list(drained(lanes))[MOST_IN_A_ROW] == "news"


def test_many_usual_keys_leave_half_of_the_workers_to_what_is_pressing() -> None:
    lanes = Lanes[str](most_busy=4)
    for number in range(FEW + 1):
        lanes.append(str(number), USUAL)
    assert lanes.has_next(in_work=3)
    assert not lanes.has_next(in_work=4)
    with pytest.raises(IndexError):
        lanes.popleft(in_work=4)
    lanes.append("news", NEWS)
    lanes.append("pressing", PRESSING)
    assert list(drained(lanes, in_work=4)) == ["pressing"]
    assert [lanes.popleft(in_work=3), lanes.popleft(in_work=3)] == ["news", "0"]
    assert len(list(drained(lanes, in_work=9))) == FEW, "a few may take every worker"


def test_a_key_of_which_there_is_more_urgent_news_changes_its_lane_and_is_handed_out_once() -> None:
    lanes = Lanes[str](most_busy=1)
    for key in "abcd":
        lanes.append(key, USUAL)
    lanes.hurry("d", NEWS)
    lanes.hurry("c", PRESSING)
    lanes.hurry("c", PRESSING)
    lanes.hurry("c", NEWS)
    lanes.hurry("unknown", PRESSING)
    assert len(lanes) == 4
    assert list(drained(lanes)) == ["c", "a", "b", "d"]


@pytest.mark.parametrize(("endless", "late"), [(PRESSING, NEWS), (PRESSING, USUAL), (USUAL, NEWS)])
def test_Q42_keys_without_end_do_not_keep_out_one_of_another_lane(endless: Lane, late: Lane) -> None:
    lanes = Lanes[str](most_busy=1)
    lanes.append("one", late)
    lanes.append("another", late)
    handed = list[str]()
    for number in range(3 * MOST_IN_A_ROW):
        lanes.append(str(number), endless)
        handed.append(lanes.popleft(in_work=0))
    assert handed.index("one") == MOST_IN_A_ROW
    assert handed.index("another") == 2 * MOST_IN_A_ROW + 1


@pytest.mark.parametrize("endless", [PRESSING, NEWS])
def test_Q42_keys_without_end_do_not_keep_out_one_of_many_usual_ones(endless: Lane) -> None:
    lanes = Lanes[str](most_busy=1)
    for number in range(2 * FEW):
        lanes.append(f"usual {number}", USUAL)
    handed = list[str]()
    for number in range(3 * MOST_IN_A_ROW):
        lanes.append(str(number), endless)
        handed.append(lanes.popleft(in_work=0))
    assert [handed.index("usual 0"), handed.index("usual 1")] == [MOST_IN_A_ROW, 2 * MOST_IN_A_ROW + 1]


def test_from_empty_lanes_comes_nothing() -> None:
    lanes = Lanes[str](most_busy=1)
    assert not lanes.has_next(in_work=0)
    with pytest.raises(IndexError):
        lanes.popleft(in_work=0)


async def test_Q42_idle_workers_begin_again_when_only_few_usual_keys_are_left() -> None:
    queue = WorkQueue[str](workers=4)
    for number in range(FEW + 3):
        queue.add(str(number))
    workers = [asyncio.create_task(queue.get()) for _ in range(4)]
    await asyncio.wait(workers, timeout=1)
    assert [worker.done() for worker in workers] == [True, True, False, False], "half of the workers begin while many wait"
    queue.done(workers[0].result())
    await asyncio.wait(workers, timeout=1)
    assert all(worker.done() for worker in workers), "the third leaves few, and may wake the fourth"


async def test_a_key_that_was_added_as_pressing_while_in_work_is_pressing_when_it_is_given_back() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a", PRESSING)
    queue.add("b")
    queue.done("a")
    assert [await queue.get(), await queue.get()] == ["a", "b"]


async def test_urgency_ends_with_the_run_that_it_was_for() -> None:
    queue = WorkQueue[str]()
    queue.add("a", PRESSING)
    assert await queue.get() == "a"
    queue.add("b")
    queue.add("a")
    queue.done("a")
    assert [await queue.get(), await queue.get()] == ["b", "a"]


async def test_a_queued_key_that_becomes_pressing_goes_first() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    queue.add("b", PRESSING)
    assert [await queue.get(), await queue.get()] == ["b", "a"]


async def test_a_delayed_key_is_usual_unless_asked_otherwise() -> None:
    queue = WorkQueue[str]()
    queue.add("first")
    queue.add_after("delayed", 0)
    assert [await queue.get(), await queue.get()] == ["first", "delayed"]


@pytest.mark.parametrize("lanes", [(PRESSING, USUAL, NEWS), (USUAL, PRESSING, USUAL), (NEWS, USUAL, PRESSING)])
async def test_a_delayed_key_that_anybody_called_pressing_is_pressing(lanes: tuple[Lane, ...]) -> None:
    queue = WorkQueue[str]()
    for lane, delay_seconds in zip(lanes, (2, 1, 3), strict=True):
        queue.add_after("delayed", delay_seconds, lane)
    await asyncio.sleep(0.9)
    assert len(queue) == 0, "news does not come before its time"
    queue.add("usual")
    await asyncio.sleep(0.2)
    assert [await queue.get(), await queue.get()] == ["delayed", "usual"]


async def test_a_delayed_key_is_as_pressing_as_was_asked() -> None:
    queue = WorkQueue[str]()
    queue.add_after("late", 1, PRESSING)
    queue.add_after("now", 0, PRESSING)
    assert await queue.get() == "now"
    queue.add("usual")
    queue.done("now")
    await asyncio.sleep(2)
    assert await queue.get() == "late"
