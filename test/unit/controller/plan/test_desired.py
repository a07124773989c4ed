"""Which children should exist, situation by situation."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, service, worker
from example_jobs import PI, with_workers
from mpiop.api import constants as c
from mpiop.api.restart import RestartPolicy
from mpiop.api.status_types import Condition, MPIJobStatus, ReplicaStatus
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.clock import format_time, parse_time
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.desired import Presence, desired_state
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.kube.objects import Object
from mpiop.kube.resources import VOLCANO_POD_GROUPS

NOON = parse_time("2026-01-01T12:00:00Z")
SUSPENDED = replace(PI, run_policy=RunPolicy(suspend=True))
PATIENT = replace(PI, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY)
RESUMED = replace(PI, status=MPIJobStatus(conditions=(Condition(c.CONDITION_SUSPENDED, "True", "", "", NOON, NOON),)))
OTHER = replace(PI, slots_per_worker=2)
READY = (worker(0), worker(1))
EVICTED = worker(1, "Failed", reason="Evicted")
FAILED, PENDING = worker(1, "Failed"), worker(1, "Pending")
RESILIENT = replace(PI, restart=RestartPolicy(3))
RESTARTING = replace(PI, status=MPIJobStatus(restarts=1))
HELD = launcher(suspend=True)
COMPLETE = {"type": "Complete"}


def gang_of(*workers: Object) -> Observed:
    """Return an observation of a gang whose launcher is held."""
    return replace(observed(*workers, launcher=HELD), gang={VOLCANO_POD_GROUPS: service()})


ENSURE, KEEP, DELETE = Presence
WAITS, GOES_ON = {"launcher_suspended": True}, {"launcher_suspended": False}
HOLDS = {"launcher": ENSURE, **WAITS}


class Case(NamedTuple):
    id: str
    job: MPIJob
    observed: Observed
    want: dict[str, Any] | None


CASES = [
    Case(
        "new: everything at once",
        PI,
        observed(),
        {"dependencies": ENSURE, "worker_count": 2, "launcher": ENSURE, "launcher_suspended": False},
    ),
    Case("patient: a worker that has ended keeps the launcher from being made", PATIENT, observed(worker(0), FAILED), {"launcher": DELETE}),
    Case("restarting: the launcher stops", RESTARTING, observed(*READY, launcher=launcher()), WAITS),
    Case("restarting: it waits for a new worker", RESTARTING, observed(worker(0), launcher=HELD), WAITS),
    Case("restarting: … instead of one that failed", RESTARTING, observed(worker(0), FAILED, launcher=HELD), WAITS),
    Case("restarting: … until that is Ready", RESTARTING, observed(worker(0), PENDING, launcher=HELD), WAITS),
    Case("restarting: … unless the gang needs it", RESTARTING, gang_of(worker(0), PENDING), GOES_ON),
    Case("restarting: it waits for its old pod", RESTARTING, observed(*READY, launcher=HELD, launcher_pods=(launcher_pod(),)), WAITS),
    Case("restarting: it goes on", RESTARTING, observed(*READY, launcher=HELD), GOES_ON),
    Case("no workers desired is ready", with_workers(PI, 0), observed(), {"worker_count": 0, "launcher": ENSURE}),
    Case("patient: no launcher before its workers", PATIENT, observed(worker(0)), {"launcher": DELETE, "worker_count": 2}),
    Case("patient: the launcher when they are ready", PATIENT, observed(*READY), {"launcher": ENSURE, "launcher_suspended": False}),
    Case("patient: a launcher that never ran is held", PATIENT, observed(launcher=HELD), HOLDS),
    Case("patient: unsuspended when ready", PATIENT, observed(*READY, launcher=HELD), GOES_ON),
    Case("patient: not held again for a worker that comes back", PATIENT, observed(worker(0), launcher=launcher()), GOES_ON),
    Case(
        "suspended: launcher suspended, no workers",
        SUSPENDED,
        observed(*READY, launcher=launcher()),
        {"dependencies": ENSURE, "worker_count": 0, "launcher": ENSURE, "launcher_suspended": True},
    ),
    Case(
        "suspended and patient: the launcher exists",
        replace(SUSPENDED, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY),
        observed(),
        HOLDS,
    ),
    Case("launcher done, end not recorded: hands off", PI, observed(*READY, launcher=launcher(outcome=COMPLETE)), None),
    Case(
        "launcher gone that was there, end not recorded: hands off, it must not run twice",
        replace(PI, status=MPIJobStatus(replica_statuses={c.LAUNCHER: ReplicaStatus(active=1)})),
        observed(*READY),
        None,
    ),
    Case(
        "launcher gone while suspended: made again",
        replace(SUSPENDED, status=MPIJobStatus(replica_statuses={c.LAUNCHER: ReplicaStatus()})),
        observed(),
        HOLDS,
    ),
    Case("resumed: unsuspended", RESUMED, observed(launcher=HELD), {"launcher": ENSURE, "launcher_suspended": False}),
    Case(
        "resumed with what a Job cannot follow: made anew",
        RESUMED,
        observed(launcher=launcher(job=OTHER, suspend=True)),
        {"launcher": DELETE},
    ),
    Case(
        "but not before the old one has come to rest",
        RESUMED,
        observed(launcher=launcher(job=OTHER, suspend=True, active=1)),
        HOLDS,
    ),
    Case("suspended: an evicted worker goes like the others", SUSPENDED, observed(worker(0), EVICTED), {"worker_count": 0}),
    Case(
        "a worker evicted before the resume and still terminating ends nothing",
        PI,
        observed(worker(0), worker(1, "Failed", reason="Evicted", metadata={"deletionTimestamp": "x"})),
        {"worker_count": 2},
    ),
    Case("worker evicted, end not recorded: hands off", PI, observed(worker(0), EVICTED, launcher=launcher()), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_desired(case: Case) -> None:
    result = desired_state(launcher_attempt(case.job, case.observed), NOON)
    if case.want is None or result is None:
        assert (result, case.want) == (None, None)
        return
    assert {name: getattr(result, name) for name in case.want} == case.want


@pytest.mark.parametrize("job", [PI, SUSPENDED], ids=["scaled down", "suspended"])
def test_before_the_end_no_surplus_worker_is_kept_not_even_a_finished_one(job: MPIJob) -> None:
    result = desired_state(launcher_attempt(job, observed()), NOON)
    assert result is not None
    assert not any(result.keep_worker(worker(0, phase)) for phase in ("Pending", "Running", "Succeeded", "Failed"))


@pytest.mark.parametrize(("age", "left"), [(0, 10), (4, 6), (10, None), (60, None)], ids=str)
def test_a_worker_that_has_ended_is_replaced_when_it_is_ten_seconds_old(age: int, left: float | None) -> None:
    evicted = worker(1, "Failed", reason="Evicted", metadata={"creationTimestamp": format_time(NOON - timedelta(seconds=age))})
    result = desired_state(launcher_attempt(RESILIENT, observed(worker(0), evicted, launcher=launcher())), NOON)
    assert result is not None
    assert result.replace_worker(evicted) == (left is None)
    assert result.next_seconds == left
