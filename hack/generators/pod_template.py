"""The structural schema of a pod template for a CRD: every known field with its type. The API server drops all others.

Without types `containerPort: "80"` would be stored, and every typed client would fail to decode the whole list of MPIJobs. Descriptions are
left out for size (`kubectl explain pod.spec` has them); enums, so that a value that Kubernetes adds needs no new CRD; defaults, so that
stored objects do not change. The one exception are keys of lists of type map, which must be required or have a default.
"""

from typing import Any

from generators.openapi import MINOR, ROOT, load_schemas, reference_name

QUANTITY: dict[str, Any] = {
    "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    "x-kubernetes-int-or-string": True,
}
_INT_OR_STRING: dict[str, Any] = {"x-kubernetes-int-or-string": True}
_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
}
_KEPT = ("type", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")


def pod_template_schema(container_name: str) -> dict[str, Any]:
    """Return the schema of a PodTemplateSpec with at least one container, whose name is `container_name` if it has none."""
    schema = _structural({"$ref": ROOT}, load_schemas())
    metadata, spec = schema["properties"]["metadata"], schema["properties"]["spec"]
    schema["description"] = f"The pod to create, a core/v1 PodTemplateSpec with the fields of Kubernetes {MINOR}."
    schema["required"] = ["spec"]
    metadata["description"] = (
        "Labels and annotations of the pod; those that the operator sets itself win over these. See `kubectl explain pod.metadata`."
    )
    spec["description"] = (
        "The pod's containers, volumes, resources and scheduling. The operator extends the first container only. "
        "See `kubectl explain pod.spec`."
    )
    containers = spec["properties"]["containers"]
    containers["minItems"] = 1
    containers["items"]["properties"]["name"]["default"] = container_name
    containers["items"].pop("required")
    return schema


def _structural(node: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return `node` with references resolved, as apiextensions/v1 wants it."""
    name = node["$ref"] if node.get("$ref") == ROOT else reference_name(node)
    if name in _SPECIAL:
        return dict(_SPECIAL[name])
    if name:
        return _structural(schemas[name], schemas)
    schema = {key: node[key] for key in _KEPT if key in node}
    if "additionalProperties" in node:
        schema["additionalProperties"] = _structural(node["additionalProperties"], schemas)
    if "properties" in node:
        schema["properties"] = {field: _structural(inner, schemas) for field, inner in node["properties"].items()}
    if "items" in node:
        schema["items"] = _structural(node["items"], schemas)
        _default_keys(node, schema["items"], schemas)
    return schema


def _default_keys(node: dict[str, Any], items: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Give each key of a list of type map that is not required the default that Kubernetes itself gives it."""
    for key in node.get("x-kubernetes-list-map-keys", ()):
        if key not in items.get("required", ()):
            original = schemas[reference_name(node["items"]) or ""]["properties"][key]
            items["properties"][key]["default"] = original["default"]
