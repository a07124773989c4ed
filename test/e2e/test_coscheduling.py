"""Gangs placed by the real coscheduling plugin, in a second scheduler that runs next to the control plane of a cluster of its own.

Definition, rights and configuration are those of its release. Ours are the profile's name, the kubeconfig, and how soon refused Pods are
tried again.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.clusters import ROOT, operator_cluster, output_shown
from e2e.conftest import NAME
from e2e.gangs import (
    SEAT,
    GangCluster,
    apply_with_important_workers,
    bound,
    patient,
    run_second_after_first,
    seated,
    seated_namespace,
    until_bound,
    until_refused,
)
from e2e.jobs import edit, held, launcher_pod, let_run, pi_job, until_true, until_waiting
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import build_program, module_folder
from embedded.build import programs_of
from embedded.layout import layout_of
from mpiop.kube.resources import COSCHEDULING_POD_GROUPS

CLUSTER = f"{NAME}-coscheduling"
PART = "coscheduling"
MODULE = "sigs.k8s.io/scheduler-plugins"
SCHEDULER = "scheduler-plugins-scheduler"
USER = "kube-scheduler"
"""Whose kubeconfig it has: the module's manifest gives this user the rights to PodGroups."""
LOOKS_AGAIN_SECONDS = 5
ROOM_SECONDS = 120
"""Until a refused gang has run: every 30 s the scheduler looks for Pods that were refused `LOOKS_AGAIN_SECONDS` ago."""
STOP_SECONDS = 10


def rights(module: Path) -> list[Obj]:
    """Return what the module's manifest gives a scheduler; the rest of it is a controller for PodGroup's status."""
    documents: list[Obj] = list(yaml.safe_load_all((module / "manifests/install/all-in-one.yaml").read_text(encoding="utf-8")))
    return [each for each in documents if each["metadata"]["name"] == "system:kube-scheduler:plugins"]


def configuration(module: Path) -> Obj:
    """Return the module's configuration, for a scheduler of our name on our cluster."""
    content: Obj = yaml.safe_load((module / "manifests/coscheduling/scheduler-config.yaml").read_text(encoding="utf-8"))
    content["clientConnection"]["kubeconfig"] = str(layout_of(CLUSTER).config / f"{USER}.kubeconfig")
    [profile] = content["profiles"]
    profile["schedulerName"] = SCHEDULER
    return content


@contextlib.contextmanager
def running_scheduler(module: Path, folder: Path) -> Iterator[None]:
    """Let the scheduler run; what it logs goes to build/e2e/."""
    file, log = folder / "scheduler.json", ROOT / "build" / "e2e" / "coscheduling-scheduler.log"
    file.write_text(json.dumps(configuration(module)), encoding="utf-8")
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = (f"--config={file}", "--secure-port=0", f"--pod-max-in-unschedulable-pods-duration={LOOKS_AGAIN_SECONDS}s")
    with (
        log.open("wb") as output,
        subprocess.Popen([programs_of((PART,))[PART], *flags], stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process,
    ):
        try:
            yield
            assert process.poll() is None, f"the scheduler ended; see {log.relative_to(ROOT)}"
        finally:
            process.kill()
            process.wait(STOP_SECONDS)


@pytest.fixture(scope="module")
def gang_cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[GangCluster]:
    """A cluster where the scheduler runs, and the operator that leaves its jobs to it."""
    with operator_cluster(CLUSTER, request) as cluster:
        with output_shown(request):
            build_program(PART)
        module = module_folder(PART, MODULE)
        cluster.run("apply", "-f", str(module / "manifests/coscheduling/crd.yaml"))
        cluster.apply(*rights(module))
        with running_scheduler(module, tmp_path_factory.mktemp("scheduler")):
            gang_cluster = GangCluster(cluster)
            gang_cluster.use(SCHEDULER)
            yield gang_cluster


@pytest.fixture
def here(gang_cluster: GangCluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A namespace of the test's own; its Pods have gone when the next test begins, for they take seats."""
    with seated_namespace(gang_cluster, request) as kubectl:
        yield kubectl


def until_group(here: Kubectl, **spec: object) -> None:
    """Return as soon as the PodGroup of the job `pi` reports this and nothing else."""
    here.until_one(COSCHEDULING_POD_GROUPS, "pi", lambda found: found["spec"] == spec)


def test_of_two_gangs_the_second_holds_no_pod_and_computes_when_the_first_has_ended(gang_cluster: GangCluster, here: Kubectl) -> None:
    refused = run_second_after_first(gang_cluster, here)
    assert {pod["spec"]["schedulerName"] for pod in refused} == {SCHEDULER}
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in refused} == {"second"}
    here.until_gone(COSCHEDULING_POD_GROUPS, "second")  # by cleanPodPolicy


def test_waiting_for_the_workers_does_not_wait_for_ever(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.make_room(1)
    here.apply(patient(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 2)) == []
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, scheduleTimeoutSeconds=0)
    gang_cluster.make_room(3)
    until_true(here, "pi", "Succeeded", timeout_seconds=ROOM_SECONDS)


def test_a_gang_that_is_content_with_fewer_pods_starts_with_them(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.make_room(2)
    here.apply(held(seated(pi_job("pi", workers=2))))
    assert bound(until_refused(here, "pi", 3)) == []
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": 2}})
    until_bound(here, "pi", 2)
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, scheduleTimeoutSeconds=0)
    gang_cluster.make_room(3)
    let_run(here, launcher_pod(here))
    until_true(here, "pi", "Succeeded", timeout_seconds=ROOM_SECONDS)


def test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.make_room(0)
    here.apply(seated(pi_job("pi", workers=2)))
    until_refused(here, "pi", 3)
    until_group(here, minMember=3, minResources={"cpu": "30m", SEAT: "3"}, scheduleTimeoutSeconds=0)
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": 2, "scheduleTimeoutSeconds": 7}})
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, scheduleTimeoutSeconds=7)
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": None, "scheduleTimeoutSeconds": None, "minResources": {"memory": "1Gi"}}})
    edit(here, mpiReplicaSpecs={"Worker": {"replicas": 3}})
    until_group(here, minMember=4, minResources={"memory": "1Gi"}, scheduleTimeoutSeconds=0)
    edit(here, runPolicy={"schedulingPolicy": {"minAvailable": 0}})
    stalled = until_waiting(here, "pi")
    assert "minMember" in stalled["message"], "its definition wants 1 at least"
    here.run("delete", "mpijob", "pi")
    here.until_gone(COSCHEDULING_POD_GROUPS, "pi")


def test_the_resources_of_the_group_are_those_of_its_most_important_pods(gang_cluster: GangCluster, here: Kubectl) -> None:
    gang_cluster.make_room(0)
    apply_with_important_workers(here)
    until_group(here, minMember=2, minResources={"cpu": "20m", SEAT: "2"}, scheduleTimeoutSeconds=0)
