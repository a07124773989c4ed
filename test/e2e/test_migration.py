"""The page about MPIJobs of kubeflow.org/v1, step by step: `doctor --migrate` reports what is left to do, until mpiop can be installed.

The objects of the Training Operator are there, and the operator is not: an API server is enough.
"""

import json
from pathlib import Path

import pytest

from e2e.clusters import ROOT
from e2e.kubectl import DEFINITIONS, Kubectl, Obj
from e2e.plugin import Tool, new_tool
from e2e.shell import Shell, blocks_below

PAGE = "docs/migrate-v1.md"
OLD_CRD: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "mpijobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "names": {"kind": "MPIJob", "plural": "mpijobs", "singular": "mpijob"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
            }
        ],
    },
}
TEMPLATE = {"spec": {"containers": [{"name": "mpi", "image": "pi", "command": ["mpirun", "/home/mpiuser/pi"]}]}}
SLEEPING = {"spec": {"containers": [{"name": "mpi", "image": "pi", "command": ["sleep", "365d"]}]}}
OLD_JOB: Obj = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "metadata": {"name": "pi"},
    "spec": {
        "slotsPerWorker": 1,
        "cleanPodPolicy": "Running",
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 2, "template": SLEEPING}},
    },
}


def deployment(name: str, namespace: str, **container: str | list[str]) -> Obj:
    """Return the Deployment of an operator, as far as it matters here."""
    labels = {"control-plane": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, **container}]}},
        },
    }


TRAINING_OPERATOR = deployment("training-operator", "kubeflow", image="kubeflow/training-operator:v1-5170a36", command=["/manager"])
MPI_OPERATOR = deployment(
    "mpi-operator", "mpi-operator", image="mpioperator/mpi-operator:0.6.0", args=["--kube-api-qps=50", "--gang-scheduling=volcano"]
)


@pytest.fixture(scope="module")
def tool(empty: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """`kubectl mpi` on a cluster as the Training Operator leaves it, in the namespace of a job."""
    for namespace in ("kubeflow", "team"):
        empty.run("create", "namespace", namespace)
    empty.apply(OLD_CRD)
    empty.run("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=30s")
    empty.apply(TRAINING_OPERATOR)
    here = empty.within("team")
    here.apply(OLD_JOB)
    return new_tool(here, tmp_path_factory.mktemp("migration"))


def unwrapped(text: str) -> list[str]:
    """Return the sentences of a block; its indented lines belong to the line before."""
    return [" ".join(part.split()) for part in text.replace("\n         ", " ").splitlines()]


def test_each_step_of_the_page_removes_what_blocks_the_next(tool: Tool, empty: Kubectl, tmp_path: Path) -> None:
    shell, here = Shell(tool.environment, tmp_path), Shell(tool.environment, ROOT)
    assert unwrapped(here.follow(PAGE, "Check the cluster")) == unwrapped(blocks_below(PAGE, "text")["Check the cluster"])
    refused = empty.attempt("apply", "-f", str(ROOT / "manifests/base/kubeflow.org_mpijobs.yaml"), "--dry-run=server")
    assert 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions' in refused.stderr

    shell.follow(PAGE, "Save the manifests")
    assert "mainContainer" not in (saved := (tmp_path / "mpijobs-v1.yaml").read_text(encoding="utf-8"))
    assert "cleanPodPolicy: Running" in saved
    here.follow(PAGE, "Make the Training Operator ignore MPIJobs")
    assert "ok       Deployment training-operator in namespace kubeflow, a Training Operator, does not watch MPIJobs" in verdicts(tool)
    here.follow(PAGE, "Delete the old CRD", timeout_seconds=60)
    assert verdicts(tool)[0] == "ok       there is no CRD mpijobs.kubeflow.org yet: installing mpiop creates it"
    here.follow(PAGE, "Install mpiop")
    empty.run("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=30s")
    assert empty.read(DEFINITIONS, "mpijobs.kubeflow.org")["status"]["storedVersions"] == ["v2beta1"]
    assert tool.attempt("doctor", "--migrate").returncode == 0
    [converted] = blocks_below(PAGE, "yaml").values()
    empty.within("team").run("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=converted)


def verdicts(tool: Tool) -> list[str]:
    """Return the lines that doctor prints about the migration."""
    return tool.attempt("doctor", "--migrate").stdout.splitlines()


def test_kubeflows_mpi_operator_is_to_be_replaced(tool: Tool, empty: Kubectl, tmp_path: Path) -> None:
    empty.run("delete", "deployment", "--namespace=kubeflow", "training-operator")
    empty.run("delete", "deployment", "--namespace=mpi-operator", "mpi-operator")
    empty.apply(MPI_OPERATOR)
    Shell(tool.environment, tmp_path).replay("docs/kubectl-mpi.md", "Before a migration")


def test_a_webhook_without_its_server_is_reported_with_what_the_api_server_does(tool: Tool, empty: Kubectl) -> None:
    service = {"name": "webhook-service", "namespace": "kueue-system", "path": "/mutate", "port": 443}
    rule = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v2beta1"], "operations": ["CREATE"], "resources": ["mpijobs"]}
    webhook = {
        "name": "mmpijob.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "rules": [rule],
        "sideEffects": "None",
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "left-over"},
        "webhooks": [webhook],
    }
    empty.run("apply", "-f", "-", stdin=json.dumps(configuration))
    done = tool.attempt("doctor", "--migrate")
    assert done.returncode == 1
    sentence = "webhook mmpijob.kb.io makes the API server refuse each MPIJob, because Service kueue-system/webhook-service does not exist"
    assert f"problem  {sentence}\n         Delete the webhook: kubectl delete mutatingwebhookconfiguration left-over\n" in done.stdout
    tool.here.run("delete", "mutatingwebhookconfiguration", "left-over")
