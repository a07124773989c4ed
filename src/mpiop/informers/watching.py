"""Reads one watch: checks its events, and tracks the resourceVersion to resume from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import structlog

from mpiop.informers.pager import Prepare
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Item, Key, Object, Unreadable, WatchEvent, key_of, known_part
from mpiop.kube.resources import Selection

log = structlog.get_logger(__name__)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial events (KEP-3157); counts when it is "true"."""

CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


@dataclass(frozen=True, slots=True)
class Replace:
    """The whole content, as of `resource_version`."""

    items: list[Item]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Apply:
    """One object changed.

    Attributes:
        object: Its state after the change, or before a deletion; what is known of it if it cannot be decoded.
        is_deleted: Whether it is gone.
        resource_version: Version to resume from; "" if this event does not determine it.
    """

    object: Item
    is_deleted: bool
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to `resource_version`."""

    resource_version: str


@dataclass(slots=True)
class Watching:
    """One watch, from its opening to its end.

    Attributes:
        selection: What is watched.
        prepare: Makes an object fit to be kept.
        start_version: What the watch was asked to begin at.
        is_stream: Whether the initial events are still coming; nothing counts before they are complete.
        is_open: Whether the server has accepted the watch.
        events_seen: How many events came, usable or not.
        gained: How many of them were usable.
    """

    selection: Selection
    prepare: Prepare
    start_version: str
    is_stream: bool
    is_open: bool = False
    events_seen: int = 0
    gained: int = 0
    _initial: dict[Key, Item] = field(default_factory=dict[Key, Item])
    _is_ordered: bool = False

    def __post_init__(self) -> None:
        """Find out whether the first events are ordered."""
        # A watch without a version begins with all objects, in no order, so the version of one object does not limit other versions.
        self._is_ordered = self.start_version not in {"", "0"}

    def receive(self, event: WatchEvent) -> Replace | Apply | Bookmark | None:
        """Return the output of `event`; None if there is none (yet).

        Raises:
            StatusError: It is an ERROR: the server ends the watch.
        """
        self.events_seen += 1
        wire = cast("Mapping[str, Any]", event)
        kind, obj = wire.get("type"), wire.get("object")
        if kind == "ERROR":
            raise StatusError(f"watch {self.selection}", cast("Mapping[str, Any]", obj) if isinstance(obj, dict) else {})
        problem = self._problem(kind, known_part(cast("Item", obj)))
        if problem:
            log.warning("watch event skipped", selection=str(self.selection), type=str(kind), problem=problem)
            return None
        self.gained += 1
        return self._understand(str(kind), cast("Item", obj))

    def _problem(self, kind: object, obj: object) -> str:
        """Return why the event cannot be used, or ""."""
        if kind != "BOOKMARK" and kind not in CHANGES:
            return "unknown type"
        metadata = cast("dict[str, Any]", obj).get("metadata") if isinstance(obj, dict) else None
        if not isinstance(obj, dict) or not isinstance(metadata, dict):
            return "no object with metadata"
        expected = "PartialObjectMetadata" if self.selection.metadata_only else self.selection.resource.kind
        actual = cast("dict[str, Any]", obj).get("kind", expected)
        if actual != expected:
            return f"a {actual}, not a {expected}"
        desired = "resourceVersion" if kind == "BOOKMARK" else "name"
        return "" if cast("dict[str, Any]", metadata).get(desired) else f"no metadata.{desired}"

    def _understand(self, kind: str, item: Item) -> Replace | Apply | Bookmark | None:
        obj = known_part(item)
        version = str(obj["metadata"].get("resourceVersion") or "")
        if kind == "BOOKMARK":
            return self._bookmark(obj, version)
        is_deleted = kind == "DELETED"
        prepared = item if isinstance(item, Unreadable) else self.prepare(item)  # a deleted one too: handlers may keep it
        if prepared is None:
            return None
        if self.is_stream:
            self._initial.pop(key_of(obj), None)
            if not is_deleted:
                self._initial[key_of(obj)] = prepared
            return None
        self._is_ordered = self._is_ordered or kind != "ADDED"
        return Apply(prepared, is_deleted, resource_version=version if self._is_ordered else "")

    def _bookmark(self, obj: Object, version: str) -> Replace | Bookmark | None:
        self._is_ordered = True
        if not self.is_stream:
            return Bookmark(version)
        annotations = obj["metadata"].get("annotations") or {}
        if annotations.get(INITIAL_EVENTS_END) != "true":
            return None
        self.is_stream = False
        items = list(self._initial.values())
        self._initial.clear()
        return Replace(items, version)
