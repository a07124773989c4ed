"""The table of conditions: what the end of a job does to each, and that conditions of others are left alone."""

from datetime import UTC, datetime, timedelta

import pytest

from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.condition_type import AtEnd, ConditionType
from mpiop.api.status_types import MPIJobStatus
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.outcomes import ended
from mpiop.controller.status.status import transitions
from mpiop.controller.write.job_log import changes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_a_condition_of_another_program_is_reported_nowhere() -> None:
    status = MPIJobStatus(conditions=(cond.make("Theirs", "True", "Reason", "message", NOON),))
    assert transitions(PI.key, MPIJobStatus(), status) == []
    assert list(changes(MPIJobStatus(), status)) == []


@pytest.mark.parametrize("at_end", AtEnd)
@pytest.mark.parametrize("end", [c.CONDITION_SUCCEEDED, c.CONDITION_FAILED])
def test_what_the_end_of_a_job_does(monkeypatch: pytest.MonkeyPatch, at_end: AtEnd, end: str) -> None:
    monkeypatch.setitem(c.CONDITION_TYPES, "Parched", ConditionType("Parched", at_end=at_end))  # type: ignore[arg-type]  # it is a dict
    parched = cond.make("Parched", "True", "NoWater", "no water for a day", NOON)
    status = ended(PI, MPIJobStatus(conditions=(parched,)), cond.make(end, "True", "Reason", "message", LATER), LATER)
    found = status.condition("Parched")
    has_failed = end == c.CONDITION_FAILED
    assert (found and (found.status, found.reason)) == {
        AtEnd.STAYS: ("True", "NoWater"),
        AtEnd.TURNS_FALSE: ("False", "NoWater"),
        AtEnd.IS_RESOLVED: ("False", "JobFailed" if has_failed else "Resolved"),
        AtEnd.IS_REMOVED: None,
    }[at_end]
