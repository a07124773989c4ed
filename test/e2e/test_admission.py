"""What the API server makes of an MPIJob by our CRD alone, and that the operator's own rules come to the same verdict."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import yaml

from e2e.clusters import ROOT, embedded_cluster
from e2e.kubectl import DEFINITIONS, Kubectl
from mpiop.api.parse import ParseError, parse_mpijob
from mpiop.api.validation import validate
from mpiop.kube.resources import MPIJOBS

CRD = ROOT / "manifests/base/kubeflow.org_mpijobs.yaml"
TEMPLATE = {"spec": {"containers": [{"name": "mpi", "image": "pi"}]}}
LAUNCHER = ("mpiReplicaSpecs", "Launcher")
WORKER = ("mpiReplicaSpecs", "Worker")
POD = (*LAUNCHER, "template", "spec")
POLICY = ("runPolicy",)
GANG = (*POLICY, "schedulingPolicy")
ABSENT = object()


def job(name: str, *path: str, value: Any = None) -> dict[str, Any]:
    """Return a good job of two workers with `value` put at `path` of its spec (or with what is there taken away)."""
    replica_specs = {"Launcher": {"template": copy.deepcopy(TEMPLATE)}, "Worker": {"replicas": 2, "template": copy.deepcopy(TEMPLATE)}}
    spec: dict[str, Any] = {"mpiReplicaSpecs": replica_specs}
    found = spec
    for parent in path[:-1]:
        found = found.setdefault(parent, {})
    if value is ABSENT:
        del found[path[-1]]
    elif path:
        found[path[-1]] = value
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Case(NamedTuple):
    """One job; `refused` is a part of what the API server says, "" if it takes the job."""

    id: str
    job: Mapping[str, Any]
    refused: str = ""


def container(**fields: Any) -> list[dict[str, Any]]:
    """Return a list of one container with `fields`."""
    return [{"name": "mpi", **fields}]


CASES = [
    Case("as it should be", job("pi")),
    Case("a launcher on its own", job("pi", *WORKER, value=ABSENT)),
    Case("no launcher", job("pi", *LAUNCHER, value=ABSENT), "spec.mpiReplicaSpecs.Launcher: Required value"),
    Case("no replica specs", job("pi", "mpiReplicaSpecs", value=ABSENT), "spec.mpiReplicaSpecs: Required value"),
    Case("no containers", job("pi", *POD, "containers", value=[]), "spec.containers in body should have at least 1 items"),
    Case("containers null", job("pi", *POD, "containers", value=None), "template.spec.containers: Required value"),
    Case("no template", job("pi", *WORKER, "template", value=ABSENT), "Worker.template: Required value"),
    Case("an empty template", job("pi", *WORKER, "template", value={}), "Worker.template.spec: Required value"),
    Case("a name of the greatest length", job("a" * 54)),
    Case("a name too long", job("a" * 55), "metadata.name: Invalid value: too long"),
    Case("a name too long for 11 workers", job("a" * 54, *WORKER, "replicas", value=11), "metadata.name: Invalid value: too long"),
    Case("a name of the greatest length for 1000 workers", job("a" * 52, *WORKER, "replicas", value=1000)),
    Case("a name too long for 1001 workers", job("a" * 52, *WORKER, "replicas", value=1001), "too long"),
    Case("a name that begins with a digit", job("1pi"), "metadata.name: Invalid value: must be lower-case letters"),
    Case("a name with a dot", job("pi.2"), "metadata.name: Invalid value: must be lower-case letters"),
    Case("an unknown implementation", job("pi", "mpiImplementation", value="LAM"), 'supported values: "OpenMPI", "Intel", "MPICH"'),
    Case("an empty implementation", job("pi", "mpiImplementation", value=""), "mpiImplementation: Unsupported value"),
    Case("an unknown creation policy", job("pi", "launcherCreationPolicy", value="Later"), "Unsupported value"),
    Case("an empty creation policy", job("pi", "launcherCreationPolicy", value="")),
    Case("an empty mount path", job("pi", "sshAuthMountPath", value="")),
    Case("a mount path with a colon", job("pi", "sshAuthMountPath", value="/a:b"), "must be an absolute path, without ':' and '..'"),
    Case("a mount path that leads elsewhere", job("pi", "sshAuthMountPath", value="/home/../../etc"), "must be an absolute path"),
    Case("a relative mount path", job("pi", "sshAuthMountPath", value="home/.ssh"), "must be an absolute path"),
    Case("a mount path with dots", job("pi", "sshAuthMountPath", value="/home/...me/.ssh")),
    Case("negative slots", job("pi", "slotsPerWorker", value=-1), "greater than or equal to 0"),
    Case("no slots", job("pi", "slotsPerWorker", value=0)),
    Case("half a slot", job("pi", "slotsPerWorker", value=1.5), "must be of type"),
    Case("slots in quotes", job("pi", "slotsPerWorker", value="2"), "must be of type integer"),
    Case("slots beyond 32 bits", job("pi", "slotsPerWorker", value=2**31), "integer with format int32 in spec.slotsPerWorker"),
    Case("an unknown clean-up policy", job("pi", *POLICY, "cleanPodPolicy", value="Some"), "cleanPodPolicy: Unsupported value"),
    Case("a negative TTL", job("pi", *POLICY, "ttlSecondsAfterFinished", value=-1), "greater than or equal to 0"),
    Case("a negative deadline", job("pi", *POLICY, "activeDeadlineSeconds", value=-1), "greater than or equal to 0"),
    Case("a deadline beyond 32 bits", job("pi", *POLICY, "activeDeadlineSeconds", value=2**40)),
    Case("a negative backoff limit", job("pi", *POLICY, "backoffLimit", value=-1), "greater than or equal to 0"),
    Case("a negative gang", job("pi", *GANG, "minAvailable", value=-1), "greater than or equal to 0"),
    Case("a negative timeout", job("pi", *GANG, "scheduleTimeoutSeconds", value=-1), "greater than or equal to 0"),
    Case("resources of a gang", job("pi", *GANG, "minResources", value={"cpu": 3, "memory": "8Gi"})),
    Case("no quantity", job("pi", *GANG, "minResources", value={"cpu": {}}), "minResources.cpu"),
    Case("a list of resources", job("pi", *GANG, "minResources", value={"cpu": ["3"]}), "minResources.cpu"),
    Case("an empty list", job("pi", *GANG, "minResources", value={"cpu": []}), "minResources.cpu"),
    Case("a truth for a resource", job("pi", *GANG, "minResources", value={"cpu": True}), "minResources.cpu"),
    Case("resources of all forms", job("pi", *GANG, "minResources", value={"cpu": "0.5", "memory": "1e9", "nvidia.com/gpu": 8})),
    Case(
        "resources one level too deep",
        job("pi", *GANG, "minResources", value={"requests": {"cpu": "3000m"}}),
        'minResources.requests.write minResources: {cpu: "3", memory: 8Gi} instead: Required value',
    ),
    Case("an unknown manager", job("pi", *POLICY, "managedBy", value="x"), "managedBy: Unsupported value"),
    Case("MultiKueue", job("pi", *POLICY, "managedBy", value="kueue.x-k8s.io/multikueue")),
    Case("two launchers", job("pi", *LAUNCHER, "replicas", value=2), "less than or equal to 1"),
    Case("zero workers", job("pi", *WORKER, "replicas", value=0), "greater than or equal to 1"),
    Case("more workers than any names leave room for", job("a", *WORKER, "replicas", value=2**31 - 1), "should be less than or equal to"),
    Case("restartPolicy Always", job("pi", *WORKER, "restartPolicy", value="Always"), 'supported values: "", "Never", "OnFailure"'),
    Case("restartPolicy empty", job("pi", *WORKER, "restartPolicy", value="")),
    Case("a container without a name", job("pi", *POD, "containers", value=[{"image": "pi"}])),
    Case("two containers of one name", job("pi", *POD, "containers", value=container() * 2), "Duplicate value"),
    Case("two containers without names", job("pi", *POD, "containers", value=[{"image": "a"}, {"image": "b"}]), "Duplicate value"),
    Case("a label that is a number", job("pi", *LAUNCHER, "template", "metadata", value={"labels": {"a": 1}}), "of type string"),
    Case("as Go clients write metadata", job("pi", *LAUNCHER, "template", "metadata", value={"creationTimestamp": None, "labels": {}})),
]
# Mistakes that the server alone finds: the operator passes these fields on without looking.
SERVER_CASES = [
    Case("a fraction without quotes", job("pi", *GANG, "minResources", value={"cpu": 0.5}), "minResources.cpu"),
    Case("a word for a resource", job("pi", *GANG, "minResources", value={"cpu": "many"}), "minResources.cpu"),
    Case("a port in quotes", job("pi", *POD, "containers", value=container(ports=[{"containerPort": "80"}])), "of type integer"),
    Case("a port beyond 32 bits", job("pi", *POD, "containers", value=container(ports=[{"containerPort": 2**31}])), "format int32"),
    Case("no quantity", job("pi", *POD, "containers", value=container(resources={"limits": {"cpu": "lots"}})), "should match"),
    Case("a misspelt field", job("pi", "slotPerWorker", value=1), 'unknown field "spec.slotPerWorker"'),
    Case("no spec", {**job("pi"), "spec": None}, "spec: Required value: say in mpiReplicaSpecs what to run"),
]


@pytest.fixture(scope="module")
def server(is_current_cluster: bool) -> Iterator[Kubectl]:  # noqa: FBT001 - a fixture
    """A kubectl on an API server that has the CRD and no operator."""
    if is_current_cluster:
        pytest.skip("these tests change the CRD")
    with embedded_cluster("e2e-admission", "--control-plane-only") as kubectl:
        install(kubectl, CRD.read_text(encoding="utf-8"))
        yield kubectl.within("default")


def install(kubectl: Kubectl, definition: str) -> None:
    """Put a CRD in place and return once it is served (`kubectl wait` fails when it looks before there are any conditions)."""
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=definition)
    kubectl.until_one(DEFINITIONS, "mpijobs.kubeflow.org", is_established)


def is_established(definition: Mapping[str, Any]) -> bool:
    """Return whether objects of the CRD can be created."""
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


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


def test_fields_of_pods_that_nobody_knows_yet_are_kept(server: Kubectl) -> None:
    spec = {
        "containers": container(novel={"deep": [1, "x", {}]}, securityContext={"novel": True}, env=[{"name": "A", "novel": 1}]),
        "affinity": {"novel": {"a": "b"}},
        "novel": 3,
    }
    stored = create(server, job("pi", *POD, value=spec), "--dry-run=server")
    assert stored["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] == spec


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


def loosened() -> str:
    """Return the CRD as a careless predecessor may have had it: anything goes."""
    definition = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": anything}
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    definition["spec"]["versions"][0]["subresources"].pop("scale")  # whose path the API server reads in each object
    return json.dumps(definition)


OLD = {
    "no-launcher": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}},
    "negative": {"mpiReplicaSpecs": {"Launcher": {"replicas": -1, "template": {"spec": {"containers": None}}}}},
    "text": {"slotsPerWorker": "many", "mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"ports": "x"}]}}}}},
    "n" * 63: job("x")["spec"],
    "1st.job": job("x")["spec"],
    "nothing": None,
}


def test_jobs_stored_under_a_looser_crd_get_a_condition_and_can_be_deleted(server: Kubectl) -> None:
    install(server, loosened())
    try:
        until(server, job("x", "mpiReplicaSpecs", value=3), is_taken=True)
        for name, spec in OLD.items():
            create(server, {**job(name), "spec": spec})
    finally:
        install(server, CRD.read_text(encoding="utf-8"))
    until(server, job("x", "mpiReplicaSpecs", value=3), is_taken=False)
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


def until(server: Kubectl, probe: Mapping[str, Any], *, is_taken: bool) -> None:
    """Return when the API server takes (or refuses) `probe`: it goes by a changed CRD a moment after it was stored, and tells nobody."""
    for _ in range(200):
        tried = server.attempt("create", "--dry-run=server", "--validate=false", "-f", "-", stdin=json.dumps(probe))
        if (tried.returncode == 0) is is_taken:
            return
    pytest.fail(f"the changed CRD was not taken up: {tried.stderr}")
