"""What the tests of gang scheduling share: a cluster whose node has as many seats as a test sets, and jobs whose Pods take one each."""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pytest

from e2e.conftest import namespace_of_test
from e2e.jobs import LAUNCHER, condition, held, launcher_container, launcher_pod, let_run, pi_job, until_true, until_waiting
from e2e.kubectl import DEPLOYMENTS, Kubectl, Obj
from e2e.operator_pods import Operator
from mpiop.kube.resources import NATIVE_POD_GROUPS_1_36, PODS, WORKLOADS_1_36

CLUSTER = "e2e-gang"
GATES = ("--feature-gates=GenericWorkload=true,GangScheduling=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")
NATIVE = "kubernetes"
NATIVE_KINDS = (NATIVE_POD_GROUPS_1_36, WORKLOADS_1_36)
SEAT = "example.com/seat"
"""An extended resource: there are as many as a test sets, on any machine."""
SCHEDULED_SECONDS = 60
_JOB = "training.kubeflow.org/job-name="
_DEPLOYMENT = "mpi-operator"


@dataclass
class GangCluster:
    """The cluster, and which gang scheduling its operator was started with: "" is off, None not known."""

    cluster: Kubectl
    scheduler: str | None = None

    @property
    def operator(self) -> Kubectl:
        return self.cluster.within("mpi-operator")

    def use(self, scheduler: str) -> None:
        """Let one replica of the operator run with `--gang-scheduling=scheduler` and lead, ready or not."""
        if scheduler == self.scheduler:
            return
        container = self.operator.read(DEPLOYMENTS, _DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]
        arguments = [each for each in container["args"] if "gang-scheduling" not in each]
        arguments += [f"--gang-scheduling={scheduler}"] if scheduler else []
        Operator(self.operator).stop()
        patch = [
            {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments},
            {"op": "replace", "path": "/spec/replicas", "value": 1},
        ]
        self.operator.run("patch", "deployment", _DEPLOYMENT, "--type=json", "--patch", json.dumps(patch))
        Operator(self.operator).until_led()
        self.scheduler = scheduler

    def make_room(self, seats: int) -> None:
        """Let the node have so many seats."""
        [node] = json.loads(self.cluster.run("get", "nodes", "-o", "json"))["items"]
        patch = {"status": {"capacity": {SEAT: str(seats)}, "allocatable": {SEAT: str(seats)}}}
        self.cluster.run("patch", "node", node["metadata"]["name"], "--subresource=status", "--patch", json.dumps(patch))


@contextlib.contextmanager
def seated_namespace(gang_cluster: GangCluster, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """Yield a namespace of the test's own, whose Pods have gone when the next test begins, for they take seats."""
    with namespace_of_test(gang_cluster.cluster, request) as here:
        yield here
    here.until(PODS, lambda pods: not pods)


def seated(job: Obj) -> Obj:
    """Return `job` with each of its Pods taking a seat."""
    for spec in job["spec"]["mpiReplicaSpecs"].values():
        container = spec["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "10m", SEAT: "1"}, "limits": {SEAT: "1"}}
    job["spec"].setdefault("runPolicy", {})["cleanPodPolicy"] = "Running"
    return job


def patient(job: Obj) -> Obj:
    """Return `job` whose launcher comes when its workers are Ready."""
    job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return job


def bound(pods: list[Obj]) -> list[str]:
    """Return the names of those Pods that have a node."""
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def until_refused(here: Kubectl, name: str, pods: int) -> list[Obj]:
    """Return the `pods` Pods of the job as soon as its scheduler was seen to have judged one of them and found no room."""

    def is_judged(found: list[Obj]) -> bool:
        return len(found) == pods and any(condition(pod, "PodScheduled").get("reason") == "Unschedulable" for pod in found)

    return here.until(PODS, is_judged, labels=f"{_JOB}{name}", timeout_seconds=SCHEDULED_SECONDS)


def until_bound(here: Kubectl, name: str, pods: int) -> list[Obj]:
    """Return the Pods of the job as soon as `pods` of them have a node."""
    return here.until(PODS, lambda found: len(bound(found)) == pods, labels=f"{_JOB}{name}", timeout_seconds=SCHEDULED_SECONDS)


def bound_at(pod: Obj) -> datetime:
    return datetime.fromisoformat(condition(pod, "PodScheduled")["lastTransitionTime"])


def run_second_after_first(gang_cluster: GangCluster, here: Kubectl) -> list[Obj]:
    """Run the jobs `first` and `second` to their ends where there is no room for both, and return the second's Pods as they were refused.

    Checks that the first held the room alone: not one Pod of the second was bound before the first had ended.
    """
    gang_cluster.make_room(5)
    here.apply(held(seated(pi_job("first", workers=2))))
    first = launcher_pod(here)
    here.apply(seated(pi_job("second", workers=2)))
    refused = until_refused(here, "second", 3)
    assert bound(refused) == []
    assert until_waiting(here, "second")["reason"] == "Unschedulable"
    let_run(here, first)
    until_true(here, "first", "Succeeded")
    ended = datetime.fromisoformat(here.read(PODS, first)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"])
    assert min(map(bound_at, until_bound(here, "second", 3))) >= ended, "not one Pod was bound before"
    until_true(here, "second", "Succeeded")
    check_pi(here, "second")
    return refused


def check_pi(here: Kubectl, name: str) -> None:
    """Check that the launcher of a job that succeeded has computed π."""
    [launcher] = here.read_all(PODS, f"{LAUNCHER},{_JOB}{name}")
    assert re.search(r"\b3\.14\d+", here.run("logs", launcher["metadata"]["name"]))


def apply_with_important_workers(here: Kubectl) -> None:
    """Submit the job `pi`, a gang of two whose workers have a higher priority, and fewer requests, than its launcher."""
    here.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "e2e-important"}, "value": 1000})
    job = seated(pi_job("pi", workers=2))
    launcher_container(job)["resources"]["requests"]["cpu"] = "500m"
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = "e2e-important"
    job["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 2}
    here.apply(job)
