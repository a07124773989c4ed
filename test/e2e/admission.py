"""MPIJobs with one thing right or wrong, and what the API server answers about each."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from e2e.clusters import ROOT

CRD = ROOT / "manifests/base/kubeflow.org_mpijobs.yaml"
TEMPLATE = {"spec": {"containers": [{"name": "mpi", "image": "pi"}]}}
LAUNCHER = ("mpiReplicaSpecs", "Launcher")
WORKER = ("mpiReplicaSpecs", "Worker")
POD = (*LAUNCHER, "template", "spec")
POLICY = ("runPolicy",)
GANG = (*POLICY, "schedulingPolicy")
ABSENT = object()
UNKNOWN = "fromTheFuture"
"""A field that no Kubernetes knows."""


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
    """One job; `refused` is a part of what the API server answers, "" if it takes the job."""

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
    Case(
        "a misspelt field of a container",
        job("pi", *POD, "containers", value=container(imagePullPolcy="Always")),
        'unknown field "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].imagePullPolcy"',
    ),
    Case("no spec", {**job("pi"), "spec": None}, "spec: Required value: set mpiReplicaSpecs, with the launcher and workers to run"),
]


def definition() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(CRD.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return read


def loosened(strict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CRD `strict` as a careless predecessor may have had it: anything goes."""
    loose: dict[str, Any] = copy.deepcopy({key: value for key, value in strict.items() if key != "status"})
    version = loose["spec"]["versions"][0]
    version["subresources"].pop("scale")  # whose path the API server reads in each object
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    return loose


def preserving() -> dict[str, Any]:
    """Return the CRD as it was before unknown fields of templates were dropped."""
    preserved = definition()
    replica_specs = preserved["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mpiReplicaSpecs"]
    for role in replica_specs["properties"].values():
        _preserve(role["properties"]["template"])
    return preserved


def _preserve(schema: dict[str, Any]) -> None:
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    for inner in (*schema.get("properties", {}).values(), *(schema[key] for key in ("items", "additionalProperties") if key in schema)):
        _preserve(inner)
