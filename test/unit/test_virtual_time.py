"""A standstill of the virtual loop is an error: without it, a test that waits for nothing would hang."""

import asyncio

import pytest

from virtual_time import StandstillError, VirtualTimeLoop


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
