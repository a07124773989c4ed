"""What happens when something goes wrong in the middle: the launcher fails, a worker dies, the operator is restarted or killed."""

import contextlib
import json
import re

import pytest

from e2e.conftest import new_namespace
from e2e.jobs import (
    LAUNCHER,
    WORKER,
    condition,
    edit,
    held,
    is_true,
    launcher_pod,
    let_run,
    phase,
    pi_job,
    until_true,
    with_script,
)
from e2e.kubectl import NAMESPACES, Kubectl, Obj
from e2e.operator_pods import Operator, holder
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, LEASES, MPIJOBS, PODS


def failing(name: str) -> Obj:
    """Return a job whose launcher ends with exit code 3, and is not tried again."""
    job = with_script(pi_job(name), "echo something is wrong >&2; exit 3")
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    job["spec"].setdefault("runPolicy", {})["backoffLimit"] = 0
    return job


def test_a_launcher_that_fails_makes_the_job_fail_with_its_reason(namespace: Kubectl, operator: Operator) -> None:
    before = operator.metrics(operator.until_led())
    namespace.apply(failing("wrong"))
    job = until_true(namespace, "wrong", "Failed")
    failed = condition(job, "Failed")
    assert failed["reason"].startswith("BackoffLimitExceeded/")
    assert "exit code 3" in failed["message"], failed["message"]
    assert re.search(r"wrong-launcher-\w+", failed["message"]), failed["message"]
    assert condition(job, "Running").get("status", "False") == "False"
    assert job["status"]["completionTime"]
    assert not is_true(job, "Succeeded")
    [event] = [e for e in namespace.read_all(EVENTS) if e["involvedObject"]["kind"] == "MPIJob" and e["type"] == "Warning"]
    assert event["reason"] == failed["reason"]
    operator.until_metrics(lambda after: after["mpi_operator_jobs_failed_total"] - before.get("mpi_operator_jobs_failed_total", 0) == 1)


def test_a_worker_that_is_deleted_comes_back_and_the_launcher_decides(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job("pi")))
    until_true(namespace, "pi", "Running")
    launcher = launcher_pod(namespace)
    lost = namespace.read(PODS, "pi-worker-0")["metadata"]["uid"]
    namespace.run("delete", "pod", "pi-worker-0", "--wait=false")
    namespace.until_one(PODS, "pi-worker-0", lambda pod: pod["metadata"]["uid"] != lost and is_true(pod, "Ready"))
    assert is_true(namespace.read(MPIJOBS, "pi"), "Running")
    let_run(namespace, launcher)
    until_true(namespace, "pi", "Succeeded")
    assert [pod["metadata"]["name"] for pod in namespace.read_all(PODS, LAUNCHER)] == [launcher]


def test_a_job_deleted_in_the_middle_leaves_nothing(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job("pi")))
    until_true(namespace, "pi", "Running")
    namespace.run("delete", "mpijob", "pi", "--wait=false")
    namespace.until_gone(MPIJOBS, "pi")
    namespace.until(PODS, lambda pods: not pods, timeout_seconds=90)
    namespace.until(JOBS, lambda jobs: not jobs)
    left = namespace.run("get", "services,configmaps,secrets,jobs,pods", "-o", "name").split()
    assert [name for name in left if "kube-root-ca.crt" not in name] == []


def test_namespaces_deleted_in_the_middle_are_no_failures_of_their_jobs(
    cluster: Kubectl, operator: Operator, request: pytest.FixtureRequest
) -> None:
    """Whether Jobs or MPIJobs go first is up to the namespace controller: one way round in two or three."""
    with contextlib.ExitStack() as stack:
        namespaces = [stack.enter_context(new_namespace(cluster, f"going-{number}", request.session)) for number in range(6)]
        for here in namespaces:
            here.apply(held(pi_job("pi", workers=1)))
        for here in namespaces:
            until_true(here, "pi", "Running")
        before = operator.metrics(operator.until_led())
    names = {here.namespace for here in namespaces}
    cluster.until(NAMESPACES, lambda left: not names & {each["metadata"]["name"] for each in left}, timeout_seconds=120)
    after = operator.metrics(operator.until_led())
    assert after["mpi_operator_jobs_failed_total"] == before["mpi_operator_jobs_failed_total"]


def test_the_operator_restarted_in_the_middle_takes_the_job_to_its_end(namespace: Kubectl, operator: Operator) -> None:
    namespace.apply(held(pi_job("pi")))
    running = until_true(namespace, "pi", "Running")
    launcher = launcher_pod(namespace)
    workers = [pod["metadata"]["uid"] for pod in namespace.read_all(PODS, WORKER)]
    operator.kubectl.run("rollout", "restart", "deployment/mpi-operator")
    operator.wait_until_ready()
    assert [pod["metadata"]["uid"] for pod in namespace.read_all(PODS, WORKER)] == workers
    let_run(namespace, launcher)
    job = until_true(namespace, "pi", "Succeeded")
    assert job["status"]["startTime"] == running["status"]["startTime"]
    events = [(e["reason"], e.get("count", 1)) for e in namespace.read_all(EVENTS) if e["involvedObject"]["kind"] == "MPIJob"]
    assert sorted(events) == [("MPIJobCreated", 1), ("MPIJobRunning", 1), ("MPIJobSucceeded", 1)]


def test_the_other_replica_goes_on_when_the_leader_is_killed(namespace: Kubectl, operator: Operator) -> None:
    namespace.apply(held(pi_job("pi")))
    until_true(namespace, "pi", "Running")
    launcher = launcher_pod(namespace)
    leader = operator.until_led()
    operator.kubectl.run("delete", "pod", leader, "--grace-period=0", "--force", "--wait=false")
    assert operator.until_led(not_by=leader, timeout_seconds=30) != leader
    namespace.apply(pi_job("another"))
    let_run(namespace, launcher)
    until_true(namespace, "pi", "Succeeded")
    until_true(namespace, "another", "Succeeded")
    operator.wait_until_ready()


def test_sigterm_ends_the_leader_in_order(namespace: Kubectl, operator: Operator) -> None:
    leader = operator.until_led()
    with operator.kubectl.following(leader, "--since=1s") as lines:
        operator.kubectl.run("delete", "pod", leader, "--wait=false")
        # A released Lease is free at once: the other replica needs no 15 s of patience. A lost one would take them.
        lease = operator.kubectl.until_one(LEASES, "mpi-operator", lambda lease: holder(lease) != leader, timeout_seconds=10)
        said = list(lines)
    assert holder(lease) != leader
    assert not [line for line in said if json.loads(line)["level"] in {"error", "critical"}], said
    namespace.apply(pi_job("pi"))
    until_true(namespace, "pi", "Succeeded")
    operator.wait_until_ready()


def test_scaling_down_and_up_follows_the_wish(namespace: Kubectl) -> None:
    namespace.apply(held(with_script(pi_job("pi", workers=2), "exit 0")))
    until_true(namespace, "pi", "Running")
    edit(namespace, mpiReplicaSpecs={"Worker": {"replicas": 1}})
    namespace.until(PODS, lambda pods: [pod["metadata"]["name"] for pod in pods] == ["pi-worker-0"], labels=WORKER)
    edit(namespace, mpiReplicaSpecs={"Worker": {"replicas": 3}})
    namespace.until(PODS, lambda pods: [phase(pod) for pod in pods] == ["Running"] * 3, labels=WORKER)
    namespace.until_one(CONFIG_MAPS, "pi-config", lambda found: found["data"]["discover_hosts.sh"].count("echo") == 3)
    assert namespace.read(CONFIG_MAPS, "pi-config")["data"]["hostfile"].count("slots=1") == 3
    let_run(namespace, launcher_pod(namespace))
    until_true(namespace, "pi", "Succeeded")
