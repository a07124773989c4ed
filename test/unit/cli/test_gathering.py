"""Events that come one by one are taken together, a few of them at once."""

import asyncio
import selectors
import socket
from collections.abc import Iterator

import pytest

from mpiop.cli.gathering import GATHERING_SECONDS, WAKES_A_SECOND, WAKES_AT_ONCE, GatheringSelector, gathering_loop


class Time:
    """A clock that goes on while somebody rests."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.rests = 0

    def now(self) -> float:
        return self.seconds

    def rest(self, seconds: float) -> None:
        self.seconds += seconds
        self.rests += 1


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def busy(time: Time) -> Iterator[GatheringSelector]:
    """Return a selector that always has something."""
    here, there = socket.socketpair()
    with here, there, GatheringSelector(time.now, time.rest) as selector:
        there.send(b"x")
        selector.register(here, 1)
        yield selector


def test_a_few_events_are_taken_as_they_come(busy: GatheringSelector, time: Time) -> None:
    for _ in range(WAKES_AT_ONCE):
        assert len(busy.select()) == 1
    assert time.rests == 0


def test_many_gather(busy: GatheringSelector, time: Time) -> None:
    for _ in range(1000):
        assert len(busy.select()) == 1
    assert time.rests >= 1000 - WAKES_AT_ONCE - WAKES_A_SECOND * time.seconds
    busy_seconds, time.seconds = time.seconds, time.seconds + WAKES_AT_ONCE / WAKES_A_SECOND
    for _ in range(WAKES_AT_ONCE):
        busy.select()
    assert time.seconds == busy_seconds + WAKES_AT_ONCE / WAKES_A_SECOND, "after a calm, again as they come"


def test_what_is_ready_to_run_is_not_delayed(busy: GatheringSelector, time: Time) -> None:
    for _ in range(1000):
        assert len(busy.select(0)) == 1
    assert time.rests == 0


def test_the_rest_is_part_of_the_waiting(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []
    monkeypatch.setattr(selectors.DefaultSelector, "select", lambda _, timeout: waited.append(timeout))
    with GatheringSelector(time.now, time.rest) as selector:
        for _ in range(WAKES_AT_ONCE):
            selector.select(1.0)
        for timeout in (1.0, GATHERING_SECONDS / 2, None):
            selector.select(timeout)
    assert waited == [*[1.0] * WAKES_AT_ONCE, 1.0 - GATHERING_SECONDS, 0.0, None]


def test_the_loop_works() -> None:
    loop = gathering_loop()
    try:

        async def work() -> int:
            for _ in range(3 * WAKES_AT_ONCE):
                await asyncio.sleep(1e-4)
            return 5

        assert loop.run_until_complete(work()) == 5
    finally:
        loop.close()
