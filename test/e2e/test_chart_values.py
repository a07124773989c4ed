"""What the real helm makes of single values of the chart. Needs no cluster."""

import os
from typing import Any

import pytest
import yaml

from e2e.charts import RELEASE, VERSIONS, Helm, helm_of
from e2e.kubectl import Kubectl, Obj
from e2e.shell import blocks_below
from mpiop import __version__


@pytest.fixture(scope="module", params=VERSIONS)
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return helm_of(request.param, Kubectl(dict(os.environ)), tmp_path_factory.mktemp("helm"))


def pod_of(objects: list[Obj]) -> Obj:
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    spec: Obj = deployment["spec"]["template"]["spec"]
    return spec


def flags_of(objects: list[Obj]) -> dict[str, str]:
    """Return the operator's flags with their values."""
    [container] = pod_of(objects)["containers"]
    return {name: value for name, _, value in (flag.partition("=") for flag in container["args"])}


DIGEST = f"sha256:{'0' * 64}"
OPERATOR = f"mpi-operator:v{__version__}"
AGENT = f"mpi-operator-agent:v{__version__}"
MIRROR = "registry.example.com/hub"
IMAGES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "defaults: the operator knows its agent's image": ({}, f"mpiop.invalid/{OPERATOR}", None),
    "a registry for all charts": ({"global": {"imageRegistry": MIRROR}}, f"{MIRROR}/{OPERATOR}", f"{MIRROR}/{AGENT}"),
    "a registry of this chart": ({"image": {"registry": f"{MIRROR}/"}}, f"{MIRROR}/{OPERATOR}", f"{MIRROR}/{AGENT}"),
    "both: the one for all charts wins": (
        {"global": {"imageRegistry": MIRROR}, "image": {"registry": "other.example.com"}},
        f"{MIRROR}/{OPERATOR}",
        f"{MIRROR}/{AGENT}",
    ),
    "a registry with a port, and repositories without one": (
        {"image": {"registry": "localhost:5000", "repository": "team/mpi", "tag": "x"}, "agent": {"image": {"repository": "team/a"}}},
        "localhost:5000/team/mpi:x",
        f"localhost:5000/team/a:v{__version__}",
    ),
    "a registry instead of others": (
        {"image": {"registry": MIRROR, "repository": "a:1/mpi"}, "agent": {"image": {"repository": "localhost/agent"}}},
        f"{MIRROR}/mpi:v{__version__}",
        f"{MIRROR}/agent:v{__version__}",
    ),
    "the agent's tag": (
        {"image": {"repository": "a.io/mpi"}, "agent": {"image": {"tag": "x"}}},
        f"a.io/mpi:v{__version__}",
        "a.io/mpi-agent:x",
    ),
    "the agent's digest": (
        {"agent": {"image": {"repository": "a.io/b", "tag": "x", "digest": DIGEST}}},
        f"mpiop.invalid/{OPERATOR}",
        f"a.io/b@{DIGEST}",
    ),
    "the flag wins": (
        {"global": {"imageRegistry": MIRROR}, "flags": {"agent-image": "a.io/own:1"}},
        f"{MIRROR}/{OPERATOR}",
        "a.io/own:1",
    ),
    "no agent": ({"global": {"imageRegistry": MIRROR}, "flags": {"agent-image": ""}}, f"{MIRROR}/{OPERATOR}", ""),
}


@pytest.mark.parametrize("case", IMAGES)
def test_images_of_operator_and_agent(case: str, helm: Helm) -> None:
    values, operator, agent = IMAGES[case]
    objects = helm.render(values=values)
    [container] = pod_of(objects)["containers"]
    assert container["image"] == operator
    assert flags_of(objects).get("--agent-image") == agent
    [flags] = [[word for word in container["args"] if word.startswith("--agent-image")]]
    assert len(flags) <= 1


NAMES: dict[str, tuple[dict[str, str], str]] = {
    "none": ({}, RELEASE),
    "appended": ({"nameOverride": "jobs"}, f"{RELEASE}-jobs"),
    "not repeated": ({"nameOverride": "operator"}, RELEASE),
    "the full name wins": ({"nameOverride": "jobs", "fullnameOverride": "mpi"}, "mpi"),
    "too long for a Service": ({"nameOverride": "x" * 50 + "-y"}, f"{RELEASE}-{'x' * 50}"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_the_objects(case: str, helm: Helm) -> None:
    values, name = NAMES[case]
    objects = helm.render(values=values)
    names = {each["kind"]: each["metadata"]["name"] for each in objects if each["kind"] in {"Deployment", "Service", "ServiceAccount"}}
    assert names == dict.fromkeys(("Deployment", "Service", "ServiceAccount"), name)
    assert pod_of(objects)["serviceAccountName"] == name
    # Two releases in a namespace must not share the Lease.
    assert flags_of(objects).get("--lease-name", RELEASE) == name
    [role] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == ("Role", f"{name}-leader-election")]
    assert [name] in [rule.get("resourceNames") for rule in role["rules"]]


def test_volumes_are_added_to_those_of_the_chart(helm: Helm) -> None:
    volume = {"name": "authority", "configMap": {"name": "authority"}}
    mount = {"name": "authority", "mountPath": "/authority", "readOnly": True}
    pod = pod_of(helm.render(values={"extraVolumes": [volume], "extraVolumeMounts": [mount]}))
    before = pod_of(helm.render(values={}))
    assert pod["volumes"] == [*before["volumes"], volume]
    assert pod["containers"][0]["volumeMounts"] == [*before["containers"][0]["volumeMounts"], mount]


def test_other_objects_may_name_those_of_the_chart(helm: Helm) -> None:
    def config_map(name: str) -> Obj:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

    extra = [config_map('{{ include "mpiop.fullname" . }}-{{ .Release.Namespace }}'), config_map("second")]
    objects = helm.render(values={"extraObjects": extra})
    added = [config_map(f"{RELEASE}-{RELEASE}"), config_map("second")]
    assert [each for each in objects if each in added] == added
    assert [each for each in objects if each not in added] == helm.render(values={})


KINDS = {"podMonitor": "PodMonitor", "serviceMonitor": "ServiceMonitor", "prometheusRule": "PrometheusRule"}


@pytest.mark.parametrize("value", KINDS)
def test_a_monitor_is_never_left_out_silently(value: str, helm: Helm) -> None:
    kind = KINDS[value]

    def is_rendered(*options: str, enabled: bool | str) -> bool:
        values = {"metrics": {"access": "open"}, value: {"enabled": enabled}}
        return kind in {each["kind"] for each in helm.render(*options, values=values)}

    crd = f"--api-versions=monitoring.coreos.com/v1/{kind}"
    assert is_rendered(enabled=True)
    assert is_rendered(crd, enabled="auto")
    assert not is_rendered(enabled="auto")
    assert not is_rendered(crd, enabled=False)


CERTIFICATE = {"metrics": {"certificateSecret": "certificate"}}
CA = {"ca": {"secret": {"name": "certificate", "key": "ca.crt"}}}
SERVICE = f"{RELEASE}.{RELEASE}.svc"
TLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing to verify with": ({}, {"insecureSkipVerify": True}),
    "an authority: the name is the Service's": (CA, {**CA, "serverName": SERVICE}),
    "a name": ({**CA, "serverName": "x.example.com"}, {**CA, "serverName": "x.example.com"}),
    "switched off": ({"insecureSkipVerify": True}, {"insecureSkipVerify": True, "serverName": SERVICE}),
}


@pytest.mark.parametrize("case", TLS)
def test_prometheus_verifies_the_certificate_as_defined(case: str, helm: Helm) -> None:
    given, expected = TLS[case]
    token = {"tokenSecret": {"name": "reader", "key": "token"}}
    for value, own, endpoints in (("podMonitor", token, "podMetricsEndpoints"), ("serviceMonitor", {}, "endpoints")):
        objects = helm.render(values={**CERTIFICATE, value: {"enabled": True, "tlsConfig": given, **own}})
        [monitor] = [each for each in objects if each["kind"] == KINDS[value]]
        assert monitor["spec"][endpoints][0]["tlsConfig"] == expected


def test_an_upgrade_that_reuses_the_values_of_0_1_0_changes_nothing(helm: Helm) -> None:
    # `helm upgrade --reuse-values` has the old release's values instead of those in values.yaml; null takes a value away.
    new = dict.fromkeys(("global", "nameOverride", "agent", "extraVolumes", "extraVolumeMounts", "extraObjects"))
    monitors = {name: {"tlsConfig": None} for name in ("podMonitor", "serviceMonitor")}
    assert helm.render(values={**new, **monitors, "image": {"registry": None}}) == helm.render(values={})


def test_the_values_of_the_document_verify_the_certificate(helm: Helm) -> None:
    shown = yaml.safe_load(blocks_below("docs/monitoring.md", "yaml")["Verify the certificate with Helm"])
    objects = helm.render(values=shown)
    [monitor] = [each for each in objects if each["kind"] == "ServiceMonitor"]
    authority = {"secret": {"name": shown["metrics"]["certificateSecret"], "key": "ca.crt"}}
    assert monitor["spec"]["endpoints"][0]["tlsConfig"] == {"ca": authority, "serverName": SERVICE}
    assert flags_of(objects)["--metrics-cert-dir"] == "/tls"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a digest that is none": ({"agent": {"image": {"digest": "latest"}}}, "at '/agent/image/digest'"),
    "a registry with a scheme": ({"image": {"registry": "https://registry.example.com"}}, "at '/image/registry'"),
    "a field of a volume": ({"extraVolumes": [{"name": "x", "confgMap": {}}]}, "additional properties 'confgMap' not allowed"),
    "a mount without a path": ({"extraVolumeMounts": [{"name": "x"}]}, "missing property 'mountPath'"),
    "no certificate to verify": ({"serviceMonitor": {"enabled": True, "tlsConfig": CA}}, "name a Secret in metrics.certificateSecret"),
    "TLS of open metrics": (
        {"metrics": {"access": "open"}, "podMonitor": {"enabled": True, "tlsConfig": CA}},
        "podMonitor.tlsConfig is for authenticated metrics",
    ),
    "a file in a PodMonitor, which cannot have one": ({"podMonitor": {"tlsConfig": {"caFile": "/ca.crt"}}}, "'caFile' not allowed"),
    "a name for the objects": ({"nameOverride": "Jobs"}, "at '/nameOverride'"),
    "a name that does not exist": ({"replica": 3}, "at '': additional properties 'replica' not allowed"),
    "a name in a section": ({"image": {"name": "x"}}, "at '/image': additional properties 'name' not allowed"),
    "a field of Kubernetes": ({"tolerations": [{"keys": "x"}]}, "at '/tolerations/0': additional properties 'keys' not allowed"),
    "a flag": ({"flags": {"threadines": 3}}, "at '/flags': additional properties 'threadines' not allowed"),
    "a flag that is a value": ({"flags": {"namespace": "x"}}, "at '/flags': additional properties 'namespace' not allowed"),
    "a type": ({"replicas": "two"}, "at '/replicas': got string, want integer"),
    "a word": ({"metrics": {"access": "public"}}, "at '/metrics/access': value must be one of 'auto', 'authenticated', 'open', 'none'"),
    "two monitors": ({"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}, "switch one of them off"),
    "monitors without metrics": ({"metrics": {"access": "none"}, "podMonitor": {"enabled": True}}, "set metrics.access to"),
    "readers of open metrics": (
        {"metrics": {"access": "open", "readers": [{"name": "x", "namespace": "y"}]}},
        "set metrics.access to authenticated, or leave them out",
    ),
    "no token": ({"podMonitor": {"enabled": True}}, "podMonitor.tokenSecret is missing: name the Secret"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_values_are_refused_with_their_path(case: str, helm: Helm) -> None:
    values, sentence = REFUSED[case]
    assert sentence in helm.refusal(values)
