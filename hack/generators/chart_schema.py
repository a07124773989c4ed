"""The JSON schema of the Helm chart's values: Helm refuses what it does not allow, so a typo never goes unnoticed."""

import json
from collections.abc import Mapping
from typing import Any

from generators.chart_values import values_of
from generators.manifests import ROOT
from generators.openapi import load_schemas, reference_name
from mpiop.api.constants import SSH_MODES
from mpiop.cli.flags import GROUPS
from mpiop.cli.goflags import DURATION, INTEGER, NUMBER, Kind

CHART = ROOT / "charts" / "mpiop"
OF_THE_CHART = frozenset({
    "namespace", "lock-namespace", "lease-name", "monitoring-port", "metrics-secure", "metrics-cert-dir", "health-port", "gang-scheduling",
    "ssh", "master", "kubeConfig",
})  # fmt: skip
"""Flags that the chart sets itself, from other values, or that mean nothing in a Pod of the cluster."""

Schema = dict[str, Any]
_CORE = "io.k8s.api.core.v1."
_INT_OR_STRING = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["string", "number"],
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["string", "integer"],
}
_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_STRINGS: Schema = {"type": "object", "additionalProperties": _STRING}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_AUTO: Schema = {"enum": [True, False, "auto"]}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_MONITOR: Mapping[str, Schema] = {"enabled": _AUTO, "labels": _STRINGS}
_INTERVAL: Schema = {"type": "string", "pattern": "^([0-9]+(ms|[smhd]))*$"}
_REGISTRY: Schema = {"type": "string", "pattern": "^([^/:@ ]+(:[0-9]+)?(/[^/:@ ]+)*/?)?$"}
_VERSION: Mapping[str, Schema] = {"tag": _STRING, "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}}
_NAME: Schema = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", "maxLength": 63}


def values_schema() -> str:
    """Return charts/mpiop/values.schema.json."""
    schema = _values()
    for value in values_of((CHART / "values.yaml").read_text(encoding="utf-8")):
        *parents, name = value.path.split(".")
        node = schema
        for parent in parents:
            node = node["properties"][parent]
        node["properties"][name] = {"description": value.text, **node["properties"][name]}
    described = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart mpiop", **schema}
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _values() -> Schema:
    """Return the schema without descriptions."""
    kubernetes = _Kubernetes()
    probe = dict.fromkeys(("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"), _COUNT)
    certificate = {"access": {"enum": ["auto", "authenticated", "open", "none"]}, "certificateSecret": _STRING}
    authority = {"secret": kubernetes.object("SecretKeySelector"), "configMap": kubernetes.object("ConfigMapKeySelector")}
    tls: Mapping[str, Schema] = {"ca": _section(authority), "serverName": _STRING, "insecureSkipVerify": _BOOLEAN}
    reader = _section({"name": _STRING, "namespace": _STRING}) | {"required": ["name", "namespace"]}
    return _section({
        # Helm hands the parent chart's global values to each subchart.
        "global": {"type": "object", "properties": {"imageRegistry": _REGISTRY}},
        "nameOverride": _NAME,
        "fullnameOverride": _NAME,
        "watchNamespaces": {"type": "array", "items": _NAME | {"minLength": 1}, "uniqueItems": True},
        "replicas": _COUNT,
        "image": _section({
            "registry": _REGISTRY,
            "repository": _STRING | {"minLength": 1},
            **_VERSION,
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        }),
        "agent": _section({"image": _section({"repository": _STRING, **_VERSION})}),
        "imagePullSecrets": kubernetes.list_of("LocalObjectReference"),
        "ssh": _section({"default": {"enum": list(SSH_MODES)}}),
        "gangScheduling": _STRING,
        "flags": _flags(),
        "env": kubernetes.list_of("EnvVar"),
        "extraVolumes": kubernetes.list_of("Volume"),
        "extraVolumeMounts": kubernetes.list_of("VolumeMount"),
        "extraObjects": _OBJECTS,
        "crd": _section({"install": _AUTO}),
        "userClusterRoles": _section({"install": _AUTO}),
        "capabilities": _section({"readable": _BOOLEAN}),
        "launcherLogs": _section({"enabled": _BOOLEAN}),
        "serviceAccount": _section({"create": _BOOLEAN, "name": _STRING, "annotations": _STRINGS}),
        "resources": kubernetes.object("ResourceRequirements"),
        "priorityClassName": _STRING,
        "nodeSelector": _STRINGS,
        "tolerations": kubernetes.list_of("Toleration"),
        "affinity": kubernetes.object("Affinity"),
        "topologySpreadConstraints": kubernetes.list_of("TopologySpreadConstraint"),
        "livenessProbe": _section(probe),
        "readinessProbe": _section(probe),
        "podSecurityContext": kubernetes.object("PodSecurityContext"),
        "securityContext": kubernetes.object("SecurityContext"),
        **dict.fromkeys(("labels", "annotations", "podLabels", "podAnnotations"), _STRINGS),
        "podDisruptionBudget": _section({"enabled": _BOOLEAN, "minAvailable": {"type": ["integer", "string"], "pattern": "^[0-9]+%$"}}),
        "networkPolicy": _section({"enabled": _BOOLEAN, "metricsFrom": _OBJECTS, "egress": _OBJECTS}),
        "metrics": _section({**certificate, "readers": {"type": "array", "items": reader}}),
        "podMonitor": _section({
            **_MONITOR, "interval": _INTERVAL, "tokenSecret": _section({"name": _STRING, "key": _STRING}), "tlsConfig": _section(tls),
        }),
        "serviceMonitor": _section({**_MONITOR, "interval": _INTERVAL, "tlsConfig": _section({**tls, "caFile": _STRING})}),
        "prometheusRule": _section({**_MONITOR, "repositoryUrl": {"type": "string", "pattern": "^(https?://.*/)?$"}}),
        "grafanaDashboard": _section({"enabled": _BOOLEAN, "labels": _STRINGS}),
    })  # fmt: skip


def _section(fields: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": {name: dict(schema) for name, schema in fields.items()}}


def _flags() -> Schema:
    """Return the flags that may be set by their names, with the types of their values."""
    flags = [setting.flag for settings in GROUPS.values() for setting in settings]
    return _section({flag.names[0]: _flag(flag.kind) for flag in flags if flag.names[0] not in OF_THE_CHART})


def _flag(kind: Kind) -> Schema:
    if kind.is_boolean:
        return _BOOLEAN
    if "|" in kind.placeholder:
        return {"enum": kind.placeholder.split("|")}
    types = {INTEGER.placeholder: "integer", NUMBER.placeholder: "number"}
    if kind.placeholder == DURATION.placeholder:
        return {"type": "string", "pattern": r"^([0-9.]+(ns|us|µs|ms|s|m|h))+$"}
    return {"type": types.get(kind.placeholder, "string")}


class _Kubernetes:
    """Types of Kubernetes' API as JSON schemas without unknown fields, from the same snapshot as the CRD's pod templates."""

    def __init__(self) -> None:
        self._schemas = load_schemas()

    def object(self, kind: str) -> Schema:
        """Return the schema of `kind` of core/v1."""
        return self._strict(self._schemas[_CORE + kind])

    def list_of(self, kind: str) -> Schema:
        """Return the schema of a list of `kind` of core/v1."""
        return {"type": "array", "items": self.object(kind)}

    def _strict(self, node: Schema) -> Schema:
        if name := reference_name(node):
            return {"type": _INT_OR_STRING[name]} if name in _INT_OR_STRING else self._strict(self._schemas[name])
        schema: Schema = {key: node[key] for key in ("type", "required") if key in node}
        if "items" in node:
            schema["items"] = self._strict(node["items"])
        if "properties" in node:
            schema["properties"] = {name: self._strict(field) for name, field in node["properties"].items()}
        if node.get("type") == "object":
            inner = node.get("additionalProperties")
            schema["additionalProperties"] = self._strict(inner) if inner else False
        return schema
