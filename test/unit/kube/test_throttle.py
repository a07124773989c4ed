"""How many requests are under way, how many begin a second, and who is next."""

import asyncio
from collections.abc import Hashable

import pytest

from mpiop.kube.throttle import Throttle
from virtual_time import run_ready_tasks


async def test_the_rate_is_bound_when_asked_for() -> None:
    throttle = Throttle(100, qps=10, burst=5)
    loop = asyncio.get_running_loop()
    begun: list[float] = []

    async def work() -> None:
        async with throttle.turn("", None):
            begun.append(loop.time())

    await asyncio.gather(*(work() for _ in range(25)))
    assert sum(time < 0.05 for time in begun) == 5
    assert max(begun) == pytest.approx(2.0)


async def test_no_rate_is_bound_by_default_and_places_are() -> None:
    throttle = Throttle(3)
    inside, most = 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with throttle.turn("", None):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(9)))
    assert most == 3
    assert asyncio.get_running_loop().time() == 3


async def requests(throttle: Throttle, flow: Hashable, count: int, log: list[Hashable], namespace: str = "") -> None:
    """Send `count` requests at once on behalf of `flow`; each is logged when it begins."""

    async def request() -> None:
        async with throttle.turn(namespace, flow):
            log.append(flow)
            await asyncio.sleep(1.0)

    await asyncio.gather(*(request() for _ in range(count)))


@pytest.mark.parametrize("bounds", [(1,), (100, 10.0, 1)], ids=["places", "rate"])
async def test_flows_take_turns(bounds: tuple[int]) -> None:
    throttle, log = Throttle(*bounds), list[Hashable]()
    await asyncio.gather(requests(throttle, "a", 1000, log), requests(throttle, "b", 3, log), requests(throttle, "c", 1, log))
    assert log[:9] == ["a", "a", "b", "c", "a", "b", "a", "b", "a"], "the first begins at once, before the others come"
    assert len(log) == 1004


async def test_who_is_cancelled_leaves_the_turn_to_others() -> None:
    throttle, log = Throttle(1), list[Hashable]()
    first, *others = [asyncio.create_task(requests(throttle, flow, 2, log)) for flow in "abc"]
    await run_ready_tasks()
    others[0].cancel()
    await asyncio.wait([first, *others])
    assert log == ["a", "a", "c", "c"]


async def test_a_place_is_not_lost_when_its_turn_and_the_cancellation_come_together() -> None:
    throttle, log = Throttle(1), list[Hashable]()
    async with throttle.turn("", None):
        waiting = asyncio.create_task(requests(throttle, "a", 1, log))
        await run_ready_tasks()
    waiting.cancel()
    await asyncio.wait([waiting])
    await requests(throttle, "b", 1, log)
    assert log == ["b"]


async def test_a_namespace_with_slow_requests_leaves_places_to_others_which_have_one_each() -> None:
    throttle, log = Throttle(3), list[Hashable]()
    slow = asyncio.create_task(requests(throttle, "slow", 100, log, "a"))
    await run_ready_tasks()
    await asyncio.gather(requests(throttle, "b", 1, log, "b"), requests(throttle, "c", 2, log, "c"))
    assert log[:5] == ["slow", "slow", "slow", "b", "c"]
    assert asyncio.get_running_loop().time() <= 2
    slow.cancel()
    await asyncio.wait([slow])
