"""The status survives its way to the API server and back, and any wire form is read without failing."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiop.api.status import parse_status, state_of, status_to_wire, timestamp
from mpiop.api.status_types import Attempt, Condition, Failure, LostWorker, MPIJobStatus, ReplicaStatus, Restart, Summary

MORNING = datetime(2019, 7, 9, 22, 15, 51, tzinfo=UTC)
NOON = datetime(2019, 7, 9, 22, 17, 6, tzinfo=UTC)

STATUS = MPIJobStatus(
    conditions=(
        Condition("Created", "True", "MPIJobCreated", "MPIJob default/pi is created.", MORNING, MORNING),
        Condition("Running", "False", "", "", NOON, MORNING),
    ),
    replica_statuses={"Launcher": ReplicaStatus(succeeded=1), "Worker": ReplicaStatus()},
    start_time=MORNING,
    completion_time=NOON,
    last_failure=Failure("Error", "pod pi-launcher-x container launcher exit code 3"),
    summary=Summary(state="Succeeded", workers="2/2", duration="75s"),
)
WIRE = {
    "conditions": [
        {
            "type": "Created",
            "status": "True",
            "reason": "MPIJobCreated",
            "message": "MPIJob default/pi is created.",
            "lastUpdateTime": "2019-07-09T22:15:51Z",
            "lastTransitionTime": "2019-07-09T22:15:51Z",
        },
        {"type": "Running", "status": "False", "lastUpdateTime": "2019-07-09T22:17:06Z", "lastTransitionTime": "2019-07-09T22:15:51Z"},
    ],
    "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {}},
    "startTime": "2019-07-09T22:15:51Z",
    "completionTime": "2019-07-09T22:17:06Z",
    "lastFailure": {"reason": "Error", "message": "pod pi-launcher-x container launcher exit code 3"},
    "summary": {"state": "Succeeded", "workers": "2/2", "duration": "75s"},
}


def test_the_wire_form_is_that_of_the_go_operator_with_our_additions_last() -> None:
    assert list(status_to_wire(STATUS).items()) == list(WIRE.items())


def test_none_and_empty_are_left_out() -> None:
    assert status_to_wire(MPIJobStatus()) == {}


COUNTS = st.integers(0, 2**31 - 1)
TIMES = st.datetimes(datetime(1970, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)).map(lambda t: t.replace(microsecond=0))  # noqa: DTZ001 - hypothesis wants naive bounds and adds the zone
CONDITIONS = st.builds(Condition, st.text(min_size=1), st.sampled_from(["True", "False", "Unknown"]), st.text(), st.text(), TIMES, TIMES)
ATTEMPTS = st.builds(Attempt, COUNTS, st.text(min_size=1), st.text(), st.none() | TIMES, TIMES, COUNTS, st.text())
NODES = st.lists(st.text(min_size=1), max_size=3).map(tuple)
RESTARTS = st.builds(Restart, st.integers(1, 100), TIMES, st.text(), st.text(), NODES)
STATUSES = st.builds(
    MPIJobStatus,
    st.lists(CONDITIONS, unique_by=lambda condition: condition.type, max_size=6).map(tuple),
    st.dictionaries(st.sampled_from(["Launcher", "Worker"]), st.builds(ReplicaStatus, COUNTS, COUNTS, COUNTS)),
    st.none() | TIMES,
    st.none() | TIMES,
    st.none() | st.builds(Failure, st.text(min_size=1), st.text(), st.text()),
    st.lists(ATTEMPTS, max_size=3).map(tuple),
    st.none() | st.builds(LostWorker, st.text(), st.text(), st.text(), st.text(), TIMES, st.text()),
    COUNTS,
    st.lists(RESTARTS, max_size=3).map(tuple),
    NODES,
    st.builds(Summary, st.text(), st.text(), st.text(), st.text(), st.text()),
)


@given(STATUSES)
def test_every_status_makes_the_round_trip(status: MPIJobStatus) -> None:
    assert parse_status(status_to_wire(status)) == status


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["2019-07-09T22:15:51Z", "9999-12-31T23:59:59-12:00"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*WIRE, "type", "status", "lastUpdateTime", "Worker", "active", "state"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(WIRE, JSON)))
def test_any_wire_form_is_read_and_what_is_read_can_be_written(raw: Any) -> None:
    status = parse_status(raw)
    assert parse_status(status_to_wire(status)) == status


def test_of_two_conditions_with_one_type_the_later_one_counts_at_its_place() -> None:
    raw = [{"type": "Running", "status": "True"}, {"type": "Created", "status": "True"}, {"type": "Running", "status": "False"}]
    status = parse_status({"conditions": raw})
    assert [(condition.type, condition.status) for condition in status.conditions] == [("Created", "True"), ("Running", "False")]


def test_a_condition_without_times_takes_its_other_time_or_the_birth_of_the_object() -> None:
    raw: Any = [{"type": "A", "lastTransitionTime": "2019-07-09T22:17:06Z"}, {"type": "B", "status": "true", "lastUpdateTime": None}]
    first, second = parse_status({"conditions": raw}, created=MORNING).conditions
    assert (first.last_update_time, first.last_transition_time) == (NOON, NOON)
    assert (second.last_update_time, second.last_transition_time, second.status) == (MORNING, MORNING, "Unknown")


def test_only_the_observed_generation_may_be_negative() -> None:
    status = parse_status({"observedGeneration": -5, "restarts": -5, "replicaStatuses": {"Worker": {"active": -3}}})
    assert (status.observed_generation, status.restarts, status.replica_statuses["Worker"].active) == (-1, 0, 0)


def test_conditions_that_are_none_are_left_out() -> None:
    assert parse_status({"conditions": [None, 3, {}, {"type": 4}, {"status": "True"}]}).conditions == ()


TIMESTAMPS = {
    "seconds": ("2019-07-09T22:15:51Z", MORNING),
    "microseconds are dropped": ("2019-07-09T22:15:51.999999Z", MORNING),
    "another zone": ("2019-07-10T00:15:51+02:00", MORNING),
    "no zone": ("2019-07-09T22:15:51", MORNING),
    "Go's zero time": ("0001-01-01T00:00:00Z", None),
    "before the calendar begins": ("0001-01-01T00:00:00+14:00", None),
    "no time": ("yesterday", None),
    "no string": (1562710551, None),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("raw", "moment"), TIMESTAMPS.values(), ids=TIMESTAMPS.keys())
def test_timestamps(raw: object, moment: datetime | None) -> None:
    assert timestamp(raw) == moment


def test_finished_and_true_follow_the_conditions() -> None:
    status = parse_status({"conditions": [{"type": "Failed", "status": "True"}, {"type": "Running", "status": "False"}]})
    assert status.is_finished
    assert [status.is_true(type_) for type_ in ("Failed", "Running", "Created")] == [True, False, False]


@pytest.mark.parametrize("raw", [WIRE, None, {}, "x", {"summary": None}, {"summary": "x"}, {"summary": {"state": 7}}], ids=str)
def test_the_state_alone_is_that_of_the_whole_status(raw: object) -> None:
    assert state_of(raw) == parse_status(raw).summary.state
