"""What remains of a job that has ended, by its `cleanPodPolicy` and `ttlSecondsAfterFinished`."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from example_children import launcher, observed, worker
from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.clock import parse_time
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.clean_up import state_after_end, ttl_seconds_left
from mpiop.controller.plan.desired import Presence

NOON = parse_time("2026-01-01T12:00:00Z")
COMPLETE = {"type": "Complete"}


def finished(policy: str, condition: str = c.CONDITION_SUCCEEDED) -> MPIJob:
    end = Condition(condition, "True", "", "", NOON, NOON)
    return replace(PI, run_policy=RunPolicy(clean_pod_policy=policy), status=MPIJobStatus(conditions=(end,), completion_time=NOON))


class Case(NamedTuple):
    id: str
    job: MPIJob
    observed: Observed
    want: dict[str, Any]


CASES = [
    Case(
        "a launcher that is still active stops",
        finished(c.CLEAN_NONE),
        observed(launcher=launcher()),
        {"launcher": Presence.ENSURE, "launcher_suspended": True},
    ),
    Case("All: an active launcher goes", finished(c.CLEAN_ALL), observed(launcher=launcher()), {"launcher": Presence.DELETE}),
    Case(
        "All: a finished launcher stays for its log",
        finished(c.CLEAN_ALL),
        observed(launcher=launcher(outcome=COMPLETE)),
        {"launcher": Presence.KEEP, "launcher_suspended": False},
    ),
    Case(
        "nothing is made",
        finished(c.CLEAN_NONE, c.CONDITION_FAILED),
        observed(),
        {"dependencies": Presence.KEEP, "worker_count": 0, "launcher": Presence.KEEP},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_remains(case: Case) -> None:
    result = state_after_end(case.job, case.observed, is_expired=False)
    assert {name: getattr(result, name) for name in case.want} == case.want


@pytest.mark.parametrize(
    ("policy", "kept"),
    [(c.CLEAN_NONE, {"Pending", "Running", "Succeeded", "Failed"}), (c.CLEAN_RUNNING, {"Succeeded", "Failed"}), (c.CLEAN_ALL, set[str]())],
)
def test_clean_up_keeps_by_policy(policy: str, kept: set[str]) -> None:
    result = state_after_end(finished(policy), observed(launcher=launcher(outcome=COMPLETE)), is_expired=False)
    assert {phase for phase in ("Pending", "Running", "Succeeded", "Failed") if result.keep_worker(worker(0, phase))} == kept


def test_an_expired_job_keeps_nothing() -> None:
    for policy in (c.CLEAN_NONE, c.CLEAN_RUNNING, c.CLEAN_ALL):
        result = state_after_end(finished(policy), observed(launcher=launcher(outcome=COMPLETE)), is_expired=True)
        assert (result.dependencies, result.launcher, result.worker_count) == (Presence.DELETE, Presence.DELETE, 0)
        assert not any(result.keep_worker(worker(0, phase)) for phase in ("Pending", "Running", "Succeeded", "Failed"))


@pytest.mark.parametrize(
    ("ttl", "seconds_later", "left"), [(None, 0, None), (60, 0, 60), (60, 45, 15), (60, 60, 0), (60, 100, 0), (0, 0, 0)], ids=str
)
def test_the_time_to_live_counts_from_the_end(ttl: int | None, seconds_later: int, left: float | None) -> None:
    job = finished(c.CLEAN_NONE)
    job = replace(job, run_policy=replace(job.run_policy, ttl_seconds_after_finished=ttl))
    assert ttl_seconds_left(job, NOON + timedelta(seconds=seconds_later)) == left
    assert ttl_seconds_left(replace(job, status=MPIJobStatus()), NOON) is None
