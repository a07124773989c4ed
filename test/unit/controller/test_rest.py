"""How long a job rests after a look at it."""

import asyncio

import pytest

from mpiop.controller.rest import LEAST_SECONDS, MOST_SECONDS, SECONDS_A_LOOK, SECONDS_A_WORKER, SECONDS_A_WORKER_IF_PRESSED, Rest
from mpiop.kube.objects import Key

KEY = Key("default", "pi")


@pytest.mark.parametrize(
    ("workers", "whole", "pressed"),
    [
        pytest.param(0, LEAST_SECONDS, LEAST_SECONDS, id="a launcher alone rests for an instant"),
        pytest.param(
            1000,
            LEAST_SECONDS + 1000 * SECONDS_A_WORKER,
            LEAST_SECONDS + 1000 * SECONDS_A_WORKER_IF_PRESSED,
            id="a large job longer, but not when there are pressing news",
        ),
        pytest.param(1_000_000, MOST_SECONDS, MOST_SECONDS, id="but none for ever"),
    ],
)
async def test_a_job_rests_by_its_size(workers: int, whole: float, pressed: float) -> None:
    rest = Rest()
    rest.begin(KEY, workers)
    assert rest.remaining_seconds(KEY) == pytest.approx(whole)
    assert rest.remaining_seconds(KEY, is_pressing=True) == pytest.approx(pressed)


async def test_a_job_rests_the_longer_the_more_looks_there_were_within_the_last_second() -> None:
    rest = Rest()
    for number in range(50):
        rest.begin(Key("default", f"other-{number}"), 0)
    rest.begin(KEY, 0)
    assert rest.remaining_seconds(KEY) == pytest.approx(LEAST_SECONDS + 50 * SECONDS_A_LOOK)
    await asyncio.sleep(1)
    rest.begin(KEY, 0)
    assert rest.remaining_seconds(KEY) == pytest.approx(LEAST_SECONDS)


async def test_a_rest_ends_by_itself_and_with_the_job_and_is_nobody_else_s() -> None:
    rest, other = Rest(), Key("default", "other")
    assert rest.remaining_seconds(KEY) == 0
    rest.begin(KEY, 1000)
    rest.begin(other, 1000)
    rest.forget(other)
    rest.forget(other)
    assert rest.remaining_seconds(other) == 0
    await asyncio.sleep(0.9)
    assert rest.remaining_seconds(KEY) == pytest.approx(0.15, abs=0.01)
    await asyncio.sleep(0.4)
    assert rest.remaining_seconds(KEY) == 0
