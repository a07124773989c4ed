"""The page docs/reference/api.md: each field of the MPIJob, from the schema that the CRD has."""

from collections.abc import Iterator
from typing import Any

from generators.mpijob_schema import mpijob_schema
from mpiop.api import constants as c

Schema = dict[str, Any]

_HEAD = f"""# API: MPIJob

<!-- Made by hack/generate from hack/generators/mpijob_schema.py; edit that. -->

`{c.API_VERSION}`, namespaced; short name `mj`. On a cluster, `kubectl explain mpijob.spec --recursive` shows the same fields. Fields in
bold are required. Pod templates have the fields of any Pod, with two differences: the first container needs no name, and the
`restartPolicy` of the template has no effect.
"""
_OPAQUE = ("template",)
_DEPRECATED = "Deprecated"


def api_page() -> str:
    """Return the text of the page."""
    properties = mpijob_schema()["properties"]
    sections = [section for name in ("spec", "status") for section in _sections(name, properties[name])]
    return _HEAD + "".join(sections)


def _sections(path: str, schema: Schema) -> Iterator[str]:
    """Yield the section of an object, then those of the objects in it."""
    required = schema.get("required", [])
    rows = "".join(_row(name, field, is_required=name in required) for name, field in schema["properties"].items())
    rules = "".join(f"- {rule['message']}\n" for rule in schema.get("x-kubernetes-validations", []))
    yield f"\n## {path}\n\n{schema['description']}\n\n| field | type | meaning |\n|---|---|---|\n{rows}" + (f"\n{rules}" if rules else "")
    for name, field in schema["properties"].items():
        if (inner := _inner(name, field)) is not None:
            yield from _sections(f"{path}.{name}" + ("[]" if field["type"] == "array" else ""), inner)


def _inner(name: str, field: Schema) -> Schema | None:
    """Return the schema of the objects in a field, unless readers know it or need it no more."""
    schema = field.get("items", field)
    is_shown = name not in _OPAQUE and "properties" in schema and not field["description"].startswith(_DEPRECATED)
    return schema if is_shown else None


def _row(name: str, field: Schema, *, is_required: bool) -> str:
    shown = f"**`{name}`**" if is_required else f"`{name}`"
    return f"| {shown} | {_type(name, field)} | {_cell(field['description'])} |\n"


def _type(name: str, field: Schema) -> str:
    if name in _OPAQUE:
        return "[PodTemplateSpec](https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-template-v1/)"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"] if value)
    if field["type"] == "array":
        return "list"
    if "additionalProperties" in field:
        return "map"
    if field.get("format") == "date-time":
        return "time"
    bounds = (f"{sign} {field[bound]}" for bound, sign in (("minimum", "≥"), ("maximum", "≤")) if field.get(bound))
    return " ".join([field["type"], *bounds])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
