"""When a condition is rewritten, when its times move, and in which order it is."""

from datetime import UTC, datetime, timedelta

from mpiop.controller.status import conditions as cond

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
