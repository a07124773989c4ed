"""PodGroups and what marks their Pods, as Kubeflow's code makes them (docs/gang-scheduling.md); there is no recording of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.gangs import COSCHEDULING, PLAIN, SAID, VOLCANO, WAITING
from conformance.world import World

POLICY = {"minMember": 2, "minResources": {"cpu": "3"}}
COUNTED = {"minMember": 3, "minResources": {"cpu": "2500m", "memory": "2Gi", "example.com/gpu": "2"}}
"""Requests, limits where one is missing, of the two workers and the launcher."""
TWO_WORKERS = {"minMember": 2, "minResources": {"cpu": "2", "memory": "2Gi", "example.com/gpu": "2"}}
"""Those of the first two Pods: workers have the higher priority."""
SPECS = [
    pytest.param(VOLCANO, PLAIN, {**COUNTED, "queue": "annotated", "priorityClassName": "high"}, id="volcano: computed, annotated"),
    pytest.param(VOLCANO, SAID, {**POLICY, "queue": "q", "priorityClassName": "top"}, id="volcano: as the policy says"),
    pytest.param(COSCHEDULING, PLAIN, {**COUNTED, "scheduleTimeoutSeconds": 0}, id="coscheduling: computed"),
    pytest.param(COSCHEDULING, SAID, {**POLICY, "scheduleTimeoutSeconds": 30}, id="coscheduling: as the policy says"),
]


@pytest.mark.parametrize(("scheduler", "name", "spec"), SPECS)
def test_the_group_of_a_job(world: World, scheduler: str, name: str, spec: Mapping[str, Any]) -> None:
    assert world.gangs[scheduler].groups[name]["spec"] == spec


@pytest.mark.parametrize(
    ("scheduler", "spec"),
    [(VOLCANO, {**TWO_WORKERS, "priorityClassName": "high"}), (COSCHEDULING, {**TWO_WORKERS, "scheduleTimeoutSeconds": 0})],
)
def test_a_suspended_job_has_no_group_until_it_is_resumed(world: World, scheduler: str, spec: Mapping[str, Any]) -> None:
    gangs = world.gangs[scheduler]
    assert sorted(gangs.groups) == [PLAIN, SAID]
    assert sorted(gangs.groups_after) == [SAID, WAITING]
    assert gangs.groups_after[WAITING]["spec"] == spec


@pytest.mark.parametrize("scheduler", [VOLCANO, COSCHEDULING])
def test_a_group_belongs_to_its_job_and_has_no_app_label(world: World, scheduler: str) -> None:
    for name, group in world.gangs[scheduler].groups.items():
        [owner] = group["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == ("MPIJob", name, True, True)
        assert "app" not in group["metadata"].get("labels", {})


@pytest.mark.parametrize(
    ("scheduler", "where", "mark"),
    [(VOLCANO, "annotations", "scheduling.k8s.io/group-name"), (COSCHEDULING, "labels", "scheduling.x-k8s.io/pod-group")],
)
def test_pods_are_marked_and_left_to_the_scheduler(world: World, scheduler: str, where: str, mark: str) -> None:
    pods = world.gangs[scheduler].pods
    assert len(pods) == 6
    for pod in pods:
        assert pod["spec"]["schedulerName"] == scheduler
        assert pod["metadata"][where][mark] == pod["metadata"]["labels"]["training.kubeflow.org/job-name"]
