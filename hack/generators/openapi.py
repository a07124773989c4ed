"""The part of Kubernetes' own OpenAPI v3 document that describes pod templates, kept as a file of this repository.

`hack/generate --openapi FILE` renews it from `api/openapi-spec/v3/api__v1_openapi.json` of a Kubernetes release, or from what an API server
answers at `/openapi/v3/api/v1`: the two are the same.
"""

import json
from pathlib import Path
from typing import Any

ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
SNAPSHOT = Path(__file__).with_name("pod-template-v1.36.json")
_REFERENCE = "#/components/schemas/"


def load_schemas() -> dict[str, Any]:
    """Return the kept schemas by their names."""
    schemas: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return schemas


def renew_snapshot(document: Path) -> None:
    """Keep what `document`, an OpenAPI v3 file of Kubernetes, says about pod templates, without its descriptions."""
    schemas = json.loads(document.read_text(encoding="utf-8"))["components"]["schemas"]
    desired = {name: _without_descriptions(schemas[name]) for name in sorted(_closure(schemas))}
    lines = (f"{json.dumps(name)}: {json.dumps(schema, sort_keys=True)}" for name, schema in desired.items())
    SNAPSHOT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def reference_name(schema: dict[str, Any]) -> str | None:
    """Return the name of the schema that `schema` refers to (the document wraps references in a one-element allOf)."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    return reference.removeprefix(_REFERENCE) if reference else None


def _closure(schemas: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    todo = [ROOT]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _references(schemas[name])
    return found


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        name = reference_name(node)
        return [name] if name else [found for value in node.values() for found in _references(value)]
    if isinstance(node, list):
        return [found for value in node for found in _references(value)]
    return []


def _without_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the descriptions of a schema and of its fields (a field may itself be called `description`)."""
    kept = {key: value for key, value in schema.items() if key != "description"}
    if "properties" in kept:
        kept["properties"] = {name: _without_descriptions(field) for name, field in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _without_descriptions(kept[key])
    return kept
