"""The virtual loop itself: what every other test's verdict on time rests on."""

import asyncio
import threading
import time

import pytest

from virtual_time import StandstillError, VirtualTimeLoop, run_ready_tasks


async def test_time_jumps_to_the_next_timer() -> None:
    begun = time.monotonic()
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == 3600
    assert time.monotonic() - begun < 5


def test_standstill_is_an_error_that_names_the_waiting_task() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(StandstillError, match="wait_for_ever"):
        runner.run(wait_for_ever())


def test_a_circle_of_timers_is_an_error() -> None:
    async def tick_for_ever() -> None:
        while True:  # noqa: ASYNC110 - the mistake that is to be found
            await asyncio.sleep(86400)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(StandstillError, match="only timers"):
        runner.run(tick_for_ever())


async def test_time_stands_still_while_a_thread_works() -> None:
    release = threading.Event()
    asyncio.get_running_loop().call_later(0.0, release.set)
    answered = await asyncio.wait_for(asyncio.to_thread(release.wait, 30), timeout=10)
    assert answered
    assert asyncio.get_running_loop().time() == 0


async def test_advance_lets_time_pass_without_running_anything() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    ran: list[float] = []
    loop.call_later(5, lambda: ran.append(loop.time()))
    loop.advance(60)
    assert not ran
    await run_ready_tasks()
    assert ran == [60]


@pytest.mark.real_time
async def test_the_marker_gives_an_ordinary_loop() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
