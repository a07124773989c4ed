"""Letting a suspended launcher Job go: when, and what of it follows the MPIJob (KEP-2926)."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

import example_children
from example_children import OPTIONS
from example_jobs import MPIRUN, PI, with_launcher
from fakes.semantics import projected
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller import names
from mpiop.controller.observe import projections
from mpiop.controller.observe.pods import is_suspension_complete
from mpiop.controller.observe.stored_specs import Specs
from mpiop.controller.plan.suspension import unsuspend_patch
from mpiop.kube.resources import JOBS

STARTED = "2026-01-01T00:00:00Z"
SUSPENDED = [{"type": "Suspended", "status": "True"}]
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
TOLERATIONS = [{"key": "gpu", "operator": "Exists"}]
GATES = [{"name": "example.com/topology"}]


def launcher(*, job: MPIJob = PI, suspend: bool, **status: Any) -> Any:
    """Return the launcher Job as it is kept."""
    whole = projected(example_children.launcher(job=job, suspend=suspend, **status), projections.Job)
    return projections.trims(Specs())[JOBS](whole)


def with_directives(metadata: dict[str, Any] | None = None, **spec: Any) -> MPIJob:
    return with_launcher(PI, {"metadata": metadata or {}, "spec": {**MPIRUN["spec"], **spec}})


@pytest.mark.parametrize(
    ("status", "is_rest"),
    [
        ({}, True),
        ({"active": 0}, True),
        ({"active": 1}, False),
        ({"startTime": STARTED}, False),
        ({"startTime": STARTED, "conditions": SUSPENDED}, True),
        ({"startTime": STARTED, "conditions": SUSPENDED, "active": 1}, False),
        ({"conditions": SUSPENDED}, True),
    ],
    ids=str,
)
def test_a_launcher_is_at_rest_when_the_job_controller_has_suspended_it_or_it_never_ran(status: dict[str, Any], *, is_rest: bool) -> None:
    assert is_suspension_complete(launcher(suspend=True, **status)) == is_rest


class Case(NamedTuple):
    id: str
    made_from: MPIJob
    job: MPIJob
    template: dict[str, Any] | None


FULL = with_directives(nodeSelector={"a": "1", "b": "2"}, tolerations=TOLERATIONS, schedulingGates=GATES, affinity={"nodeAffinity": NODES})
CASES = [
    Case("nothing changed", PI, PI, None),
    Case(
        "given to one that had none",
        PI,
        FULL,
        {
            "spec": {
                "nodeSelector": {"a": "1", "b": "2"},
                "tolerations": TOLERATIONS,
                "schedulingGates": GATES,
                "affinity": {"nodeAffinity": NODES},
            }
        },
    ),
    Case(
        "taken from one that had them",
        FULL,
        PI,
        {
            "spec": {
                "nodeSelector": {"a": None, "b": None},
                "tolerations": [],
                "schedulingGates": [],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
            }
        },
    ),
    Case(
        "the selector of nodes is replaced, not merged",
        with_directives(nodeSelector={"a": "1", "b": "2"}),
        with_directives(nodeSelector={"b": "3"}),
        {"spec": {"nodeSelector": {"a": None, "b": "3"}}},
    ),
    Case(
        "labels and annotations are merged",
        with_directives({"labels": {"old": "1"}, "annotations": {"old": "1"}}),
        with_directives({"labels": {"new": "2"}, "annotations": {"new": "2"}}),
        {"metadata": {"labels": {"new": "2"}, "annotations": {"new": "2"}}},
    ),
    Case("affinity to pods is not a directive", PI, with_directives(affinity={"podAffinity": {}}), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_template_follows_in_the_patch_that_lets_it_go(case: Case) -> None:
    have = launcher(job=case.made_from, suspend=True)
    body, subresource = unsuspend_patch(case.job, have, OPTIONS)
    assert subresource == ""
    assert body["spec"] == {"suspend": False, **({"template": case.template} if case.template else {})}


def test_a_launcher_of_the_go_operator_is_not_said_to_have_what_only_ours_have() -> None:
    have = launcher(suspend=True)
    have["spec"]["template"]["metadata"]["annotations"] = {"theirs": "1"}
    body, _ = unsuspend_patch(with_directives({"annotations": {"new": "2"}}), have, OPTIONS)
    assert body["spec"]["template"] == {"metadata": {"annotations": {"new": "2"}}}


def test_a_start_time_that_locks_nothing_stays() -> None:
    have = launcher(suspend=True, startTime=STARTED, conditions=SUSPENDED)
    assert unsuspend_patch(PI, have, OPTIONS)[0]["spec"] == {"suspend": False}


def test_limits_follow_too_and_one_that_was_taken_away_is_left_to_the_server() -> None:
    before = replace(PI, run_policy=RunPolicy(backoff_limit=1, active_deadline_seconds=60))
    after = replace(PI, run_policy=RunPolicy(backoff_limit=0, ttl_seconds_after_finished=0))
    body, _ = unsuspend_patch(after, launcher(job=before, suspend=True), OPTIONS)
    assert body["spec"] == {"suspend": False, "backoffLimit": 0, "activeDeadlineSeconds": None, "ttlSecondsAfterFinished": 600}


@pytest.mark.parametrize(
    ("noted", "is_noted"), [("launcher's own", True), ("another", False), (None, False)], ids=["as made", "edited", "by the Go operator"]
)
def test_from_what_it_starts_is_noted_only_if_it_is_so(noted: str | None, *, is_noted: bool) -> None:
    have = launcher(suspend=True)
    if noted is None:
        have["metadata"]["annotations"] = {}
    elif noted == "another":
        have["metadata"]["annotations"][names.ANNOTATION_LAUNCHER_REVISION] = noted
    body, _ = unsuspend_patch(FULL, have, OPTIONS)
    assert ("annotations" in body["metadata"]) == is_noted
