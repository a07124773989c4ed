"""What the API server makes of an MPIJob by our CRD alone, and that the operator's own rules come to the same verdict."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e import depths
from e2e.admission import (
    CASES,
    POD,
    POLICY,
    SERVER_CASES,
    TEMPLATE,
    UNKNOWN,
    Case,
    container,
    definition,
    job,
    loosened,
    preserving,
)
from e2e.clusters import IS_CURRENT, embedded_cluster
from e2e.jobs import is_true
from e2e.kubectl import DEFINITIONS, Kubectl
from e2e.waiting import wait_until
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.validation import validate
from mpiop.kube.resources import MPIJOBS


@pytest.fixture(scope="module")
def server() -> Iterator[Kubectl]:
    """A kubectl on an API server that has the CRD and no operator."""
    if IS_CURRENT:
        pytest.skip("these tests change the CRD")
    with embedded_cluster("e2e-admission", "--control-plane-only") as kubectl:
        install(kubectl, definition())
        yield kubectl.within("default")


def install(kubectl: Kubectl, crd: Mapping[str, Any]) -> None:
    """Put a CRD in place and return once it is served (`kubectl wait` fails when it looks before there are any conditions)."""
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(crd))
    kubectl.until_one(DEFINITIONS, "mpijobs.kubeflow.org", lambda found: is_true(found, "Established"))


def until_judged(server: Kubectl, probe: Mapping[str, Any], *, refused: bool) -> None:
    """Return when the API server takes or refuses `probe`: it goes by a changed CRD a moment after it was stored, and notifies nobody."""
    trial = ("create", "--dry-run=server", "-f", "-")
    wait_until("the changed CRD is taken up", lambda: bool(server.attempt(*trial, stdin=json.dumps(probe)).returncode) is refused)


def create(server: Kubectl, desired: Mapping[str, Any], *options: str) -> dict[str, Any]:
    created: dict[str, Any] = json.loads(server.run("create", "-o", "json", *options, "-f", "-", stdin=json.dumps(desired)))
    return created


@pytest.mark.parametrize("case", [*CASES, *SERVER_CASES], ids=lambda case: case.id)
def test_the_server_refuses_what_is_wrong_and_says_why(case: Case, server: Kubectl) -> None:
    tried = server.attempt("create", "--dry-run=server", "-f", "-", stdin=json.dumps(case.job))
    assert bool(tried.returncode) is bool(case.refused), tried.stderr
    assert case.refused in tried.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_operator_comes_to_the_same_verdict(case: Case) -> None:
    try:
        errors = validate(parse_mpijob(case.job))  # type: ignore[arg-type]  # a manifest, which may be wrong
    except ParseError as error:
        errors = error.errors
    assert bool(errors) is bool(case.refused), errors


def test_defaults_are_stored_for_the_listed_fields_only(server: Kubectl) -> None:
    desired = job("pi", *POD, "containers", value=[{"image": "pi", "ports": [{"containerPort": 80}]}])
    stored = create(server, {**desired, "spec": {**desired["spec"], "runPolicy": {}}}, "--dry-run=server")["spec"]
    assert stored == {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runPolicy": {"suspend": False},
        "mpiReplicaSpecs": {
            "Launcher": {
                "template": {
                    "spec": {"containers": [{"name": "launcher", "image": "pi", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}
                }
            },
            "Worker": {"replicas": 2, "template": TEMPLATE},
        },
    }


WITH_UNKNOWN = {
    "containers": container(**{UNKNOWN: {"deep": [1, "x", {}]}, "securityContext": {UNKNOWN: True}, "env": [{"name": "A", UNKNOWN: 1}]}),
    "affinity": {UNKNOWN: {"a": "b"}},
    UNKNOWN: 3,
}
KNOWN = {"containers": container(securityContext={}, env=[{"name": "A"}]), "affinity": {}}


def test_clients_that_ignore_warnings_lose_unknown_fields_only(server: Kubectl) -> None:
    stored = create(server, job("pi", *POD, value=WITH_UNKNOWN), "--dry-run=server", "--validate=ignore")
    assert stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] == KNOWN


def test_fields_that_only_a_newer_kubernetes_knows_are_stored(server: Kubectl) -> None:
    responders = [{"name": "example.com/a", "priority": 1}]
    stored = create(server, job("pi", *POD, "evictionResponders", value=responders), "--dry-run=server")
    assert stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["evictionResponders"] == responders


def test_the_name_is_judged_again_when_there_come_to_be_more_workers(server: Kubectl) -> None:
    name = "a" * 54
    create(server, job(name))
    try:
        server.run("patch", "mpijob", name, "--type=merge", "-p", '{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":10}}}}')
        refused = server.attempt("patch", "mpijob", name, "--type=merge", "-p", '{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":11}}}}')
        assert "metadata.name: Invalid value: too long" in refused.stderr
    finally:
        server.run("delete", "mpijob", name)


@pytest.mark.parametrize("before", [None, "kueue.x-k8s.io/multikueue"])
@pytest.mark.parametrize("after", [None, "kubeflow.org/mpi-operator"])
def test_the_manager_of_a_job_stays(before: str | None, after: str | None, server: Kubectl) -> None:
    create(server, job("managed", *POLICY, "managedBy", value=before))
    try:
        patch = json.dumps({"spec": {"slotsPerWorker": 2, "runPolicy": {"managedBy": after}}})
        tried = server.attempt("patch", "mpijob", "managed", "--type=merge", "-p", patch)
        assert ("managedBy is immutable" in tried.stderr) is (before != after), tried.stderr
    finally:
        server.run("delete", "mpijob", "managed")


OLD = {
    "no-launcher": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}},
    "negative": {"mpiReplicaSpecs": {"Launcher": {"replicas": -1, "template": {"spec": {"containers": None}}}}},
    "text": {"slotsPerWorker": "many", "mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"ports": "x"}]}}}}},
    "n" * 63: job("x")["spec"],
    "1st.job": job("x")["spec"],
    "nothing": None,
}


def test_jobs_stored_under_a_looser_crd_get_a_condition_and_can_be_deleted(server: Kubectl) -> None:
    install(server, loosened(definition()))
    try:
        until_judged(server, job("x", "mpiReplicaSpecs", value=3), refused=False)
        for name, spec in OLD.items():
            create(server, {**job(name), "spec": spec})
    finally:
        install(server, definition())
    until_judged(server, job("x", "mpiReplicaSpecs", value=3), refused=True)
    condition = {"type": "Stalled", "status": "True", "reason": "ValidationError", "message": "m"}
    patch = json.dumps({"status": {"conditions": [condition], "summary": {"state": "Stalled"}}})
    for name in OLD:
        server.run("patch", "mpijob", name, "--subresource=status", "--type=merge", "-p", patch)
        server.run("patch", "mpijob", name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/x"]}}')
    printed = server.run("get", "mpijobs")
    assert printed.count("Stalled") == len(OLD)
    for name in OLD:
        server.run("delete", "mpijob", name, "--wait=false")
        server.run("patch", "mpijob", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert server.read_all(MPIJOBS) == []


def test_jobs_stored_with_unknown_fields_lose_these_and_nothing_else(server: Kubectl) -> None:
    before = job("before", *POD, value=WITH_UNKNOWN)
    install(server, preserving())
    try:
        until_judged(server, before, refused=False)
        create(server, before)
    finally:
        install(server, definition())
    until_judged(server, before, refused=True)
    found = server.read(MPIJOBS, "before")
    assert found["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] == KNOWN
    assert found["metadata"]["generation"] == 1
    server.run("patch", "mpijob", "before", "--type=merge", "-p", '{"spec":{"slotsPerWorker":2}}')
    server.run("delete", "mpijob", "before")


@pytest.fixture(scope="module")
def strangers(server: Kubectl) -> Iterator[depths.Server]:
    """The same API server, for requests that kubectl cannot send."""
    with contextlib.closing(depths.Server(server.environment["KUBECONFIG"])) as strangers:
        yield strangers


JOBS_PATH = MPIJOBS.path("default")


def check_nobody_is_stopped(server: depths.Server, stored: int) -> None:
    """Fail unless jobs can be listed, watched and deleted, of which there are `stored`."""
    for answer in (server.send("GET", JOBS_PATH), server.watch(JOBS_PATH, stored)):
        assert (answer.status, answer.text.count('"kind":"MPIJob"')) == (200, stored), answer.text[:500]
    assert server.send("DELETE", JOBS_PATH).status == 200
    assert server.send("GET", JOBS_PATH).text.count('"kind":"MPIJob"') == 0


def test_a_deep_job_is_refused_or_loses_what_is_deep(strangers: depths.Server) -> None:
    stored = 0
    for number, path in enumerate((*depths.DROPPED, *depths.REFUSED)):
        is_dropped = path in depths.DROPPED
        for levels in depths.LEVELS if is_dropped else depths.FEW_LEVELS:
            stranger = job(f"deep-{number}-{levels}")
            depths.put(stranger, path, depths.DEEP)
            answer = strangers.send("POST", JOBS_PATH, stranger, levels=levels)
            assert answer.is_stored or answer.is_refused, answer.text[:500]
            assert answer.is_stored <= is_dropped
            stored += answer.is_stored
    assert stored > 200
    check_nobody_is_stopped(strangers, stored)


ENTRY = {"manager": "stranger", "operation": "Update", "apiVersion": MPIJOBS.api_version, "fieldsType": "FieldsV1", "fieldsV1": depths.DEEP}
PATCHES = {
    "of-status": ("/status", "/status", {"strange": depths.DEEP, "conditions": [{"type": "A", "status": "True", "strange": depths.DEEP}]}),
    "of-template": ("", "/spec/mpiReplicaSpecs/Launcher/template/spec/strange", depths.DEEP),
    "of-managed-fields": ("", "/metadata/managedFields", [ENTRY]),
}


def test_a_deep_patch_of_a_job_stops_nobody(strangers: depths.Server) -> None:
    stored = 0
    for name, (subresource, path, value) in PATCHES.items():
        # Each a job of its own: what is deep among the managed fields makes all further writes slow.
        for levels in depths.FEW_LEVELS:
            assert strangers.send("POST", JOBS_PATH, job(f"{name}-{levels}")).is_stored
            operation = {"op": "add", "path": path, "value": value}
            answer = strangers.patch(f"{JOBS_PATH}/{name}-{levels}{subresource}", operation, levels=levels)
            assert answer.is_stored or answer.is_refused, answer.text[:500]
            stored += 1
    check_nobody_is_stopped(strangers, stored)


MANY = 3_000
WIDE = {
    f"{depths.POD}.spec.strange": {f"field{number}": number for number in range(MANY)},
    f"{depths.POD}.metadata.annotations": {f"note{number}": "" for number in range(MANY)},
    f"{depths.POD}.spec.containers.0.env": [{"name": f"V{number}"} for number in range(MANY)],
    f"{depths.POD}.spec.containers.0.args": [""] * MANY,
    "spec.runPolicy.schedulingPolicy.minResources": {f"r{number}": 1 for number in range(MANY)},
}


def test_a_wide_job_stops_nobody(strangers: depths.Server) -> None:
    for number, (path, value) in enumerate(WIDE.items()):
        stranger = job(f"wide-{number}")
        depths.put(stranger, path, value)
        answer = strangers.send("POST", JOBS_PATH, stranger)
        assert answer.is_stored, answer.text[:500]
    check_nobody_is_stopped(strangers, len(WIDE))
