"""What users apply: the CRD, the operator's objects, the examples. That a real API server takes them is test/e2e's to show."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from generators.crd import custom_resource_definition
from generators.manifests import is_current
from mpiop import __version__
from mpiop.api.capabilities import NAME
from mpiop.api.parse import parse_mpijob
from mpiop.api.validation import validate
from mpiop.cli.flags import parse_command

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy/v2beta1/mpi-operator.yaml"


def read_yaml(path: Path) -> list[Any]:
    """Return the documents of a file."""
    return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))


CRD = custom_resource_definition()
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
OBJECTS = {(item["kind"], item["metadata"]["name"]): item for item in read_yaml(DEPLOY)}
DEPLOYMENT = OBJECTS["Deployment", "mpi-operator"]
LABELS = {
    "app": "mpi-operator",
    "app.kubernetes.io/component": "mpijob",
    "app.kubernetes.io/name": "mpi-operator",
    "kustomize.component": "mpi-operator",
}
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml"))


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node of a schema with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(schema[key], path + mark)


NODES = dict(nodes(SCHEMA))
IN_TEMPLATE = {path: node for path, node in NODES.items() if ".template." in path}


@pytest.mark.parametrize("path", [os.environ["PATH"], ""], ids=["with kubectl if there is one", "without kubectl"])
def test_generated_files_are_up_to_date(path: str, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "hack/generate", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path, "HOME": str(tmp_path)})
    # Without a home, kubectl puts its cache into the working directory.
    assert (done.returncode, done.stderr) == (0, "")


def test_without_kubectl_a_change_of_the_deploy_file_or_of_its_sources_is_seen() -> None:
    text = DEPLOY.read_text(encoding="utf-8")
    assert is_current(text)
    assert not is_current(text.replace("replicas: 2", "replicas: 1"))
    assert not is_current(re.sub(r"sources \w+", "sources 00", text))
    assert not is_current("")


def test_the_crd_is_small_enough_for_plain_apply() -> None:
    assert len(json.dumps(CRD)) < 200_000
    assert OBJECTS["CustomResourceDefinition", "mpijobs.kubeflow.org"] | {"metadata": {"name": "mpijobs.kubeflow.org"}} == CRD


def test_every_field_of_ours_is_described() -> None:
    ours = [path for path in NODES if path not in IN_TEMPLATE and not path.endswith(("{}", "[]")) and ".metadata" not in path]
    assert len(ours) > 40
    assert [path for path in ours if not NODES[path].get("description")] == []


def test_unknown_fields_are_dropped_everywhere() -> None:
    """Where they were kept, somebody could store an object that the API server cannot decode again."""
    assert "x-kubernetes-preserve-unknown-fields" not in json.dumps(CRD)


def test_pod_templates_have_types() -> None:
    assert len(IN_TEMPLATE) > 2000
    for path, node in IN_TEMPLATE.items():
        assert node.get("type") or node.get("x-kubernetes-int-or-string"), path
        assert "enum" not in node, path
        if path.rpartition(".template.")[2] not in {"metadata", "spec"}:
            assert "description" not in node, path


TYPES = {
    "containers[].ports[].containerPort": {"type": "integer", "format": "int32"},
    "containers[].livenessProbe.httpGet.port": {"x-kubernetes-int-or-string": True},
    "containers[].command": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    "hostNetwork": {"type": "boolean"},
    "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
    "schedulingGates[].name": {"type": "string"},
}


@pytest.mark.parametrize("path", TYPES)
def test_types_in_pod_templates_are_those_of_kubernetes(path: str) -> None:
    assert NODES[f".spec.mpiReplicaSpecs.Worker.template.spec.{path}"] == TYPES[path]


def test_quantities_take_what_kubernetes_takes() -> None:
    pattern = NODES[".spec.runPolicy.schedulingPolicy.minResources{}"]["pattern"]
    assert pattern == NODES[".spec.mpiReplicaSpecs.Launcher.template.spec.containers[].resources.limits{}"]["pattern"]
    assert all(re.search(pattern, good) for good in ("1", "0.5", ".5", "5.", "100m", "16Gi", "1e3", "1E-3", "-2", "+3k", "7u", "1E", "2Ei"))
    assert not any(re.search(pattern, bad) for bad in ("", "lots", "1 Gi", "1GiB", "m", "1mm", "0x10", "1e", "--1", "1K"))


def test_only_the_listed_fields_and_keys_of_lists_have_defaults() -> None:
    defaults = {path: node["default"] for path, node in NODES.items() if "default" in node}
    ours = {path: value for path, value in defaults.items() if path not in IN_TEMPLATE}
    assert ours == {
        ".spec.slotsPerWorker": 1,
        ".spec.runLauncherAsWorker": False,
        ".spec.sshAuthMountPath": "/root/.ssh",
        ".spec.launcherCreationPolicy": "AtStartup",
        ".spec.mpiImplementation": "OpenMPI",
        ".spec.runPolicy.suspend": False,
        ".status": {"observedGeneration": -1},
    }
    for path, node in NODES.items():
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"].get("required", ()) or "default" in node["items"]["properties"][key], path
    keys = {
        f"{path}[].{key}" for path, node in NODES.items() for key in node.get("x-kubernetes-list-map-keys", ())
    }  # fmt: skip
    assert set(defaults) - set(ours) <= keys
    for role in ("Launcher", "Worker"):
        assert defaults[f".spec.mpiReplicaSpecs.{role}.template.spec.containers[].name"] == role.lower()


def test_columns_answer_how_is_my_job() -> None:
    columns = CRD["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == ["State", "Workers", "Restarts", "Duration", "Age"]
    for column in columns:
        assert column["jsonPath"].replace("[0]", "[]") in {*NODES, ".metadata.creationTimestamp"}


def test_the_identity_is_that_of_the_go_operator() -> None:
    kinds = ("Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    assert all((kind, "mpi-operator") in OBJECTS for kind in kinds)
    assert DEPLOYMENT["metadata"]["namespace"] == "mpi-operator"
    assert DEPLOYMENT["spec"]["selector"] == {"matchLabels": LABELS}
    assert DEPLOYMENT["spec"]["template"]["metadata"] == {"labels": LABELS, "annotations": {"sidecar.istio.io/inject": "false"}}
    for role in ("admin", "edit", "view"):
        labels = OBJECTS["ClusterRole", f"kubeflow-mpijobs-{role}"]["metadata"]["labels"]
        assert labels[f"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{role}"] == "true"


def test_the_operator_meets_the_restricted_pod_security_standard_and_more() -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert OBJECTS["Namespace", "mpi-operator"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert DEPLOYMENT["spec"]["replicas"] == 2


def test_the_deployment_runs_this_version_with_flags_that_it_knows() -> None:
    [container] = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"mpiop.invalid/mpi-operator:v{__version__}"
    assert container["imagePullPolicy"] == "IfNotPresent"
    command = parse_command(container["args"], {})
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (ports["metrics"], ports["health"]) == (command.options.monitoring_port, command.options.health_port)
    assert not command.ignored
    assert OBJECTS["Service", "mpi-operator"]["spec"]["ports"] == [{"name": "metrics", "port": 9090, "targetPort": "metrics"}]


READER = "mpi-operator-capabilities-reader"


def test_everybody_may_read_what_the_operator_offers_and_nothing_else() -> None:
    assert OBJECTS["Role", READER]["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get"]}]
    assert [subject["name"] for subject in OBJECTS["RoleBinding", READER]["subjects"]] == ["system:authenticated"]


def test_the_operator_has_only_the_rights_that_it_needs() -> None:
    rules = [rule for (kind, _), item in OBJECTS.items() if kind in {"ClusterRole", "Role"} for rule in item["rules"]]
    assert not any("*" in part for rule in rules for part in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]))
    rights = {resource: set(rule["verbs"]) for rule in OBJECTS["ClusterRole", "mpi-operator"]["rules"] for resource in rule["resources"]}
    assert rights["secrets"] == {"create", "get", "delete"}
    assert rights["mpijobs"] == {"get", "list", "watch", "delete"}
    assert rights["mpijobs/status"] == {"patch"}
    assert not {"pods/exec", "customresourcedefinitions", "leases", "endpoints", "nodes"} & set(rights)
    create, other = OBJECTS["Role", "mpi-operator-leader-election"]["rules"]
    assert (create["verbs"], other["resourceNames"]) == (["create"], ["mpi-operator"])
    for kind, binding in OBJECTS:
        if kind in {"ClusterRoleBinding", "RoleBinding"} and binding != READER:
            subject = {"kind": "ServiceAccount", "name": "mpi-operator", "namespace": "mpi-operator"}
            assert OBJECTS[kind, binding]["subjects"] == [subject]


COMPONENT = ROOT / "manifests/components/secure-metrics"


def test_secure_metrics_are_a_component_whose_rights_the_operator_has_not_got_without_it() -> None:
    roles = {item["metadata"]["name"]: item for item in read_yaml(COMPONENT / "cluster-roles.yaml") if item["kind"] == "ClusterRole"}
    asking, reading = roles["mpi-operator-metrics-auth"]["rules"], roles["mpi-operator-metrics-reader"]["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in asking] == [
        (["tokenreviews"], ["create"]),
        (["subjectaccessreviews"], ["create"]),
    ]
    assert reading == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert not [name for kind, name in OBJECTS if "metrics" in name]
    assert "reviews" not in DEPLOY.read_text(encoding="utf-8").partition("kind: ClusterRole\n")[2]


def test_the_component_adds_a_flag_that_the_operator_knows() -> None:
    [kustomization] = read_yaml(COMPONENT / "kustomization.yaml")
    [[added], service] = [next(yaml.safe_load_all(patch["patch"])) for patch in kustomization["patches"]]
    assert (added["op"], added["path"]) == ("add", "/spec/template/spec/containers/0/args/-")
    [container] = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
    assert parse_command([*container["args"], added["value"]], {}).options.metrics_secure
    assert service["metadata"] == {"name": "mpi-operator", "annotations": {"prometheus.io/scheme": "https"}}


def test_users_may_not_write_the_status() -> None:
    for role in ("admin", "edit", "view"):
        rules = OBJECTS["ClusterRole", f"kubeflow-mpijobs-{role}"]["rules"]
        verbs = {verb for rule in rules if "mpijobs/status" in rule["resources"] for verb in rule["verbs"]}
        assert verbs <= {"get", "list", "watch"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_every_example_is_a_valid_job(path: Path) -> None:
    jobs = [item for item in read_yaml(path) if item["kind"] == "MPIJob"]
    assert jobs
    for job in jobs:
        assert validate(parse_mpijob(job)) == ()
