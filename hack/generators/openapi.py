"""The part of Kubernetes' own OpenAPI v3 document that describes pod templates, kept as a file of this repository.

`make pod-types` renews it from the Go module of Kubernetes; an API server answers the same at `/openapi/v3/api/v1`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from embedded.errors import ClusterError
from embedded.progress import Progress
from embedded.toolchain import build_environment, find_go
from generators.manifests import GenerateError

KUBERNETES = "1.37.2"
"""The release whose types pod templates have. Take the newest: a field of a later one is dropped from stored jobs."""
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
MINOR = KUBERNETES.rpartition(".")[0]
SNAPSHOT = Path(__file__).with_name(f"pod-template-v{MINOR}.json")
_DOCUMENT = "api/openapi-spec/v3/api__v1_openapi.json"
_REFERENCE = "#/components/schemas/"


def load_schemas() -> dict[str, Any]:
    """Return the kept schemas by their names."""
    schemas: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return schemas


def renew_snapshot() -> None:
    """Keep what the OpenAPI v3 file of the release describes of pod templates, without its descriptions.

    Raises:
        GenerateError: The module cannot be downloaded.
    """
    document = _download() / _DOCUMENT
    schemas = json.loads(document.read_text(encoding="utf-8"))["components"]["schemas"]
    desired = {name: _without_descriptions(schemas[name]) for name in sorted(_closure(schemas))}
    lines = (f"{json.dumps(name)}: {json.dumps(schema, sort_keys=True)}" for name, schema in desired.items())
    for outdated in SNAPSHOT.parent.glob("pod-template-v*.json"):
        outdated.unlink()
    SNAPSHOT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def reference_name(schema: dict[str, Any]) -> str | None:
    """Return the name of the schema that `schema` refers to (the document wraps references in a one-element allOf)."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    return reference.removeprefix(_REFERENCE) if reference else None


def _download() -> Path:
    """Return the folder of the Go module of Kubernetes; Go checks it against the public checksum database."""
    try:
        go = find_go(Progress())
    except ClusterError as error:
        raise GenerateError(str(error)) from error
    module = f"k8s.io/kubernetes@v{KUBERNETES}"
    command = [go, "mod", "download", "-json", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=build_environment(go), cwd="/")
    answer: dict[str, str] = json.loads(done.stdout or "{}")
    if done.returncode:
        raise GenerateError(f"cannot download {module}: {answer.get('Error') or done.stderr.strip()}")
    return Path(answer["Dir"])


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
