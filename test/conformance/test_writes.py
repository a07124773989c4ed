"""What others hold is left alone: an object that exists is written only where the recording shows that Kubeflow's operator wrote it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from conformance.recordings import Stage, recorded_cases
from conformance.world import World
from e2e.audit import Request

CASES = {case.name: case for case in recorded_cases()}
LATER = [(name, index) for name, case in CASES.items() for index in range(1, len(case.stages))]
KINDS = {"jobs": "Job", "jobs/status": "Job", "services": "Service", "secrets": "Secret", "configmaps": "ConfigMap", "pods": "Pod"}
ENDS_THE_JOB = "worker-evicted"


def written(world: World, case: str, index: int) -> Sequence[Request]:
    """Return what the operator wrote of a case to get to that stage."""
    ends = world.lived[case].ends
    if index >= len(ends):
        pytest.fail(f"the stage was not reached: {world.lived[case].error}")
    begin = ends[index - 1] if index else 0.0
    return [each for each in world.writes[case] if begin < each.at <= ends[index]]


def made(stage: Stage, kind: str) -> Sequence[Any]:
    """Return what the operator makes of the objects of a kind: without what the Job controller and kubelets write."""
    return [_made(kind, each) for each in stage.objects[kind]]


def _made(kind: str, found: Mapping[str, Any]) -> Any:
    if kind == "Job":
        return found["metadata"], found["spec"]
    return found["metadata"]["name"] if kind == "Pod" else found


@pytest.mark.parametrize(("case", "index"), LATER, ids=[f"{name}-{index}-{CASES[name].stages[index].name}" for name, index in LATER])
def test_nothing_is_written_that_stays_as_it_is_in_the_recording(world: World, case: str, index: int) -> None:
    before, after = CASES[case].stages[index - 1 : index + 1]
    surplus_writes = [
        each
        for each in written(world, case, index)
        if each.what in KINDS and made(before, KINDS[each.what]) == made(after, KINDS[each.what]) and after.name != ENDS_THE_JOB
    ]
    assert surplus_writes == []


@pytest.mark.parametrize("case", CASES)
def test_what_was_just_created_is_not_written_again(world: World, case: str) -> None:
    verbs = [f"{each.verb} {each.what}" for each in written(world, case, 0)]
    assert [each for each in verbs if not each.startswith("create ") and each != "patch mpijobs/status"] == []
    assert verbs.count("patch mpijobs/status") <= 2


def test_a_client_that_holds_on_to_a_version_is_not_refused(world: World) -> None:
    assert world.held.error is None
    assert world.held.refused == []


def test_the_status_shows_how_a_launcher_failed_that_was_restarted_in_place(world: World) -> None:
    assert world.held.last_failure.get("reason") == "Error"
    assert world.held.last_failure["message"].endswith("container main exit code 3")
