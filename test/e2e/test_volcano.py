"""Gangs placed by the real Volcano: its scheduler and its controllers, by the manifest of its release, on a cluster of its own.

Its admission webhooks are left out: most manage Volcano's own jobs and queues, and one refuses a PodGroup whose queue is not there or
not open; without it the gang waits for the queue.
"""

import re
from collections.abc import Iterator
from datetime import datetime

import pytest

from e2e.causes import check_shown_soon
from e2e.clusters import operator_cluster, output_shown
from e2e.conftest import NAME
from e2e.gangs import (
    SEAT,
    GangCluster,
    apply_with_important_workers,
    bound,
    bound_at,
    check_pi,
    patient,
    run_second_after_first,
    seated,
    seated_namespace,
    until_bound,
    until_refused,
)
from e2e.jobs import edit, held, launcher_pod, let_run, pi_job, until_true, until_waiting
from e2e.kubectl import Kubectl
from e2e.neighbours import load_program, module_folder
from mpiop.kube.resources import PODS, VOLCANO_POD_GROUPS, Resource

CLUSTER = f"{NAME}-volcano"
MODULE = "volcano.sh/volcano"
SCHEDULER = "volcano"
PROGRAMS = ("vc-scheduler", "vc-controller-manager")
DEPLOYMENTS = ("volcano-scheduler", "volcano-controllers")
ADMISSION = "name: volcano-admission"
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)


def released_manifest() -> str:
    """Return the manifest of Volcano's release without its webhooks."""
    whole = (module_folder("volcano", MODULE) / "installer" / "volcano-development.yaml").read_text(encoding="utf-8")
    documents = [each for each in re.split(r"^---\n", whole, flags=re.MULTILINE) if ADMISSION not in each]
    # The images would be pulled whatever is on the node.
    return "---\n".join(documents).replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")


@pytest.fixture(scope="module")
def gang_cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[GangCluster]:
    """A cluster where the operator leaves its jobs to Volcano, and Volcano's images are, but not Volcano."""
    folder = tmp_path_factory.mktemp("volcano")
    with operator_cluster(CLUSTER, request) as cluster:
        with output_shown(request):
            for program in PROGRAMS:
                [image] = re.findall(rf"image: (\S+/{program}:\S+)", released_manifest())
                load_program(CLUSTER, program, f"/{program}", image, folder / f"{program}.tar")
        gang_cluster = GangCluster(cluster)
        gang_cluster.use(SCHEDULER)
        yield gang_cluster


@pytest.fixture(scope="module")
def volcano(gang_cluster: GangCluster) -> GangCluster:
    """The same, and Volcano runs."""
    gang_cluster.cluster.run("apply", "--server-side", "-f", "-", stdin=released_manifest())
    for deployment in DEPLOYMENTS:
        system = gang_cluster.cluster.within("volcano-system")
        system.run("rollout", "status", f"deployment/{deployment}", "--timeout=120s", timeout_seconds=130)
    return gang_cluster


@pytest.fixture
def here(gang_cluster: GangCluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own; its Pods have gone when the next test begins, for they take seats."""
    with seated_namespace(gang_cluster, request) as kubectl:
        yield kubectl


def until_group(here: Kubectl, **spec: object) -> None:
    """Return as soon as the PodGroup of the job `pi` reports this and nothing else."""
    here.until_one(VOLCANO_POD_GROUPS, "pi", lambda found: found["spec"] == spec)


def test_without_its_api_a_job_says_so_and_runs_when_it_is_installed(
    gang_cluster: GangCluster, here: Kubectl, request: pytest.FixtureRequest
) -> None:
    gang_cluster.make_room(3)
    here.apply(seated(pi_job("pi", workers=2)))
    stalled = until_waiting(here, "pi")
    assert stalled["reason"] == "GangApiMissing"
    assert "install Volcano" in stalled["message"]
    assert here.read_all(PODS) == []
    check_shown_soon("pi", "GangApiMissing", here)
    request.getfixturevalue("volcano")
    until_true(here, "pi", "Succeeded")
    check_pi(here, "pi")


def test_of_two_gangs_the_second_holds_no_pod_and_computes_when_the_first_has_ended(volcano: GangCluster, here: Kubectl) -> None:
    refused = run_second_after_first(volcano, here)
    assert {pod["spec"]["schedulerName"] for pod in refused} == {SCHEDULER}
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in refused} == {"second"}
    here.until_gone(VOLCANO_POD_GROUPS, "second")  # by cleanPodPolicy


def test_waiting_for_the_workers_does_not_wait_for_ever(volcano: GangCluster, here: Kubectl) -> None:
    volcano.make_room(1)
    here.apply(patient(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 2)) == []
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, queue="default")
    volcano.make_room(3)
    until_true(here, "pi", "Succeeded")


def test_a_gang_that_is_content_with_fewer_pods_starts_with_them(volcano: GangCluster, here: Kubectl) -> None:
    volcano.make_room(2)
    here.apply(held(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 3)) == []
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": 2}})
    until_bound(here, "pi", 2)
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, queue="default")
    volcano.make_room(3)
    let_run(here, launcher_pod(here))
    until_true(here, "pi", "Succeeded")


def test_a_gang_waits_in_the_queue_that_the_policy_names(volcano: GangCluster, here: Kubectl) -> None:
    volcano.make_room(3)
    job = seated(pi_job("pi", workers=2))
    job["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "research"}
    here.apply(job)
    here.until(PODS, lambda pods: len(pods) == 3)
    until_group(here, minMember=3, minResources={"cpu": "30m", SEAT: "3"}, queue="research")
    here.apply({"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "research"}, "spec": {"weight": 1}})
    opened = datetime.fromisoformat(volcano.cluster.read(QUEUES, "research")["metadata"]["creationTimestamp"])
    assert min(map(bound_at, until_bound(here, "pi", 3))) >= opened, "before there was no such queue"
    until_true(here, "pi", "Succeeded")


def test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job(volcano: GangCluster, here: Kubectl) -> None:
    volcano.make_room(0)
    here.apply(seated(pi_job("pi", workers=2)))
    until_refused(here, "pi", 3)
    until_group(here, minMember=3, minResources={"cpu": "30m", SEAT: "3"}, queue="default")
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": 2, "priorityClass": "system-node-critical"}})
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, queue="default", priorityClassName="system-node-critical")
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": None, "minResources": {"memory": "1Gi"}}})
    edit(here, mpiReplicaSpecs={"Worker": {"replicas": 3}})
    until_group(here, minMember=4, minResources={"memory": "1Gi"}, queue="default", priorityClassName="system-node-critical")
    here.run("delete", "mpijob", "pi")
    here.until_gone(VOLCANO_POD_GROUPS, "pi")


def test_the_resources_of_the_group_are_those_of_its_most_important_pods(volcano: GangCluster, here: Kubectl) -> None:
    volcano.make_room(0)
    apply_with_important_workers(here)
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, queue="default", priorityClassName="e2e-important")
