"""Making objects small before they are kept: the pods of one job differ in little more than their names.

Equal parts of different objects become one and the same part in memory. That is safe because stored objects are never changed. Of the parts
seen lately a bounded number is remembered; forgetting them costs memory, not correctness.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
import structlog

from mpiop.kube.objects import Key, Object, key_of
from mpiop.kube.resources import whole

log = structlog.get_logger(__name__)

CAPACITY = 2048
"""Parts remembered for one selection."""

LONGEST_SHARED = 512
"""Bytes of a part as JSON: a longer one is not shared as a whole, only what is in it."""

DEEPEST_SHARED: Final = 24
"""Levels of an object in which parts are looked for; those of a Pod template are fewer, and others may be as deep as a stranger likes."""

_OF_ONE_OBJECT: Final = frozenset({"name", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"})
"""Metadata that differs in every object and is never shared."""

_NOTHING_STORED: Final[Mapping[Key, Object]] = {}

_encode: Final = msgspec.json.Encoder().encode


class Compactor:
    """Copies objects so that equal parts are shared, and managedFields left out."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Remember at most `capacity` parts."""
        self._capacity = capacity
        self._parts: dict[bytes, Any] = {}
        self._strings: dict[str, str] = {}

    def compact(self, obj: Object, before: Object | None = None) -> Object:
        """Return an object equal to `obj`, which is decoded JSON and stays as it is, without `metadata.managedFields`.

        Args:
            obj: What came.
            before: The same object as it is kept now: its long parts are long to take apart, and mostly did not change.
        """
        if len(self._parts) + len(self._strings) > self._capacity:
            self._parts.clear()
            self._strings.clear()
        share = self._shared
        wire, known = cast("dict[str, Any]", obj), cast("dict[str, Any]", before or {})
        metadata: dict[str, Any] = {
            name: value if name in _OF_ONE_OBJECT else share(value) for name, value in wire["metadata"].items() if name != "managedFields"
        }
        return cast("Object", {name: share(value, known.get(name)) if name != "metadata" else metadata for name, value in wire.items()})

    def _shared(self, value: Any, before: Any = None, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._strings.setdefault(value, value) if len(value) <= LONGEST_SHARED else value
        if depth == DEEPEST_SHARED or not isinstance(value, dict | list):
            return value
        # The JSON text identifies a part: `1`, `1.0` and `true` are equal in Python but not in JSON.
        text = _encode(value)
        if len(text) > LONGEST_SHARED:
            return before if before is not None and _encode(before) == text else self._copy(cast("object", value), depth)
        part = self._parts.get(text)
        if part is None:
            part = self._parts[text] = self._copy(cast("object", value), depth)
        return part

    def _copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {sys.intern(name): self._shared(item, depth=depth + 1) for name, item in cast("dict[str, Any]", value).items()}
        return [self._shared(item, depth=depth + 1) for item in value]


def has_name(thing: object) -> bool:
    """Return whether `thing`, which came over the wire, is an object with a name."""
    metadata = cast("dict[str, Any]", thing).get("metadata") if isinstance(thing, dict) else None
    return isinstance(metadata, dict) and bool(cast("dict[str, Any]", metadata).get("name"))


def preparation(
    stored: Callable[[Key], Object | None] = _NOTHING_STORED.get, trim: Callable[[Object], Object] = whole
) -> Callable[[Object], Object | None]:
    """Return the function that checks, trims and compacts each object before the store (read by `stored`) keeps it."""
    compactor = Compactor()

    def prepare(obj: Object) -> Object | None:
        if not has_name(obj):
            log.warning("object skipped", problem="no metadata.name")
            return None
        return compactor.compact(trim(obj), stored(key_of(obj)))

    return prepare
