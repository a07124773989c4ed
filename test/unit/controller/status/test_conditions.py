"""When a condition is rewritten, when its times move, in which order it is, and what the end of a job does to it."""

from datetime import UTC, datetime, timedelta

import pytest

from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.status_types import MPIJobStatus
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.outcomes import ended
from mpiop.controller.status.status import transitions
from mpiop.controller.write.job_log import changes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
RUNNING = cond.make("Running", "True", "MPIJobRunning", "runs", NOON)
CREATED = cond.make("Created", "True", "MPIJobCreated", "is there", NOON)


def test_a_message_alone_is_no_change() -> None:
    again = cond.make("Running", "True", "MPIJobRunning", "other words", LATER)
    assert cond.set_condition((RUNNING, CREATED), again) == (RUNNING, CREATED)


def test_another_reason_is_written_at_the_end_but_the_transition_time_stays() -> None:
    changed = cond.set_condition((RUNNING, CREATED), cond.make("Running", "True", "Other", "runs", LATER))
    assert [condition.type for condition in changed] == ["Created", "Running"]
    assert changed[-1].last_transition_time == NOON
    assert changed[-1].last_update_time == LATER


def test_another_status_moves_the_transition_time() -> None:
    changed = cond.set_condition((RUNNING,), cond.make("Running", "False", "MPIJobSuspended", "is suspended", LATER))
    assert changed[-1].last_transition_time == LATER


def test_turning_false_leaves_times_reason_and_place() -> None:
    turned = cond.turn_false((RUNNING, CREATED), "Running")
    assert [condition.type for condition in turned] == ["Running", "Created"]
    assert turned[0].status == "False"
    assert (turned[0].reason, turned[0].last_transition_time, turned[0].last_update_time) == ("MPIJobRunning", NOON, NOON)
    assert turned[1] == CREATED


def test_a_condition_of_another_program_is_reported_nowhere() -> None:
    status = MPIJobStatus(conditions=(cond.make("Theirs", "True", "Reason", "message", NOON),))
    assert transitions(PI.key, MPIJobStatus(), status) == []
    assert list(changes(MPIJobStatus(), status)) == []


@pytest.mark.parametrize(
    ("type_", "succeeded", "failed"),
    [
        (c.CONDITION_CREATED, ("True", "Reason"), ("True", "Reason")),
        (c.CONDITION_RUNNING, ("False", "Reason"), ("False", "Reason")),
        (c.CONDITION_DEGRADED, ("False", "Resolved"), ("False", "JobFailed")),
        (c.CONDITION_RECONCILING, None, None),
    ],
)
def test_what_the_end_of_a_job_does(type_: str, succeeded: tuple[str, str] | None, failed: tuple[str, str] | None) -> None:
    status = MPIJobStatus(conditions=(cond.make(type_, "True", "Reason", "message", NOON),))
    for end, want in ((c.CONDITION_SUCCEEDED, succeeded), (c.CONDITION_FAILED, failed)):
        found = ended(PI.key, status, cond.make(end, "True", "Reason", "message", LATER), LATER).condition(type_)
        assert (found and (found.status, found.reason)) == want
