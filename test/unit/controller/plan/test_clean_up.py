"""How long a job that has ended still lives, by its `ttlSecondsAfterFinished`."""

from dataclasses import replace
from datetime import timedelta

import pytest

from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.api.types import RunPolicy
from mpiop.clock import parse_time
from mpiop.controller.plan.clean_up import ttl_seconds_left

NOON = parse_time("2026-01-01T12:00:00Z")
END = Condition(c.CONDITION_SUCCEEDED, "True", "", "", NOON, NOON)
FINISHED = replace(PI, status=MPIJobStatus(conditions=(END,), completion_time=NOON))


@pytest.mark.parametrize(
    ("ttl", "seconds_later", "left"), [(None, 0, None), (60, 0, 60), (60, 45, 15), (60, 60, 0), (60, 100, 0), (0, 0, 0)], ids=str
)
def test_the_time_to_live_counts_from_the_end(ttl: int | None, seconds_later: int, left: float | None) -> None:
    job = replace(FINISHED, run_policy=RunPolicy(ttl_seconds_after_finished=ttl))
    assert ttl_seconds_left(job, NOON + timedelta(seconds=seconds_later)) == left
    assert ttl_seconds_left(replace(job, status=MPIJobStatus()), NOON) is None
