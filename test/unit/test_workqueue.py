"""Invariants Q40 to Q49: the work queue, its delays and its workers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from fakes.following import background
from mpiop.shares import RESERVED
from mpiop.workqueue import NotReady, ShutDown, WorkQueue, work
from virtual_time import VirtualTimeLoop, run_ready_tasks


@dataclass
class Measured:
    depths: list[int] = field(default_factory=list[int])
    adds: int = 0
    retries: int = 0
    waits: list[float] = field(default_factory=list[float])
    works: list[float] = field(default_factory=list[float])

    def depth(self, keys: int) -> None:
        self.depths.append(keys)

    def added(self) -> None:
        self.adds += 1

    def retried(self) -> None:
        self.retries += 1

    def waited(self, seconds: float) -> None:
        self.waits.append(seconds)

    def worked(self, seconds: float) -> None:
        self.works.append(seconds)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
async def queue() -> WorkQueue[str]:
    return WorkQueue[str]()


async def take(queue: WorkQueue[str]) -> str:
    """Take a key that must be there or come by a timer."""
    return await asyncio.wait_for(queue.get(), 86400)


async def test_Q40_many_adds_of_a_queued_key_are_one_run_and_it_waits_since_the_first() -> None:
    measured = Measured()
    queue = WorkQueue[str](metrics=measured)
    for _ in range(100):
        queue.add("a")
        await asyncio.sleep(1)
    assert len(queue) == 1
    assert await take(queue) == "a"
    assert (measured.adds, measured.waits) == (1, [100])
    queue.done("a")
    assert len(queue) == 0


async def test_Q41_a_key_is_never_in_two_workers_and_adds_meanwhile_are_one_more_run(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert await take(queue) == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)
    queue.done("a")
    assert await take(queue) == "a"
    queue.done("a")
    assert len(queue) == 0
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_Q41_done_without_get_is_refused(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match=r"done\('a'\) without get"):
        queue.done("a")


async def test_Q42_keys_come_in_the_order_in_which_they_were_added(queue: WorkQueue[str]) -> None:
    for key in "abcab":
        queue.add(key)
    assert len(queue) == 3
    assert [await take(queue) for _ in range(3)] == ["a", "b", "c"]


async def test_Q42_a_key_added_while_in_work_goes_to_the_end(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await take(queue)
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert [await take(queue) for _ in range(2)] == ["b", "a"]


async def test_Q42_done_leaves_no_reference(queue: WorkQueue[str]) -> None:
    for key in map(str, range(100)):
        queue.add(key)
        queue.add_after(key, 1)
        queue.add_rate_limited(key)
    queue.shut_down()
    while len(queue):
        key = await take(queue)
        queue.forget(key)
        queue.done(key)
    held = (
        queue._queued,
        queue._queued._waiting,
        queue._queued._shares._taken,
        queue._dirty_since,
        queue._processing_since,
        queue._timers,
        queue._waiters,
    )
    assert [len(part) for part in held] == [0] * 7


async def test_Q42_each_of_several_waiting_workers_gets_a_key(queue: WorkQueue[str]) -> None:
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await run_ready_tasks()
    for key in "abc":
        queue.add(key)
    assert await asyncio.gather(*waiting) == ["a", "b", "c"]


async def test_Q42_a_worker_cancelled_as_it_is_woken_passes_the_key_on(queue: WorkQueue[str]) -> None:
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await run_ready_tasks()
    queue.add("a")  # wakes the first, which has not run yet
    first.cancel()
    assert await asyncio.wait_for(second, 60) == "a"
    assert first.cancelled()


async def test_Q42_a_worker_cancelled_while_waiting_is_forgotten(queue: WorkQueue[str]) -> None:
    first = asyncio.create_task(queue.get())
    await run_ready_tasks()
    first.cancel()
    await run_ready_tasks()
    assert not queue._waiters
    queue.add("a")
    assert await take(queue) == "a"


def shared_queue(limit: int) -> WorkQueue[str]:
    """Return a queue of keys such as `a1`, in the namespace `a`."""
    return WorkQueue[str](namespace_of=lambda key: key[0], limit=limit)


async def test_Q44_namespaces_take_turns() -> None:
    queue = shared_queue(100)
    for key in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queue.add(key)
    assert [await take(queue) for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_Q44_at_the_limit_only_other_namespaces_get_a_worker_and_one_each() -> None:
    queue = shared_queue(3)
    for key in ("a1", "a2", "a3", "a4"):
        queue.add(key)
    assert [await take(queue) for _ in range(3)] == ["a1", "a2", "a3"]
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(60)
    assert not waiting.done()
    queue.add("b1")
    queue.add("b2")
    assert await waiting == "b1"
    queue.add("c1")
    assert await take(queue) == "c1"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)
    queue.done("b1")
    assert await take(queue) == "b2"


async def test_Q44_the_places_beyond_the_limit_are_few() -> None:
    queue = shared_queue(1)
    for namespace in "abcdef":
        queue.add(namespace)
    assert [await take(queue) for _ in range(1 + RESERVED)] == list("abcde")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 60)


async def test_Q44_forty_slow_keys_delay_no_other_namespace_and_are_not_slower_themselves() -> None:
    queue, begun = shared_queue(16), dict[str, float]()

    async def sync(key: str) -> None:
        begun[key] = now()
        await asyncio.sleep(10 if key.startswith("a") else 0)

    async with AsyncExitStack() as stack:
        for _ in range(16 + RESERVED):
            await stack.enter_async_context(background(asyncio.create_task(work(queue, sync, lambda _key, _error: None))))
        for number in range(40):
            queue.add(f"a{number}")
        await asyncio.sleep(1)
        for number in range(3):
            queue.add(f"b{number}")
        await asyncio.sleep(60)
    assert [begun[f"b{number}"] for number in range(3)] == [1, 1, 1]
    assert [begun[f"a{number}"] for number in range(40)] == [0] * 16 + [10] * 16 + [20] * 8


async def test_Q44_after_shut_down_workers_wait_for_keys_beyond_the_limit_and_then_stop() -> None:
    queue, done = shared_queue(1), list[str]()

    async def sync(key: str) -> None:
        await asyncio.sleep(1)
        done.append(key)

    workers = [asyncio.create_task(work(queue, sync, lambda _key, _error: None)) for _ in range(3)]
    for key in ("a1", "a2", "a3"):
        queue.add(key)
    await run_ready_tasks()
    queue.shut_down()
    await asyncio.wait_for(asyncio.gather(*workers), 10)
    assert done == ["a1", "a2", "a3"]


async def test_Q43_after_shut_down_adds_are_dropped_queued_work_is_handed_out_and_then_workers_stop(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.shut_down()
    queue.add("c")
    queue.add_after("d", 1)
    queue.add_rate_limited("e")
    assert queue.retries("e") == 0
    assert [await take(queue) for _ in range(2)] == ["a", "b"]
    with pytest.raises(ShutDown):
        await queue.get()


async def test_Q43_waiting_workers_are_sent_home(queue: WorkQueue[str]) -> None:
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await run_ready_tasks()
    queue.shut_down()
    assert [type(result) for result in await asyncio.gather(*waiting, return_exceptions=True)] == [ShutDown] * 3


async def test_Q45_a_delayed_key_never_comes_early(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 30)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 29.999)
    assert await take(queue) == "a"
    assert now() == 30


@pytest.mark.parametrize("delay_seconds", [0, -1, -1e9])
async def test_Q45_a_delay_not_above_0_is_now(queue: WorkQueue[str], delay_seconds: float) -> None:
    queue.add_after("a", delay_seconds)
    assert len(queue) == 1


@pytest.mark.parametrize("delays", [(50, 20), (20, 50), (20, 20)])
async def test_Q45_of_two_delays_the_earlier_counts(queue: WorkQueue[str], delays: tuple[float, float]) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    assert await take(queue) == "a"
    assert now() == 20
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 3600)


async def test_Q45_a_run_answers_a_delay_that_was_set_before_it(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 10)
    queue.add("a")
    assert await take(queue) == "a"
    queue.add_after("a", 20)
    queue.done("a")
    assert await take(queue) == "a"
    assert now() == 20


async def test_Q45_shut_down_drops_delayed_keys(queue: WorkQueue[str]) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    queue.add_after("a", 30)
    queue.shut_down()
    await asyncio.sleep(60)
    assert complaints == []
    with pytest.raises(ShutDown):
        await queue.get()


def test_Q45_pending_timers_do_not_keep_the_process_alive() -> None:
    async def leave_a_timer() -> VirtualTimeLoop:
        WorkQueue[str]().add_after("a", 3600)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        return loop

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(leave_a_timer()).time() < 3600


@asynccontextmanager
async def working(queue: WorkQueue[str], *ends: Exception | float | None) -> AsyncIterator[tuple[list[float], list[tuple[str, str]]]]:
    """Let a worker do syncs that end so, one after the other; yield when they ended, and the failures that it reported."""
    runs, failures, left = list[float](), list[tuple[str, str]](), iter(ends)

    async def sync(_key: str) -> float | None:
        await asyncio.sleep(0)
        runs.append(now())
        end = next(left)
        if isinstance(end, Exception):
            raise end
        return end

    async with background(asyncio.create_task(work(queue, sync, lambda key, error: failures.append((key, str(error)))))):
        yield runs, failures


async def test_Q48_success_forgets_and_failure_comes_back_rate_limited(queue: WorkQueue[str]) -> None:
    async with working(queue, *(RuntimeError(f"run {number}") for number in (1, 2, 3)), None) as (runs, failures):
        queue.add("a")
        await asyncio.sleep(10)
    assert [later - earlier for earlier, later in pairwise(runs)] == pytest.approx([0.005, 0.010, 0.020])
    assert failures == [("a", "run 1"), ("a", "run 2"), ("a", "run 3")]
    assert queue.retries("a") == 0


async def test_Q48_an_asked_delay_forgets_and_comes_back_then(queue: WorkQueue[str]) -> None:
    queue.add_rate_limited("a")
    async with working(queue, 30.0, 30.0, None) as (runs, _):
        await asyncio.sleep(3600)
    assert runs == pytest.approx([0.005, 30.005, 60.005])
    assert queue.retries("a") == 0


async def test_Q48_a_key_that_is_put_off_is_no_failure_and_no_success(queue: WorkQueue[str]) -> None:
    queue.add_rate_limited("a")
    async with working(queue, NotReady(7), NotReady(7), RuntimeError("run 3"), None) as (runs, failures):
        await asyncio.sleep(14.01)
        assert queue.retries("a") == 2
        await asyncio.sleep(3600)
    assert runs == pytest.approx([0.005, 7.005, 14.005, 14.015])
    assert failures == [("a", "run 3")]


async def test_Q48_a_cancelled_sync_gives_its_key_back(queue: WorkQueue[str]) -> None:

    async def sync(_key: str) -> None:
        await asyncio.sleep(3600)

    queue.add("a")
    task = asyncio.create_task(work(queue, sync, lambda _key, _error: None))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert queue.retries("a") == 0
    queue.add("a")
    assert await take(queue) == "a"


async def test_Q48_a_key_that_is_always_due_stops_nobody_else(queue: WorkQueue[str]) -> None:
    queue.add("busy")
    syncs = 0

    async def sync(_key: str) -> float | None:
        nonlocal syncs
        syncs += 1
        return 0.0 if syncs < 1000 else None

    worker = asyncio.create_task(work(queue, sync, lambda _key, _error: None))
    await run_ready_tasks(20)
    assert 5 < syncs < 50
    queue.shut_down()
    worker.cancel()


async def test_Q49_the_measures_show_depth_adds_latency_work_and_retries() -> None:
    measured = Measured()
    queue = WorkQueue[str](metrics=measured)
    queue.add("a")
    queue.add("b")
    queue.add("a")
    await asyncio.sleep(2)
    await take(queue)
    queue.add("a")
    await asyncio.sleep(3)
    await take(queue)
    await asyncio.sleep(5)
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (13, 8)
    queue.done("a")
    queue.done("b")
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (0, 0)
    await take(queue)
    queue.add_rate_limited("c")
    queue.add_after("d", 9)
    assert measured == Measured(depths=[1, 2, 1, 0, 1, 0], adds=3, retries=2, waits=[2, 5, 8], works=[8, 5])
