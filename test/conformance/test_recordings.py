"""Each object is the one that Kubeflow's operator makes, field by field, at each stage; what differs is listed, with a reason."""

import re
from statistics import median

import pytest

from conformance.comparing import Difference, differences, listed, unlisted
from conformance.recordings import recorded_cases
from conformance.world import World
from demonstration.cluster import ROOT

CASES = {case.name: case for case in recorded_cases()}
STAGES = [(name, index) for name, case in CASES.items() for index in range(len(case.stages))]
ENTRIES = listed()


def found(world: World, case: str, index: int) -> tuple[str, list[Difference]]:
    """Return the name `case/stage` and how its objects differ from the recording."""
    stage = CASES[case].stages[index]
    return f"{case}/{stage.name}", differences(stage.objects, world.lived[case].stages[index])


@pytest.mark.parametrize(("case", "index"), STAGES, ids=[f"{name}-{index}-{CASES[name].stages[index].name}" for name, index in STAGES])
def test_objects_are_those_of_the_recording_but_for_listed_differences(world: World, case: str, index: int) -> None:
    lived = world.lived[case]
    if index >= len(lived.stages):
        pytest.fail(f"the stage was not reached: {lived.error}")
    stage, differing = found(world, case, index)
    unlisted_differences = unlisted(ENTRIES, differing, stage)
    assert not unlisted_differences, "not listed in differences.toml:\n" + "\n".join(map(str, unlisted_differences))


@pytest.mark.parametrize(("entry", "where"), [pytest.param(entry, where, id=where) for entry in ENTRIES for where in entry.where])
def test_each_listed_difference_occurs(world: World, entry: object, where: str) -> None:
    occurs = (
        entry.allows(each, stage, where)
        for case, index in STAGES
        if index < len(world.lived[case].stages)
        for stage, differing in (found(world, case, index),)
        for each in differing
    )
    assert any(occurs), "it does not: remove it from differences.toml"


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.where[0] for entry in ENTRIES])
def test_each_listed_difference_stands_on_the_compatibility_page(entry: object) -> None:
    path, _, anchor = entry.see.partition("#")
    assert re.search(rf'<a id="{re.escape(anchor)}">', (ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_what_a_job_needs_exists_soon(world: World, case: str) -> None:
    desired = CASES[case].stages[0].objects
    assert {kind for kind in ("Service", "ConfigMap", "Secret", "Job") if desired[kind]} <= world.lived[case].seconds.keys()


def test_what_a_job_needs_exists_within_a_second(world: World) -> None:
    """Of most jobs, because the machine may be busy with something else when one is created."""
    assert median(max(lived.seconds.values()) for lived in world.lived.values() if lived.seconds) <= 1.0
