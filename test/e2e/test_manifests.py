"""The manifests and the commands of the documents, against a real API server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.clusters import ROOT
from e2e.kubectl import DEFINITIONS, DEPLOYMENTS, Kubectl
from e2e.plugin import new_tool
from imaging.catalogue import release_version

MANIFESTS = ROOT / "manifests"
DEPLOY = ROOT / "deploy/v2beta1/mpi-operator.yaml"
OVERLAYS = sorted(path.parent for path in MANIFESTS.glob("overlays/*/kustomization.yaml"))
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml"))


def test_there_is_something_to_check() -> None:
    assert {path.name for path in OVERLAYS} >= {"standalone", "kubeflow", "dev", "secure-metrics"}
    assert EXAMPLES


def test_without_the_operator_the_tools_say_what_is_missing(empty: Kubectl, tmp_path: Path) -> None:
    tool = new_tool(empty.within("default"), tmp_path)
    listed = tool.attempt("list")
    assert (listed.returncode, "install the operator" in listed.stderr) == (3, True)
    done = tool.attempt("doctor")
    assert done.returncode == 1
    assert "problem  the cluster does not know MPIJobs\n         Install the operator." in done.stdout


def test_the_documents_commands_install_the_operator_standalone(empty: Kubectl) -> None:
    empty.run("apply", "-f", str(DEPLOY))
    assert "mpijobs.kubeflow.org" in empty.run("get", "crd")
    deployment = empty.within("mpi-operator").read(DEPLOYMENTS, "mpi-operator")
    definition = empty.read(DEFINITIONS, "mpijobs.kubeflow.org")
    empty.run("apply", "-f", str(DEPLOY))
    again = empty.within("mpi-operator").read(DEPLOYMENTS, "mpi-operator"), empty.read(DEFINITIONS, "mpijobs.kubeflow.org")
    assert [each["metadata"]["generation"] for each in again] == [each["metadata"]["generation"] for each in (deployment, definition)]
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["selector"]["matchLabels"] == {
        "app": "mpi-operator",
        "app.kubernetes.io/component": "mpijob",
        "app.kubernetes.io/name": "mpi-operator",
        "kustomize.component": "mpi-operator",
    }


def test_the_documents_commands_install_the_operator_for_kubeflow(empty: Kubectl) -> None:
    empty.run("create", "namespace", "kubeflow")
    empty.run("apply", "-k", str(MANIFESTS / "overlays/kubeflow"))
    deployment = empty.within("kubeflow").read(DEPLOYMENTS, "mpi-operator")
    assert deployment["metadata"]["namespace"] == "kubeflow"
    for role in ("admin", "edit", "view"):
        found = json.loads(empty.run("get", "clusterrole", f"kubeflow-mpijobs-{role}", "-o", "json"))
        assert found["metadata"]["labels"][f"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{role}"] == "true"


def test_the_definition_is_established_and_small_enough_for_plain_apply(empty: Kubectl) -> None:
    empty.run("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=30s")
    definition = empty.read(DEFINITIONS, "mpijobs.kubeflow.org")
    assert not [c for c in definition["status"]["conditions"] if c["type"] == "NonStructuralSchema"]
    stored = len(definition["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert stored < 200_000


def test_every_field_of_the_spec_is_explained(empty: Kubectl) -> None:
    for path in ("mpijob", "mpijob.spec", "mpijob.spec.runPolicy", "mpijob.spec.mpiReplicaSpecs.Launcher", "mpijob.status"):
        explained = empty.run("explain", path, "--api-version=kubeflow.org/v2beta1")
        assert "<no description>" not in explained, explained


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_the_api_server_accepts_every_overlay(overlay: Path, empty: Kubectl) -> None:
    rendered = empty.run("kustomize", str(overlay))
    for namespace in {each["metadata"].get("namespace", "") for each in yaml.safe_load_all(rendered)} - {""}:
        empty.run("apply", "-f", "-", stdin=yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    empty.run("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rendered)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_api_server_accepts_every_example(example: Path, empty: Kubectl) -> None:
    empty.within("default").run("create", "--dry-run=server", "--validate=strict", "-f", str(example))


def test_secure_metrics_go_where_the_overlay_puts_the_operator(empty: Kubectl, tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    own = tmp_path / "manifests" / "overlays" / "own"
    own.mkdir()
    text = "namespace: own\nresources: [../kubeflow]\ncomponents: [../../components/secure-metrics]\n"
    (own / "kustomization.yaml").write_text(text, encoding="utf-8")
    rendered = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(empty.run("kustomize", str(own)))}
    subject = {"kind": "ServiceAccount", "name": "mpi-operator", "namespace": "own"}
    assert rendered["ClusterRoleBinding", "mpi-operator-metrics-auth"]["subjects"] == [subject]
    [container] = rendered["Deployment", "mpi-operator"]["spec"]["template"]["spec"]["containers"]
    assert "--metrics-secure" in container["args"]
    assert rendered["Service", "mpi-operator"]["metadata"]["annotations"]["prometheus.io/scheme"] == "https"


def test_one_line_moves_operator_and_agent_to_another_registry(empty: Kubectl, tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    overlay = tmp_path / "manifests" / "overlays" / "registry"
    file = overlay / "kustomization.yaml"
    file.write_text(re.sub(r"(?<=registry=)\S+", "localhost:5000/hub", file.read_text(encoding="utf-8")), encoding="utf-8")
    rendered = list(yaml.safe_load_all(empty.run("kustomize", str(overlay))))
    assert "ConfigMap" not in {each["kind"] for each in rendered}
    [container] = next(each["spec"]["template"]["spec"]["containers"] for each in rendered if each["kind"] == "Deployment")
    operator = f"localhost:5000/hub/mpi-operator:{release_version()}"
    agent = {"name": "AGENT_IMAGE", "value": operator.replace("mpi-operator", "mpi-operator-agent")}
    assert container["image"] == operator
    assert "--agent-image=$(AGENT_IMAGE)" in container["args"]
    assert agent in container["env"]


def test_deploy_is_what_the_standalone_overlay_makes(empty: Kubectl) -> None:
    rendered = empty.run("kustomize", str(MANIFESTS / "overlays/standalone"))
    assert list(yaml.safe_load_all(rendered)) == list(yaml.safe_load_all(DEPLOY.read_text(encoding="utf-8")))


def test_kubectl_is_of_the_clusters_version(empty: Kubectl) -> None:
    assert shutil.which("kubectl", path=empty.environment["PATH"])
    reported = json.loads(empty.run("version", "-o", "json"))
    assert reported["clientVersion"]["gitVersion"] == reported["serverVersion"]["gitVersion"]


def test_make_images_builds_under_the_name_that_is_asked_for() -> None:
    command = ["make", "RELEASE_VERSION=dev", "IMAGE_NAME=registry.example.com/mpi-operator", "images"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "registry.example.com/mpi-operator:dev" in ended.stderr
