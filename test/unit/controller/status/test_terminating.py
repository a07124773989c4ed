"""Children that stay Terminating while the job waits for their end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, service, stored, worker
from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.status_types import Condition
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status.terminating import LATE_SECONDS, terminating_problem
from mpiop.kube.resources import COSCHEDULING_POD_GROUPS

OVER = datetime(2026, 1, 1, tzinfo=UTC)
"""The end of the grace period."""
LATE = OVER + timedelta(seconds=LATE_SECONDS)
HELD = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/held", "batch.kubernetes.io/job-tracking"]}
UNCONFIRMED = HELD | {"finalizers": ["batch.kubernetes.io/job-tracking"]}
SUSPENDED = replace(PI, run_policy=RunPolicy(suspend=True))
POD_GROUP = stored(service(), "x", **HELD)
LOST = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]


def ended(job: MPIJob) -> MPIJob:
    row = Condition(c.CONDITION_FAILED, "True", "x", "", OVER, OVER)
    return replace(job, status=replace(job.status, conditions=(row,)))


def on_node(pod: Any) -> Any:
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-2"}}


def with_launcher(phase: str, **metadata: Any) -> Observed:
    return observed(launcher=stored(launcher(), "x", **metadata), launcher_pods=(launcher_pod(phase, metadata=HELD),))


class Case(NamedTuple):
    id: str
    observation: Observed
    message: str | None
    job: MPIJob = PI
    reason: str = "StuckTerminating"


SINCE = "whose grace period ended at 2026-01-01T00:00:00Z"
UNKNOWN = "is still Terminating: it has no finalizers, but its end is not confirmed. "
HAS = "is still Terminating: it has the finalizers example.com/held. "
CASES = [
    Case("nothing is Terminating", observed(worker(0), worker(1)), None),
    Case(
        "a worker",
        observed(on_node(worker(1, metadata=HELD))),
        f"Pod pi-worker-1 on node node-2, {SINCE}, {HAS}",
    ),
    Case("a worker that has ended", observed(worker(1, "Failed", metadata=HELD)), f"Pod pi-worker-1, {SINCE}, {HAS}"),
    Case("a worker whose kubelet is silent", observed(worker(1, metadata=UNCONFIRMED)), f"Pod pi-worker-1, {SINCE}, {UNKNOWN}"),
    Case("a worker on a lost node", observed(worker(1, metadata=UNCONFIRMED, conditions=LOST)), "pod pi-worker-1 ", reason="NodeLost"),
    Case("a worker on a lost node, with a finalizer", observed(worker(1, metadata=HELD, conditions=LOST)), "Pod pi-worker-1"),
    Case("a worker whose name nobody needs", observed(worker(7, metadata=HELD)), None),
    Case("a worker of a suspended job", observed(worker(7, metadata=HELD)), "Pod pi-worker-7", SUSPENDED),
    Case("a worker of a job that has ended", observed(worker(0, metadata=HELD)), None, ended(PI)),
    Case("a launcher", with_launcher("Running"), "Pod pi-launcher-x"),
    Case("a launcher that has ended, so that another may start", with_launcher("Failed"), None),
    Case("a launcher that has ended, and whose Job waits for it", with_launcher("Failed", **UNCONFIRMED), "Pod pi-launcher-x"),
    Case("the launcher Job", observed(launcher=stored(launcher(), "x", **HELD)), f"Job pi-launcher, {SINCE}, {HAS}"),
    Case("the Service", replace(observed(), service=stored(service(), "x", **HELD)), f"Service pi, {SINCE}, {HAS}"),
    Case("the PodGroup", replace(observed(), gang={COSCHEDULING_POD_GROUPS: POD_GROUP}), f"PodGroup pi, {SINCE}, {HAS}"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_a_job_waits_for_is_reported_a_minute_after_its_grace_period(case: Case) -> None:
    early = LATE - timedelta(seconds=1)
    assert terminating_problem(case.job, case.observation, early) == (None, None if case.message is None else 1)
    found, next_seconds = terminating_problem(case.job, case.observation, LATE)
    assert next_seconds is None
    assert (found and found.reason) == (None if case.message is None else case.reason)
    assert case.message is None or (found is not None and found.message.startswith(case.message))
