"""A patch of an MPIJob: fields that no option sets, merged as `kubectl patch --type strategic` merges fields of a Pod.

Objects are merged key by key, null removes a key, and lists are replaced, except for those in `_KEYS`: their items are merged by one of
their keys. The API server cannot do this, because it knows these keys for its own types only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from mpiop.api import constants as c
from mpiop.client.errors import InvalidError

_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "resourceClaims": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The key by which items are the same.  Source: patchMergeKey in the types of k8s.io/api/core/v1."""
_DIRECTIVE: Final = "$patch"


def patched(job: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an MPIJob with the fields of `patch`, which win.

    Raises:
        InvalidError: The patch is one of another kind of object, sets the namespace, or has an item without its key.
    """
    for field, value in (("apiVersion", c.API_VERSION), ("kind", c.KIND)):
        if patch.get(field, value) != value:
            raise InvalidError(f"patch: {field} is {patch[field]}: a patch has fields of an {c.KIND} of {c.API_VERSION}")
    metadata: Any = patch.get("metadata", {})
    if not _is_object(metadata) or "namespace" in metadata:
        raise InvalidError("patch: metadata must be an object without a namespace: use --namespace")
    return _merged(job, patch, "")


def _merged(base: Mapping[str, Any], patch: Mapping[str, Any], path: str) -> dict[str, Any]:
    merged = dict(base)
    for key, value in patch.items():
        where = f"{path}.{key}" if path else key
        below: Any = base.get(key)
        if value is None:
            merged.pop(key, None)
        elif _is_object(value):
            merged[key] = _merged(below if _is_object(below) else {}, value, where)
        elif _is_list(value) and key in _KEYS:
            merged[key] = _merged_items(below if _is_list(below) else [], value, _KEYS[key], where)
        else:
            merged[key] = value
    return merged


def _merged_items(base: Sequence[Any], patch: Sequence[Any], key: str, path: str) -> list[Any]:
    items: dict[Any, Any] = {item[key]: item for item in base}
    for number, item in enumerate(patch):
        where = f"{path}[{number}]"
        if not _is_object(item) or not isinstance(item.get(key), str | int):
            raise InvalidError(f"patch: {where} has no {key}, which decides the item that it changes")
        if item.get(_DIRECTIVE) == "delete":
            items.pop(item[key], None)
        else:
            items[item[key]] = _merged(items.get(item[key], {}), item, where)
    return list(items.values())


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
