"""Gang scheduling: with Kubernetes' own scheduler a gang that does not fit holds no Pod, and starts when there is room.

Of Volcano and of the coscheduling plugin the API is here, not the scheduler (docs/gang-scheduling.md says why): what the operator does for
them is tested, what they make of it is not.
"""

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime

import pytest

from demonstration.cluster import Cluster
from demonstration.operator_images import apply_operator, built_archives
from e2e.clusters import embedded_cluster, project
from e2e.conftest import new_namespace
from e2e.gangs import (
    CLUSTER,
    GATES,
    NATIVE,
    NATIVE_KINDS,
    SCHEDULED_SECONDS,
    SEAT,
    Ground,
    bound,
    bound_at,
    edit_run_policy,
    patient,
    seated,
    until_bound,
    until_refused,
)
from e2e.jobs import LAUNCHER, condition, gated, is_true, launcher_pod, open_gate, pi_job, until_true
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import module_folder
from mpiop.kube.resources import COSCHEDULING_POD_GROUPS, EVENTS, MPIJOBS, NATIVE_POD_GROUPS_1_36, PODS, VOLCANO_POD_GROUPS

COSCHEDULING = "my-coscheduler"
COSCHEDULING_MODULE = "sigs.k8s.io/scheduler-plugins@v0.34.7"
VOLCANO_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {
        "group": "scheduling.volcano.sh",
        "scope": "Namespaced",
        "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""Stands in for Volcano's own: the group, version and names, and no word about the fields."""


@pytest.fixture(scope="module")
def ground(is_current_cluster: bool, request: pytest.FixtureRequest) -> Iterator[Ground]:  # noqa: FBT001 - a fixture
    """A cluster of its own: Kubernetes' gangs are behind feature gates."""
    if is_current_cluster:
        pytest.skip("the user's own cluster may have no gangs, and its operator is left alone")
    with contextlib.ExitStack() as stack:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            cluster = stack.enter_context(embedded_cluster(CLUSTER, *GATES))
            project("hack/cluster", "load-image", "--name", CLUSTER, *built_archives())
        apply_operator(Cluster(is_current=False, environment=cluster.environment))
        yield Ground(cluster)


@pytest.fixture
def here(ground: Ground, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own; its Pods have gone when the next test begins, for they take seats."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:50].strip("-")
    with new_namespace(ground.cluster, name, request.session) as kubectl:
        yield kubectl
    kubectl.until(PODS, lambda pods: not pods)


def min_count(here: Kubectl) -> int:
    """Return how many Pods the job's gang waits for."""
    count: int = here.read(NATIVE_POD_GROUPS_1_36, "pi")["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return count


def test_without_gangs_a_job_that_does_not_fit_holds_what_it_got(ground: Ground, here: Kubectl) -> None:
    ground.use("")
    ground.make_room(2)
    here.apply(seated(pi_job("pi", workers=2)))
    until_bound(here, "pi", 2)
    assert len(until_refused(here, "pi", 3)) == 3


def test_a_gang_that_does_not_fit_holds_no_pod_and_computes_when_there_is_room(ground: Ground, here: Kubectl) -> None:
    ground.use(NATIVE)
    ground.make_room(2)
    here.apply(seated(pi_job("pi", workers=2)))
    assert bound(until_refused(here, "pi", 3)) == []
    assert condition(until_true(here, "pi", "Stalled"), "Stalled")["reason"] == "Unschedulable"
    assert min_count(here) == 3
    assert bound(here.read_all(PODS)) == []
    ground.make_room(3)
    until_true(here, "pi", "Succeeded")
    [launcher] = here.read_all(PODS, LAUNCHER)
    assert re.search(r"\b3\.14\d+", here.run("logs", launcher["metadata"]["name"]))
    for kind in NATIVE_KINDS:
        here.until_gone(kind, "pi")  # by cleanPodPolicy


def test_of_two_gangs_the_second_starts_when_the_first_has_ended(ground: Ground, here: Kubectl) -> None:
    ground.use(NATIVE)
    ground.make_room(5)
    here.apply(gated(seated(pi_job("first", workers=2))))
    first = launcher_pod(here)
    here.apply(seated(pi_job("second", workers=2)))
    assert bound(until_refused(here, "second", 3)) == []
    open_gate(here, first)
    until_true(here, "first", "Succeeded")
    ended = datetime.fromisoformat(here.read(PODS, first)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"])
    assert min(map(bound_at, until_bound(here, "second", 3))) >= ended, "not one Pod was bound before"
    until_true(here, "second", "Succeeded")


def test_waiting_for_the_workers_does_not_wait_for_ever(ground: Ground, here: Kubectl) -> None:
    ground.use(NATIVE)
    ground.make_room(1)
    here.apply(patient(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 2)) == []
    assert min_count(here) == 2
    ground.make_room(3)
    until_true(here, "pi", "Succeeded")


def test_a_suspended_gang_gives_its_seats_back_and_is_a_new_one_afterwards(ground: Ground, here: Kubectl) -> None:
    ground.use(NATIVE)
    ground.make_room(3)
    here.apply(gated(seated(pi_job("pi", workers=2))))
    launcher_pod(here)
    before = {here.read(kind, "pi")["metadata"]["uid"] for kind in NATIVE_KINDS}
    edit_run_policy(here, suspend=True)
    here.until(PODS, lambda pods: not pods)
    for kind in NATIVE_KINDS:
        here.until_gone(kind, "pi")
    edit_run_policy(here, suspend=False, schedulingPolicy={"minAvailable": 2})
    open_gate(here, launcher_pod(here))
    assert before.isdisjoint({here.read(kind, "pi")["metadata"]["uid"] for kind in NATIVE_KINDS})
    assert min_count(here) == 2, "a changed policy takes effect with the start"
    until_true(here, "pi", "Succeeded")


def test_resumed_at_once_a_job_waits_until_its_old_gang_has_gone(ground: Ground, here: Kubectl) -> None:
    ground.use(NATIVE)
    ground.make_room(3)
    here.apply(gated(seated(pi_job("pi", workers=2))))
    launcher = launcher_pod(here)
    edit_run_policy(here, suspend=True)
    until_true(here, "pi", "Suspended")
    edit_run_policy(here, suspend=False)
    here.until(PODS, lambda pods: launcher not in [pod["metadata"]["name"] for pod in pods])
    open_gate(here, launcher_pod(here))
    until_true(here, "pi", "Succeeded")


def marked(pods: list[Obj], scheduler: str) -> None:
    """Check that the Pods are to be placed by `scheduler`, and that none is: it does not run."""
    assert {pod["spec"]["schedulerName"] for pod in pods} == {scheduler}
    assert bound(pods) == []


def test_without_its_api_a_job_says_so_and_goes_on_when_it_is_installed(ground: Ground, here: Kubectl) -> None:
    ground.use("volcano")
    job = seated(pi_job("pi", workers=2))
    job["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "research", "priorityClass": "system-node-critical"}
    here.apply(job)
    stalled = condition(until_true(here, "pi", "Stalled"), "Stalled")
    assert stalled["reason"] == "GangApiMissing"
    assert "install Volcano" in stalled["message"]
    assert here.read_all(PODS) == []
    here.until(EVENTS, lambda events: "GangApiMissing" in [event["reason"] for event in events])
    ground.cluster.apply(VOLCANO_DEFINITION)
    pods = here.until(PODS, lambda found: len(found) == 3, timeout_seconds=SCHEDULED_SECONDS)
    marked(pods, "volcano")
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {"pi"}
    assert here.read(VOLCANO_POD_GROUPS, "pi")["spec"] == {
        "minMember": 3,
        "minResources": {"cpu": "30m", SEAT: "3"},
        "queue": "research",
        "priorityClassName": "system-node-critical",
    }
    here.until_one(MPIJOBS, "pi", lambda found: not is_true(found, "Stalled"))


def test_the_group_of_coscheduling_follows_the_policy_and_the_number_of_workers(ground: Ground, here: Kubectl) -> None:
    # With its version said, no part has to be built of the module.
    ground.cluster.run("apply", "-f", str(module_folder("kwok", COSCHEDULING_MODULE) / "manifests/coscheduling/crd.yaml"))
    ground.use(COSCHEDULING)
    here.apply(seated(pi_job("pi", workers=2)))
    pods = here.until(PODS, lambda found: len(found) == 3)
    marked(pods, COSCHEDULING)
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in pods} == {"pi"}

    def follows(**spec: object) -> None:
        here.until_one(COSCHEDULING_POD_GROUPS, "pi", lambda found: found["spec"] == spec)

    follows(minMember=3, minResources={"cpu": "30m", SEAT: "3"}, scheduleTimeoutSeconds=0)
    edit_run_policy(here, schedulingPolicy={"minAvailable": 2, "scheduleTimeoutSeconds": 7})
    follows(minMember=2, minResources={"cpu": "20m", SEAT: "2"}, scheduleTimeoutSeconds=7)
    edit_run_policy(here, schedulingPolicy={"minAvailable": None, "scheduleTimeoutSeconds": None, "minResources": {"memory": "1Gi"}})
    here.run("patch", "mpijob", "pi", "--type=merge", "--patch", '{"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}}')
    follows(minMember=4, minResources={"memory": "1Gi"}, scheduleTimeoutSeconds=0)
    edit_run_policy(here, schedulingPolicy={"minAvailable": 0})
    until_true(here, "pi", "Stalled")
    assert "minMember" in condition(here.read(MPIJOBS, "pi"), "Stalled")["message"], "its definition wants 1 at least"
