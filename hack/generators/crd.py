"""The CustomResourceDefinition of the MPIJob."""

from typing import Any

from generators.mpijob_schema import mpijob_schema
from mpiop.api import constants as c

_COLUMNS = (
    # name, type, path, priority (1 = only with -o wide), description
    ("State", "string", ".status.summary.state", 0, "State of the job"),
    ("Workers", "string", ".status.summary.workers", 0, "Running and desired workers"),
    ("Restarts", "string", ".status.summary.restarts", 0, "How often the operator has restarted the job, because Pods were lost"),
    ("Duration", "string", ".status.summary.duration", 0, "How long the job took"),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Time since the job was created"),
    ("Attempts", "string", ".status.summary.attempts", 1, "Failed attempts of the launcher"),
    ("Image", "string", ".spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].image", 1, "Image of the launcher"),
    ("Node", "string", ".status.summary.node", 1, "Node of the launcher"),
    ("MPI", "string", ".spec.mpiImplementation", 1, "MPI library"),
    ("Slots", "string", ".status.summary.slots", 1, "MPI processes on each worker"),
    ("Started", "date", ".status.startTime", 1, "Time since the job was started"),
    ("Completed", "date", ".status.completionTime", 1, "Time since the job ended"),
    ("Message", "string", ".status.summary.message", 1, "What is wrong"),
)


def custom_resource_definition() -> dict[str, Any]:
    """Return the CRD `mpijobs.kubeflow.org`."""
    columns = [
        {"name": name, "type": type_, "jsonPath": path, "description": description} | ({"priority": priority} if priority else {})
        for name, type_, path, priority, description in _COLUMNS
    ]
    version = {
        "name": c.VERSION,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": f".spec.mpiReplicaSpecs.{c.WORKER}.replicas",
                "statusReplicasPath": f".status.replicaStatuses.{c.WORKER}.active",
            },
        },
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": mpijob_schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"mpijobs.{c.GROUP}"},
        "spec": {
            "group": c.GROUP,
            # Not of category `all`: `kubectl delete all --all` would delete jobs that it left alone before.
            "names": {"kind": c.KIND, "listKind": f"{c.KIND}List", "plural": "mpijobs", "singular": "mpijob", "shortNames": ["mj"]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
