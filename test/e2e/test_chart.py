"""What the real helm renders of the chart, in both versions in use: next to manifests/, and for an API server."""

import json
from typing import Any

import pytest
import yaml

from e2e.charts import CHART, RELEASE, VERSIONS, Helm, helm_of
from e2e.clusters import ROOT
from e2e.kubectl import Kubectl, Obj
from e2e.neighbours import module_folder
from e2e.shell import blocks_below
from imaging.command import install_command


@pytest.fixture(scope="module", params=VERSIONS)
def helm(request: pytest.FixtureRequest, empty: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return helm_of(request.param, empty, tmp_path_factory.mktemp("helm"))


OPEN: dict[str, Any] = {"metrics": {"access": "open"}}
OVERLAYS: dict[str, dict[str, Any]] = {
    "standalone": OPEN,
    "secure-metrics": {},
    "launcher-logs": {**OPEN, "launcherLogs": {"enabled": True}},
}
OF_HELM = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart")


def by_name(objects: list[Obj]) -> dict[tuple[str, str], Obj]:
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects)
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_chart_has_the_objects_of_the_manifests(overlay: str, helm: Helm, empty: Kubectl) -> None:
    rendered = by_name(helm.render(values=OVERLAYS[overlay]))
    overlaid = by_name([*yaml.safe_load_all(empty.run("kustomize", str(ROOT / "manifests/overlays" / overlay)))])
    # Helm's own labels name who manages an object, and what it keeps.
    for each in rendered.values():
        assert all(each["metadata"]["labels"].pop(name) for name in OF_HELM)
    assert rendered["CustomResourceDefinition", "mpijobs.kubeflow.org"]["metadata"].pop("annotations") == {
        "helm.sh/resource-policy": "keep"
    }
    # `helm install --create-namespace` creates it: a release cannot contain the namespace that it is stored in.
    del overlaid["Namespace", "mpi-operator"]
    assert sorted(rendered) == sorted(overlaid)
    for key, expected in overlaid.items():
        assert rendered[key] == expected, key


def test_the_yaml_has_the_objects_of_the_chart(helm: Helm) -> None:
    applied = by_name([*yaml.safe_load_all((ROOT / "deploy/v2beta1/mpi-operator.yaml").read_text(encoding="utf-8"))])
    rendered = by_name(helm.render(values=OPEN))
    assert set(applied) - set(rendered) == {("Namespace", "mpi-operator")}
    assert set(rendered) <= set(applied)
    for key, each in rendered.items():
        assert {**each, "metadata": None} == {**applied[key], "metadata": None}


EVERYTHING: dict[str, Any] = {
    "replicas": 3,
    "image": {"repository": "registry.example.com/mpi-operator", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "gangScheduling": "volcano",
    "ssh": {"default": "Injected"},
    "flags": {"threadiness": 1_000_000, "lease-duration": "20s", "kube-api-qps": 0.5, "log-level": "debug"},
    "env": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "authority", "configMap": {"name": "authority", "optional": True}}],
    "extraVolumeMounts": [{"name": "authority", "mountPath": "/authority", "readOnly": True}],
    "launcherLogs": {"enabled": True},
    "serviceAccount": {"annotations": {"example.com/identity": "operator"}},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "labels": {"example.com/team": "platform"},
    "annotations": {"example.com/note": "x"},
    "podLabels": {"example.com/tier": "control"},
    "podAnnotations": {"sidecar.istio.io/inject": "true"},
    "podDisruptionBudget": {"minAvailable": "50%"},
    "networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}], "egress": [{"ports": [{"port": 443}]}]},
    "metrics": {"readers": [{"name": "prometheus", "namespace": "monitoring"}], "certificateSecret": "certificate"},
    "podMonitor": {
        "enabled": "auto",
        "labels": {"release": "x"},
        "interval": "15s",
        "tokenSecret": {"name": "reader", "key": "token"},
        "tlsConfig": {"ca": {"secret": {"name": "certificate", "key": "ca.crt"}}},
    },
    "prometheusRule": {"enabled": "auto", "labels": {"release": "x"}, "repositoryUrl": "https://git.example.com/mpiop/blob/main/"},
    "grafanaDashboard": {"enabled": True, "labels": {"team": "x"}},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "service monitor": {"serviceMonitor": {"enabled": True, "interval": "1m"}},
    "verified by a file": {
        "metrics": {"certificateSecret": "certificate"},
        "serviceMonitor": {"enabled": True, "tlsConfig": {"caFile": "/authority/ca.crt", "serverName": "metrics.example.com"}},
    },
    "one namespace": {"watchNamespaces": ["default"], "launcherLogs": {"enabled": True}, "gangScheduling": "volcano"},
    "one namespace, open": {"watchNamespaces": ["default"], "metrics": {"access": "open"}, "podMonitor": {"enabled": True}},
    "two namespaces": {"watchNamespaces": ["default", "kube-public"], "launcherLogs": {"enabled": True}},
    "few": {"replicas": 1, "crd": {"install": False}, "serviceAccount": {"create": False}, "metrics": {"access": "none"}},
}


@pytest.fixture(scope="module")
def monitoring(empty: Kubectl) -> list[str]:
    """The CRDs of the Prometheus Operator on the cluster; how `helm template` learns of them."""
    folder = module_folder("prometheus-operator", "github.com/prometheus-operator/prometheus-operator") / "example/prometheus-operator-crd"
    kinds = ("PodMonitor", "ServiceMonitor", "PrometheusRule")
    for kind in kinds:
        empty.run("apply", "--server-side", "-f", str(folder / f"monitoring.coreos.com_{kind.lower()}s.yaml"))
        empty.run("wait", "--for=condition=Established", f"crd/{kind.lower()}s.monitoring.coreos.com", "--timeout=30s")
    return [f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in kinds]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_api_server_accepts_what_the_chart_renders(variant: str, helm: Helm, empty: Kubectl, monitoring: list[str]) -> None:
    values = VARIANTS[variant]
    lint = helm.run("lint", "--strict", CHART, "--values", "-", stdin=json.dumps(values))
    assert "0 chart(s) failed" in lint
    empty.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE}})
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": helm.render(*monitoring, values=values)})
    empty.run("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", stdin=objects)


@pytest.mark.parametrize(
    ("values", "namespaces"),
    [
        ({}, [RELEASE]),
        ({"watchNamespaces": ["team-b"]}, ["team-b"]),
        ({"watchNamespaces": ["team-b", "team-a"]}, ["team-b", "team-a"]),
        ({"capabilities": {"readable": False}}, []),
    ],
    ids=["all namespaces", "one namespace", "two namespaces", "switched off"],
)
def test_everybody_may_read_what_the_operator_offers_where_it_publishes_that(values: Obj, namespaces: list[str], helm: Helm) -> None:
    objects = [each for each in helm.render(values=values) if each["metadata"]["name"] == f"{RELEASE}-capabilities-reader"]
    found = sorted((each["kind"], each["metadata"]["namespace"]) for each in objects)
    assert found == sorted((kind, namespace) for namespace in namespaces for kind in ("Role", "RoleBinding"))
    for each in objects:
        if each["kind"] == "RoleBinding":
            assert [subject["name"] for subject in each["subjects"]] == ["system:authenticated"]


def test_make_push_prints_what_installs_both_images_by_digest(helm: Helm) -> None:
    operator, agent = (
        f"registry.example.com/team/mpi-operator{suffix}@sha256:{number * 64}" for suffix, number in (("", "0"), ("-agent", "1"))
    )
    options = [word for word in install_command(operator, agent) if word.startswith("--set=")]
    [container] = by_name(helm.render(*options, values={}))["Deployment", RELEASE]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == operator
    assert f"--agent-image={agent}" in container["args"]


def test_every_value_reaches_the_object_that_it_is_for(helm: Helm, monitoring: list[str]) -> None:
    objects = by_name(helm.render(*monitoring, values=EVERYTHING))
    pod = objects["Deployment", RELEASE]["spec"]["template"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.com/mpi-operator@sha256:{'0' * 64}"
    assert container["args"] == [
        "--lock-namespace=$(POD_NAMESPACE)",
        "--monitoring-port=9090",
        "--metrics-secure",
        "--metrics-cert-dir=/tls",
        "--gang-scheduling=volcano",
        "--ssh=Injected",
        "--kube-api-qps=0.5",
        "--lease-duration=20s",
        "--log-level=debug",
        "--threadiness=1000000",
    ]
    for name in ("imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"):
        assert pod["spec"][name] == EVERYTHING[name]
    assert pod["metadata"]["annotations"] == {"sidecar.istio.io/inject": "true", "example.com/note": "x"}
    assert {"example.com/tier", "example.com/team"} <= set(pod["metadata"]["labels"])
    assert all(each["metadata"]["labels"]["example.com/team"] == "platform" for each in objects.values())
    assert all(each["metadata"]["annotations"]["example.com/note"] == "x" for each in objects.values())
    assert objects["ClusterRoleBinding", f"{RELEASE}-metrics-reader"]["subjects"] == [
        {"kind": "ServiceAccount"} | EVERYTHING["metrics"]["readers"][0]
    ]
    policy = objects["NetworkPolicy", RELEASE]["spec"]
    assert (policy["policyTypes"], [rule["ports"][0]["port"] for rule in policy["ingress"]]) == (
        ["Ingress", "Egress"],
        ["health", "metrics"],
    )
    address = EVERYTHING["prometheusRule"]["repositoryUrl"]
    shown = blocks_below("docs/monitoring.md", "yaml")["Alerts"].replace("runbook_url: ", f"runbook_url: {address}")
    assert objects["PrometheusRule", RELEASE]["spec"] == yaml.safe_load(shown)
    dashboard = objects["ConfigMap", f"{RELEASE}-dashboard"]
    assert {"grafana_dashboard": "1", "team": "x"}.items() <= dashboard["metadata"]["labels"].items()
    assert dashboard["data"]["mpi-operator.json"] == (ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8")
