"""The limits that users set: how often a program runs before its workers do, and workers that a kubelet rejects, which cost nothing."""

import json
import time

import pytest

from e2e.broken import container, one_worker
from e2e.causes import check_shown_soon
from e2e.jobs import annotated, condition, edit, launcher_container, let_workers_come, state, until_true, waiting_for, without_workers_yet
from e2e.kubectl import Kubectl, Obj
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS

WORKER = "pi-worker-0"
NO_ROOM = {"requests": {"cpu": "900"}}
REJECTIONS = "mpiop.kubeflow.org/rejections"


def failing(limit: int, **annotations: str) -> Obj:
    """Return a job whose program fails at once, although its workers have no node yet."""
    job = annotated(without_workers_yet(one_worker("pi")), **annotations)
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    job["spec"]["runPolicy"] = {"backoffLimit": limit, "cleanPodPolicy": "Running"}
    launcher_container(job)["command"] = ["sh", "-c", "echo wrong arguments; exit 2"]
    launcher_container(job).pop("args", None)
    return job


def runs(events: list[Obj]) -> int:
    """Return how often the program has run: a restart deletes a launcher Pod that ends just then."""
    started = [event for event in events if event["reason"] == "Started" and event["involvedObject"]["name"].startswith("pi-launcher-")]
    return sum(event["count"] for event in started)


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("restart_on", ["Infrastructure", "ExitCodes=3"])
def test_a_program_that_fails_before_its_workers_run_is_attempted_as_often_as_allowed(
    limit: int, restart_on: str, namespace: Kubectl
) -> None:
    namespace.apply(failing(limit, max_restarts="3", restart_on=restart_on))
    failed = until_true(namespace, "pi", "Failed")
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded/Error"
    assert "restarts" not in failed["status"]
    namespace.until(EVENTS, lambda events: runs(events) >= 1 + limit)
    time.sleep(15)  # until the Job controller would have begun another
    assert runs(namespace.read_all(EVENTS)) == 1 + limit


def test_any_failure_costs_the_budget_before_the_workers_run_too(namespace: Kubectl) -> None:
    namespace.apply(failing(0, max_restarts="1", restart_on="Any"))
    restarting = until_true(namespace, "pi", "Restarting")
    assert [row["reason"] for row in restarting["status"]["lastRestarts"]] == ["Error"]
    let_workers_come(namespace, "pi")
    failed = until_true(namespace, "pi", "Failed")
    assert condition(failed, "Failed")["reason"] == "ReachedMaxRestarts"
    namespace.until(EVENTS, lambda events: runs(events) == 2)


def without_room(here: Kubectl) -> Obj:
    """Return a job whose worker names a node on which it has no room."""
    job = one_worker("pi")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["template"]["spec"]["nodeName"] = here.run("get", "nodes", "--output=jsonpath={.items[0].metadata.name}")
    container(worker)["resources"] = NO_ROOM
    return job


@pytest.mark.parametrize("annotations", [{}, {"max_restarts": "3", "restart_on": "Any"}], ids=["no-budget", "budget"])
def test_a_worker_without_room_on_its_node_is_created_again_until_there_is_room(
    annotations: dict[str, str], namespace: Kubectl, cluster: Kubectl
) -> None:
    job = annotated(without_room(cluster), **annotations)
    job["spec"]["runPolicy"]["backoffLimit"] = 0
    namespace.apply(job)
    waits = waiting_for(namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "WorkerRejected"))
    check_shown_soon("pi", "WorkerRejected", namespace)
    node = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"]
    assert f"worker {WORKER} was rejected by the kubelet of node {node}: OutOfcpu: " in waits["message"]
    assert "The next Pod is created at 20" in waits["message"]
    assert " log" not in waits["message"]

    def is_third(found: Obj) -> bool:
        return found["metadata"]["annotations"].get(REJECTIONS) == "2" and found["status"]["phase"] == "Failed"

    namespace.until_one(PODS, WORKER, is_third, timeout_seconds=60)
    found = namespace.until_one(MPIJOBS, "pi", lambda found: "3 times in a row" in waiting_for(found).get("message", ""))
    assert waiting_for(found)["lastTransitionTime"] == waits["lastTransitionTime"], "one problem, reported once"
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    container(worker).pop("resources")
    edit(namespace, mpiReplicaSpecs={**job["spec"]["mpiReplicaSpecs"], "Worker": worker})
    ended = until_true(namespace, "pi", "Succeeded", timeout_seconds=120)
    assert not {"restarts", "attempts", "lastFailure"} & set(ended["status"])


def fail_pod(here: Kubectl, pod: str, reason: str) -> None:
    """Let a Pod without a node fail as a kubelet lets one that it rejects."""
    status = {"phase": "Failed", "reason": reason, "message": "Pod was rejected: Allocate failed due to no healthy devices"}
    here.run("patch", "pod", pod, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "TopologyAffinityError"])
def test_a_worker_that_its_kubelet_rejected_is_created_again(reason: str, namespace: Kubectl) -> None:
    job = without_workers_yet(one_worker("pi"))
    namespace.apply(job)
    first = namespace.until_one(PODS, WORKER, lambda found: "uid" in found["metadata"])["metadata"]["uid"]
    fail_pod(namespace, WORKER, reason)
    rejected = namespace.until_one(MPIJOBS, "pi", lambda found: state(found) == "WorkerRejected")
    assert f"{reason}: Pod was rejected: Allocate failed" in waiting_for(rejected)["message"]
    second = namespace.until_one(PODS, WORKER, lambda found: found["metadata"]["uid"] != first)
    assert second["metadata"]["annotations"][REJECTIONS] == "1"
    let_workers_come(namespace, "pi")
    ended = until_true(namespace, "pi", "Succeeded")
    assert not waiting_for(ended)
    assert "attempts" not in ended["status"]
