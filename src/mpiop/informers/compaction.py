"""Making objects small before they are kept: the pods of one job differ in little more than their names.

Equal parts of different objects become one and the same part in memory. That is safe because stored objects are never changed. Of the parts
seen lately a bounded number is remembered; forgetting them costs memory, not correctness.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import structlog

from mpiop.kube.objects import Object, key_of

log = structlog.get_logger(__name__)

CAPACITY = 2048
"""Parts remembered for one selection."""

LONGEST_SHARED_STRING = 256


class Compactor:
    """Copies objects so that equal parts are shared, and managedFields left out."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Remember at most `capacity` parts."""
        self._capacity = capacity
        self._parts: dict[Any, Any] = {}

    def compact(self, obj: Object) -> Object:
        """Return an object equal to `obj` without `metadata.managedFields`; `obj` itself stays as it is."""
        if len(self._parts) > self._capacity:
            self._parts.clear()
        wire = cast("dict[str, Any]", obj)
        metadata = {name: value for name, value in wire["metadata"].items() if name != "managedFields"}
        return cast("Object", self._dict(wire | {"metadata": metadata}))

    def _any(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._dict(cast("dict[str, Any]", value))
        if isinstance(value, list):
            return self._list(cast("list[Any]", cast("object", value)))
        if isinstance(value, str) and len(value) <= LONGEST_SHARED_STRING:
            return self._parts.setdefault(value, value)
        return value

    def _list(self, value: list[Any]) -> list[Any]:
        copy = [self._any(item) for item in value]
        return cast("list[Any]", self._parts.setdefault((list, *map(_mark, copy)), copy))

    def _dict(self, value: dict[str, Any]) -> dict[str, Any]:
        copy = {sys.intern(name): self._any(item) for name, item in value.items()}
        return cast("dict[str, Any]", self._parts.setdefault((dict, *copy, *map(_mark, copy.values())), copy))


def has_name(thing: object) -> bool:
    """Tell whether `thing`, which came over the wire, is an object with a name."""
    metadata = cast("dict[str, Any]", thing).get("metadata") if isinstance(thing, dict) else None
    return isinstance(metadata, dict) and bool(cast("dict[str, Any]", metadata).get("name"))


def _mark(value: Any) -> Any:
    """Return what stands for `value` in the identity of the part that it is in.

    Parts below are shared already, so each stands for itself, and the remembered part keeps them alive. `1` and `True` are told apart.
    """
    if isinstance(value, str):
        return value
    return (id(cast("object", value)),) if isinstance(value, dict | list) else (type(value), value)


def preparation(trim: Callable[[Object], Object] | None) -> Callable[[Object], Object | None]:
    """Return what is done to each object before it is stored: check that it has a name, `trim` it, make it compact."""
    compactor = Compactor()

    def prepare(obj: Object) -> Object | None:
        if not has_name(obj):
            log.warning("object skipped", problem="no metadata.name")
            return None
        try:
            return compactor.compact(trim(obj) if trim else obj)
        except Exception:
            # One malformed object of one user must not stop the watch of everybody's.
            log.exception("object not trimmed", object=str(key_of(obj)))
            return compactor.compact(obj)

    return prepare
