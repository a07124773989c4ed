"""Who wrote which fields (`metadata.managedFields`), for writers that name themselves; lists count as a whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from fakes.semantics import Json, copied

Path = tuple[str, ...]
_SERVERS = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "name", "namespace")


def managed(old: Mapping[str, Any], new: Mapping[str, Any], manager: str, time: str) -> list[Json]:
    """Return the managedFields of `new`, which `manager` has made of `old`: what it changed is its own, what it removed is nobody's."""
    before, after = dict(_leaves(old, ())), dict(_leaves(new, ()))
    changed = {path for path, value in after.items() if before.get(path) != value}
    entries: dict[str, Json] = {entry["manager"]: copied(entry) for entry in old.get("metadata", {}).get("managedFields", ())}
    for path in changed | (before.keys() - after.keys()):
        for entry in entries.values():
            _parent(entry["fieldsV1"], path).pop(f"f:{path[-1]}", None)
    if changed:
        mine = entries.setdefault(manager, {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {}})
        mine["time"] = time
        for path in changed:
            _parent(mine["fieldsV1"], path)[f"f:{path[-1]}"] = {}
    return list(entries.values())


def _leaves(value: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, (*path, name))
        elif (path, name) not in {(("metadata",), each) for each in _SERVERS}:
            yield (*path, name), inner


def _parent(fields: Json, path: Path) -> Json:
    for name in path[:-1]:
        fields = fields.setdefault(f"f:{name}", {})
    return fields
