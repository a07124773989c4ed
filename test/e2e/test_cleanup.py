"""What is left of a job on a real cluster: by clean-up policy, after its time to live, when a worker is evicted, when its key is lost."""

import contextlib
import json
from typing import Any

import pytest

from e2e.clusters import IS_CURRENT, paused
from e2e.conftest import NAME
from e2e.jobs import LAUNCHER, WORKER, condition, edit, held, is_true, launcher_pod, let_run, pi_job, until_true, with_script
from e2e.kubectl import CHILDREN, Kubectl, Obj
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, SECRETS

CA = "kube-root-ca.crt"


def short(**run_policy: Any) -> Obj:
    """Return a job whose launcher succeeds at once."""
    job = with_script(pi_job(workers=1), "exit 0")
    job["spec"]["runPolicy"] = run_policy
    return job


def left(here: Kubectl) -> list[str]:
    """Return what there is of the job besides itself."""
    objects = [each for resource in CHILDREN for each in here.read_all(resource)]
    return sorted(each["metadata"]["name"] for each in objects if each["metadata"]["name"] != CA)


def until_nothing_is_left(here: Kubectl) -> None:
    """Return when only the namespace's own objects are there."""
    for resource in CHILDREN:
        here.until(resource, lambda objects: all(each["metadata"]["name"] == CA for each in objects))


@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_workers_go_by_policy_and_the_launcher_stays_for_its_log(policy: str, namespace: Kubectl) -> None:
    namespace.apply(short(cleanPodPolicy=policy))
    until_true(namespace, "pi", "Succeeded")
    if policy == "None":
        assert len(namespace.read_all(PODS, WORKER)) == 1
    else:
        namespace.until(PODS, lambda pods: not pods, labels=WORKER)
    assert len(namespace.read_all(PODS, LAUNCHER)) == 1


def test_after_its_time_to_live_only_the_job_and_its_status_are_left(namespace: Kubectl) -> None:
    namespace.apply(short(cleanPodPolicy="None", ttlSecondsAfterFinished=3))
    until_true(namespace, "pi", "Succeeded")
    until_nothing_is_left(namespace)
    job = namespace.until_one(
        MPIJOBS, "pi", lambda job: not any(counts.get("active") for counts in job["status"]["replicaStatuses"].values())
    )
    assert is_true(job, "Succeeded")
    assert job["status"]["summary"]["state"] == "Succeeded"


def test_the_job_goes_too_if_it_asks_for_that(namespace: Kubectl) -> None:
    job = short(ttlSecondsAfterFinished=0)
    job["metadata"]["annotations"] = {"mpiop.kubeflow.org/ttl-deletes-job": "true"}
    namespace.apply(job)
    namespace.until_gone(MPIJOBS, "pi", timeout_seconds=60)
    until_nothing_is_left(namespace)


def test_an_evicted_worker_ends_the_job_and_its_launcher(namespace: Kubectl) -> None:
    job = held(pi_job(workers=2))
    job["spec"]["runPolicy"] = {"cleanPodPolicy": "All"}
    namespace.apply(job)
    until_true(namespace, "pi", "Running")
    # What a kubelet writes when its node is short of memory or disk.
    evicted = {"status": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}
    # This one has evicted nothing, and would report it within 10 s.
    with contextlib.nullcontext() if IS_CURRENT else paused("kubelet", NAME):
        namespace.run("patch", "pod", "pi-worker-1", "--subresource=status", "--type=merge", "--patch", json.dumps(evicted))
        job = until_true(namespace, "pi", "Failed")
    failed = condition(job, "Failed")
    assert (failed["reason"], failed["message"]) == ("MPIJobEvicted", "1/2 workers are evicted")
    assert job["status"]["completionTime"]
    namespace.until(JOBS, lambda jobs: not jobs)
    namespace.until(PODS, lambda pods: not pods)


def test_a_key_that_is_lost_while_pods_run_changes_nothing_and_the_resume_makes_another(namespace: Kubectl) -> None:
    namespace.apply(held(pi_job(workers=2)))
    until_true(namespace, "pi", "Running")
    namespace.run("delete", "secret", "pi-ssh")
    edit(namespace, mpiReplicaSpecs={"Worker": {"replicas": 3}})
    # The kubelet has kept the Secret, for pods of its node mount it and it is immutable: the new worker gets the same key.
    namespace.until(PODS, lambda pods: [is_true(pod, "Ready") for pod in pods] == [True] * 3, labels=WORKER)
    assert "pi-ssh" not in left(namespace), "another key would not let the pods reach each other"
    edit(namespace, runPolicy={"suspend": True})
    namespace.until(PODS, lambda pods: not pods)
    edit(namespace, runPolicy={"suspend": False})
    job = until_true(namespace, "pi", "Running", timeout_seconds=180)
    assert not is_true(job, "Stalled")
    assert namespace.read(SECRETS, "pi-ssh")["immutable"] is True
    let_run(namespace, launcher_pod(namespace))
    until_true(namespace, "pi", "Succeeded")
