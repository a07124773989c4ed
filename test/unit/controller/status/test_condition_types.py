"""The table of conditions: a row drives events, log, summary, the end of a job, and the reference page."""

from datetime import UTC, datetime, timedelta

import pytest

from example_jobs import PI
from generators.conditions import conditions_page
from mpiop.api import constants as c
from mpiop.api.condition_type import AtEnd, Change, ConditionType, Meaning, State
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.outcomes import ended
from mpiop.controller.status.status import transitions
from mpiop.controller.status.summary import summarized
from mpiop.controller.write.job_log import changes

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_a_condition_of_another_program_is_reported_nowhere() -> None:
    status = MPIJobStatus(conditions=(cond.make("Theirs", "True", "Reason", "message", NOON),))
    assert transitions(PI.key, MPIJobStatus(), status) == []
    assert list(changes(MPIJobStatus(), status)) == []


PARCHED = ConditionType(
    "Parched",
    meanings=(Meaning("True", "NoWater", "the job has had no water"), Meaning("False", "Watered", "it has water again")),
    changes={"True": Change("Warning", "job parched", event_message="{job} is parched"), "Watered": Change("Normal", "job watered")},
    at_end=AtEnd.TURNS_FALSE,
    rank=100,
    state=State.TYPE,
    explains=True,
)


def parched(status: str = "True", reason: str = "NoWater") -> Condition:
    return cond.make(PARCHED.type, status, reason, "no water for a day", NOON)


def test_a_row_is_all_that_a_new_condition_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = conditions_page()
    monkeypatch.setitem(c.CONDITION_TYPES, PARCHED.type, PARCHED)  # type: ignore[arg-type]  # it is a dict
    dry, wet = MPIJobStatus(conditions=(parched(),)), MPIJobStatus(conditions=(parched("False", "Watered"),))
    assert [(each.type, each.reason, each.message) for each in transitions(PI.key, MPIJobStatus(), dry)] == [
        ("Warning", "NoWater", "default/pi is parched")
    ]
    assert [(each.type, each.reason) for each in transitions(PI.key, dry, wet)] == [("Normal", "Watered")]
    assert list(changes(MPIJobStatus(), dry)) == [("job parched", {"reason": "NoWater", "message": "no water for a day"})]
    assert [phrase for phrase, _ in changes(dry, wet)] == ["job watered"]
    summary = summarized(PI, Observed(), dry)
    assert (summary.state, summary.message) == ("Parched", "no water for a day")
    failed = ended(PI, dry, cond.make(c.CONDITION_FAILED, "True", "Error", "exit code 1", LATER), LATER)
    assert failed.condition("Parched") == cond.change((parched(),), "Parched", status="False")[0]
    assert set(conditions_page().splitlines()) - set(page.splitlines()) == {
        "| `Parched` | True, `NoWater` | the job has had no water | Warning `NoWater` |",
        "| `Parched` | False, `Watered` | it has water again | Normal `Watered` |",
    }


@pytest.mark.parametrize("at_end", AtEnd)
@pytest.mark.parametrize("end", [c.CONDITION_SUCCEEDED, c.CONDITION_FAILED])
def test_what_the_end_of_a_job_does(monkeypatch: pytest.MonkeyPatch, at_end: AtEnd, end: str) -> None:
    monkeypatch.setitem(c.CONDITION_TYPES, PARCHED.type, ConditionType(PARCHED.type, at_end=at_end))  # type: ignore[arg-type]  # a dict
    status = ended(PI, MPIJobStatus(conditions=(parched(),)), cond.make(end, "True", "Reason", "message", LATER), LATER)
    found = status.condition(PARCHED.type)
    has_failed = end == c.CONDITION_FAILED
    assert (found and (found.status, found.reason)) == {
        AtEnd.STAYS: ("True", "NoWater"),
        AtEnd.TURNS_FALSE: ("False", "NoWater"),
        AtEnd.IS_RESOLVED: ("False", "JobFailed" if has_failed else "Resolved"),
        AtEnd.IS_REMOVED: None,
    }[at_end]
