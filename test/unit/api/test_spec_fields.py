"""The table of spec fields: a row is all that a field needs besides the attribute that it sets and the code that uses it."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from fakes.world import mpijob
from generators.api import api_page
from generators.crd import custom_resource_definition
from mpiop.api import parse
from mpiop.api.annotation_row import Hashed
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.spec_field import Choice, Integer, SpecField
from mpiop.api.spec_fields import RUN_POLICY, SPEC, SPEC_FIELDS
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.api.validation import validate
from mpiop.controller.objects.revision import launcher_revision, start_revision


@dataclass(frozen=True, slots=True)
class TintedJob(MPIJob):
    """A job with a field that does not exist."""

    tint: str = ""


@dataclass(frozen=True, slots=True)
class PacedPolicy(RunPolicy):
    """A run policy with a field that does not exist."""

    pace_seconds: int | None = None


TINT = SpecField(
    name="tint",
    field="tint",
    kind=Choice(("red", "blue")),
    default="red",
    help="Tint of its pods.",
    in_revision=Hashed(1000, lambda tint: "" if tint == "red" else tint),
)
PACE = SpecField(
    name="paceSeconds",
    field="pace_seconds",
    kind=Integer(),
    help="Seconds between two steps.",
    in_revision=Hashed(1001, lambda pace: "" if pace is None else str(pace)),
)


def parsed(tint: Any = None, pace: Any = None) -> MPIJob:
    job = mpijob(tint=tint, runPolicy={"paceSeconds": pace})
    return parse_mpijob({**job, "metadata": {**job["metadata"], "uid": "u"}})


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """Add the rows, and return the reference page and the revisions of a job as they were without them."""
    before = api_page(), launcher_revision(parsed()), start_revision(parsed())
    table = cast("dict[str, tuple[SpecField, ...]]", SPEC_FIELDS)
    monkeypatch.setitem(table, SPEC, (*SPEC_FIELDS[SPEC], TINT))
    monkeypatch.setitem(table, RUN_POLICY, (*SPEC_FIELDS[RUN_POLICY], PACE))
    monkeypatch.setattr(parse, "MPIJob", TintedJob)
    monkeypatch.setattr(parse, "RunPolicy", PacedPolicy)
    return before


@pytest.mark.usefixtures("before")
def test_a_new_field_is_parsed_and_has_its_default() -> None:
    for job, tint, pace in ((parsed("blue", 3), "blue", 3), (parsed(), "red", None)):
        assert isinstance(job, TintedJob)
        assert isinstance(job.run_policy, PacedPolicy)
        assert (job.tint, job.run_policy.pace_seconds) == (tint, pace)


@pytest.mark.usefixtures("before")
def test_a_new_field_is_refused_with_its_path() -> None:
    assert validate(parsed("blue", 3)) == ()
    assert validate(parsed("green", -1)) == (
        'spec.tint: Unsupported value: "green": supported values: "red", "blue"',
        "spec.runPolicy.paceSeconds: Invalid value: -1: must be 0 or more",
    )
    with pytest.raises(ParseError) as caught:
        parsed(1, "2")
    assert [line.partition(": ")[0] for line in caught.value.errors] == ["spec.tint", "spec.runPolicy.paceSeconds"]


def test_a_new_field_counts_in_revisions_and_leaves_those_that_are_stored(before: tuple[str, str, str]) -> None:
    jobs = [parsed(), parsed("blue"), parsed(pace=3), parsed("blue", 3)]
    revisions = [(launcher_revision(job), start_revision(job)) for job in jobs]
    assert revisions[0] == before[1:]
    assert len({launcher for launcher, _ in revisions}) == len({start for _, start in revisions}) == len(jobs)


def test_a_new_field_is_documented_and_in_the_crd(before: tuple[str, str, str]) -> None:
    assert set(api_page().splitlines()) - set(before[0].splitlines()) == {
        "| `tint` | `red`, `blue` | Tint of its pods. Default: red. |",
        "| `paceSeconds` | integer | Seconds between two steps. |",
    }
    spec = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert spec["tint"] == {"type": "string", "description": "Tint of its pods. Default: red.", "enum": ["red", "blue"], "default": "red"}
    assert spec["runPolicy"]["properties"]["paceSeconds"]["minimum"] == 0
