"""Invalid MPIJobs that slipped in (test_admission.py has those that are refused): reported by event and condition, disturbing nobody."""

import json

import pytest
import yaml

from e2e.admission import loosened
from e2e.causes import check_shown_soon
from e2e.conftest import new_namespace
from e2e.jobs import condition, is_true, pi_job, until_true
from e2e.kubectl import DEFINITIONS, Kubectl, Obj
from e2e.waiting import wait_until
from mpiop.kube.resources import EVENTS, JOBS, MPIJOBS, PODS

CRD = "mpijobs.kubeflow.org"


def replace_definition(cluster: Kubectl, definition: Obj) -> None:
    metadata = {key: value for key, value in definition["metadata"].items() if key in {"name", "annotations", "labels"}}
    cluster.run("replace", "-f", "-", stdin=yaml.safe_dump({**definition, "metadata": metadata}))


def until_accepted(here: Kubectl, job: Obj) -> None:
    """Return when the API server accepts `job`: it takes up a changed CRD a moment after it was stored, and notifies nobody."""
    trial = ("create", "--dry-run=server", "-f", "-")
    wait_until("the changed CRD is taken up", lambda: not here.attempt(*trial, stdin=yaml.safe_dump(job)).returncode)


def test_F54_invalid_jobs_that_were_stored_anyway_get_a_condition_and_disturb_nobody(namespace: Kubectl, cluster: Kubectl) -> None:
    strict = cluster.read(DEFINITIONS, CRD)
    broken = {
        "no-launcher": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}},
        "no-replicas": {"slotsPerWorker": 1},
        "wrong-types": {"mpiReplicaSpecs": {"Launcher": "yes", "Worker": [1]}, "slotsPerWorker": "many", "runPolicy": 7},
        "bad-container": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": "none"}}}}},
    }
    try:
        replace_definition(cluster, loosened(strict))
        jobs = [{**pi_job(name), "spec": spec} for name, spec in broken.items()]
        until_accepted(namespace, jobs[0])
        namespace.apply(*jobs)
        namespace.apply(pi_job("good"))
        until_true(namespace, "good", "Succeeded")
        for name in broken:
            job = namespace.until_one(MPIJOBS, name, lambda found: is_true(found, "Stalled"))
            assert condition(job, "Stalled")["reason"] == "ValidationError"
            assert condition(job, "Created") == {}
            check_shown_soon(name, "ValidationError", namespace)
    finally:
        replace_definition(cluster, strict)
    warned = {
        e["involvedObject"]["name"] for e in namespace.read_all(EVENTS) if e["reason"] == "ValidationError" and e["type"] == "Warning"
    }
    assert warned == set(broken)
    assert [job["metadata"]["name"] for job in namespace.read_all(JOBS)] == ["good-launcher"]
    assert {pod["metadata"]["labels"]["training.kubeflow.org/job-name"] for pod in namespace.read_all(PODS)} == {"good"}
    # Under the strict CRD again, a repaired job starts.
    namespace.run("apply", "-f", "-", stdin=yaml.safe_dump(pi_job("no-replicas")))
    until_true(namespace, "no-replicas", "Succeeded")


def test_F54_a_job_that_another_crd_let_be_deep_stops_nobody(namespace: Kubectl, cluster: Kubectl, request: pytest.FixtureRequest) -> None:
    job = pi_job("deep")
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["strange"] = "deep inside"
    levels = 9_000
    text = json.dumps(job).replace('"deep inside"', '{"a":' * levels + "1" + "}" * levels)
    strict = cluster.read(DEFINITIONS, CRD)
    # Not where other tests read: Python's json cannot.
    with new_namespace(cluster, "deep", request.session) as here:
        try:
            replace_definition(cluster, loosened(strict))
            until_accepted(here, {**job, "spec": {}})
            here.run("create", "--validate=false", "-f", "-", stdin=text)
            namespace.apply(pi_job("after"))
            until_true(namespace, "after", "Succeeded")
            here.until(EVENTS, lambda events: ("deep", "Unreadable") in {(e["involvedObject"]["name"], e["reason"]) for e in events})
            assert here.read_all(PODS) == []
        finally:
            replace_definition(cluster, strict)
