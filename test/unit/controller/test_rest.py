"""How long a job rests after a look at it."""

import asyncio

import pytest

from mpiop.controller.rest import MOST_SECONDS, SECONDS_A_LOOK, SECONDS_A_WORKER, SHARE_IF_PRESSED, USUAL_SECONDS, Rest
from mpiop.kube.objects import Key

KEY = Key("default", "pi")


@pytest.mark.parametrize(
    ("workers", "whole", "pressed"),
    [
        pytest.param(0, USUAL_SECONDS, USUAL_SECONDS * SHARE_IF_PRESSED, id="a launcher alone for an instant when there is pressing news"),
        pytest.param(
            1000,
            USUAL_SECONDS + 1000 * SECONDS_A_WORKER,
            (USUAL_SECONDS + 1000 * SECONDS_A_WORKER) * SHARE_IF_PRESSED,
            id="a large job longer, but not when there is pressing news",
        ),
        pytest.param(1_000_000, MOST_SECONDS, MOST_SECONDS, id="but none for ever"),
    ],
)
async def test_a_job_rests_by_its_size(workers: int, whole: float, pressed: float) -> None:
    rest = Rest()
    rest.begin(KEY, workers, 0)
    assert rest.remaining_seconds(KEY) == pytest.approx(whole)
    assert rest.remaining_seconds(KEY, is_pressing=True) == pytest.approx(pressed)


async def test_a_job_rests_the_longer_the_more_looks_there_were_within_the_last_second() -> None:
    rest = Rest()
    for number in range(50):
        rest.begin(Key("default", f"other-{number}"), 0, 0)
    rest.begin(KEY, 0, 0)
    assert rest.remaining_seconds(KEY) == pytest.approx(USUAL_SECONDS + 50 * SECONDS_A_LOOK)
    assert rest.remaining_seconds(KEY, is_pressing=True) == pytest.approx((USUAL_SECONDS + 50 * SECONDS_A_LOOK) * SHARE_IF_PRESSED)
    await asyncio.sleep(1)
    rest.begin(KEY, 0, 0)
    assert rest.remaining_seconds(KEY, is_pressing=True) == pytest.approx(USUAL_SECONDS * SHARE_IF_PRESSED)


async def test_a_rest_ends_by_itself_and_with_the_job_and_is_nobody_else_s() -> None:
    rest, other = Rest(), Key("default", "other")
    assert rest.remaining_seconds(KEY) == 0
    rest.begin(KEY, 1000, 0)
    rest.begin(other, 1000, 0)
    rest.forget(other)
    rest.forget(other)
    assert rest.remaining_seconds(other) == 0
    await asyncio.sleep(1.8)
    assert rest.remaining_seconds(KEY) == pytest.approx(0.2, abs=0.03)
    await asyncio.sleep(0.4)
    assert rest.remaining_seconds(KEY) == 0


async def test_a_job_that_has_ended_rests_as_long_as_any() -> None:
    rest = Rest()
    rest.begin(KEY, 0, 0, has_ended=True)
    assert rest.remaining_seconds(KEY) == pytest.approx(MOST_SECONDS)
    assert rest.remaining_seconds(KEY, is_pressing=True) == pytest.approx(USUAL_SECONDS * SHARE_IF_PRESSED)


async def test_whether_a_job_had_ended_is_as_it_was_looked_at_last() -> None:
    rest = Rest()
    assert not rest.has_ended(KEY)
    for has_ended in (True, False):
        rest.begin(KEY, 0, 0, has_ended=has_ended)
        assert rest.has_ended(KEY) == has_ended


async def test_the_last_worker_is_the_last_of_those_that_the_last_look_missed() -> None:
    rest, other = Rest(), Key("default", "other")
    assert not rest.note_ready(KEY), "nothing is known of it"
    rest.begin(KEY, 4, 2)
    rest.begin(other, 1, 1)
    assert [rest.note_ready(KEY) for _ in range(4)] == [False, True, False, False]
    rest.begin(KEY, 4, 1)
    assert rest.note_ready(KEY)
    rest.forget(other)
    assert not rest.note_ready(other)


async def test_a_look_that_came_too_early_ends_the_rest_and_is_known_until_the_next_one() -> None:
    rest = Rest()
    rest.begin(KEY, 1000, 0)
    assert not rest.was_missed(KEY)
    rest.miss(KEY)
    assert rest.was_missed(KEY)
    assert rest.remaining_seconds(KEY) == 0
    rest.begin(KEY, 1000, 0)
    assert not rest.was_missed(KEY)
    rest.miss(KEY)
    rest.forget(KEY)
    assert not rest.was_missed(KEY)
