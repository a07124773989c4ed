"""Writes that may wait: how long, by job, by topic, and in a crowd."""

import asyncio

import pytest

from fakes.world import KEY
from mpiop.controller.pace import CALM_SECONDS, COMPANY_SECONDS, SETTLE_SECONDS, Pace
from mpiop.kube.objects import Key
from virtual_time import VirtualClock


@pytest.mark.parametrize(
    ("others", "seconds"),
    [
        pytest.param(0, 1.0, id="alone: by the second"),
        pytest.param(9, 1.0, id="a few jobs do not slow each other down"),
        pytest.param(49, 8.0, id="many jobs together write five times a second"),
        pytest.param(10_000, 10.0, id="but none waits longer than ten seconds"),
    ],
)
async def test_a_job_writes_the_more_rarely_the_more_jobs_write(others: int, seconds: float) -> None:
    pace = Pace(1.0, VirtualClock())
    pace.wrote(KEY, "status")
    for number in range(others):
        pace.wrote(Key("default", f"other-{number}"), "status")
    assert pace.remaining_seconds(KEY, "status") == pytest.approx(seconds)


async def test_a_crowd_that_has_gone_slows_nobody_down() -> None:
    pace = Pace(1.0, VirtualClock())
    for number in range(100):
        pace.wrote(Key("default", f"other-{number}"), "status")
    await asyncio.sleep(10)
    pace.wrote(KEY, "status")
    assert pace.remaining_seconds(KEY, "status") == pytest.approx(1)
    await asyncio.sleep(0.6)
    assert pace.remaining_seconds(KEY, "status") == pytest.approx(0.4)


async def test_topics_and_jobs_do_not_wait_for_each_other_and_a_longer_interval_can_be_asked_for() -> None:
    pace = Pace(1.0, VirtualClock())
    assert pace.remaining_seconds(KEY, "status") == 0
    pace.wrote(KEY, "status")
    assert pace.remaining_seconds(KEY, "hosts") == 0
    assert pace.remaining_seconds(Key("default", "other"), "status") == 0
    assert pace.remaining_seconds(KEY, "status", 30) == pytest.approx(30)
    pace.forget(KEY)
    assert pace.remaining_seconds(KEY, "status") == 0


async def test_in_a_crowd_the_first_word_about_a_job_waits_some_seconds_and_no_longer() -> None:
    pace = Pace(1.0, VirtualClock())
    assert pace.company_seconds(KEY) == 0, "alone"
    for number in range(20):
        pace.wrote(Key("default", f"other-{number}"), "status")
    other = Key("default", "other")
    assert pace.company_seconds(other) == pytest.approx(COMPANY_SECONDS)
    await asyncio.sleep(1)
    assert pace.company_seconds(other) == pytest.approx(COMPANY_SECONDS - 1)
    await asyncio.sleep(COMPANY_SECONDS - 1)
    assert pace.company_seconds(other) == 0
    pace.forget(other)
    assert pace.company_seconds(other) == pytest.approx(COMPANY_SECONDS), "another of that name"


async def test_names_settle_from_when_they_are_all_there() -> None:
    pace = Pace(1.0, VirtualClock())
    assert pace.settling_seconds(KEY) == SETTLE_SECONDS
    pace.settles(KEY, has_names=True)
    await asyncio.sleep(0.6)
    pace.settles(KEY, has_names=True)
    assert pace.settling_seconds(KEY) == pytest.approx(SETTLE_SECONDS - 0.6)
    pace.settles(KEY, has_names=False)
    assert pace.settling_seconds(KEY) == SETTLE_SECONDS
    pace.settles(KEY, has_names=True)
    await asyncio.sleep(SETTLE_SECONDS)
    assert pace.settling_seconds(KEY) == 0
    pace.forget(KEY)
    assert pace.settling_seconds(KEY) == SETTLE_SECONDS, "another of that name"


async def test_what_may_wait_for_others_waits_some_seconds_longer() -> None:
    pace, other = Pace(1.0, VirtualClock()), Key("default", "other")
    assert pace.bustle_seconds(KEY) == 0
    pace.stirs(KEY)
    pace.stirs(KEY)
    assert pace.bustle_seconds(KEY) == 0, "it does not wait for itself"
    assert pace.bustle_seconds(other) == pytest.approx(CALM_SECONDS)
    await asyncio.sleep(1)
    pace.stirs(other)
    assert pace.bustle_seconds(KEY) == pytest.approx(CALM_SECONDS)
    assert pace.bustle_seconds(other) == pytest.approx(CALM_SECONDS - 1)
    await asyncio.sleep(CALM_SECONDS)
    assert pace.bustle_seconds(KEY) == pace.bustle_seconds(other) == 0


async def test_what_has_ended_does_not_wait_while_a_job_finds_no_room_even_if_that_is_deleted_then() -> None:
    pace, other = Pace(1.0, VirtualClock()), Key("default", "other")
    pace.stirs(other)
    pace.needs_room(other, is_needed=True)
    assert pace.bustle_seconds(KEY) == 0
    pace.forget(other)
    assert pace.bustle_seconds(KEY) == pytest.approx(CALM_SECONDS)
