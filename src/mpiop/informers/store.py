"""The local cache of a selection: objects by key, indexes over them, and their resourceVersion.

Of an object that cannot be decoded the store has the last state that could be, if any, and records that it is `Unreadable` now.

A store is written by its informer alone, in one synchronous step for each change: who reads it, at any moment, sees a state that the server
once had. What comes out of it is shared and must not be changed.
"""

from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from mpiop.kube.objects import Item, Key, Object, Unreadable, is_at_least, key_of, known_part, resource_version_of, uid_of

log = structlog.get_logger(__name__)

Indexer = Callable[[Object], Iterable[str]]
"""Returns the index values of an object."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A change of one object.

    Attributes:
        old: What the store held before; None for an add. For a delete it is the last state seen, which may not be the last there was.
        new: The object now; None for a delete.
        unreadable: What is known of the object if it cannot be decoded now, or could not before. When it becomes unreadable, `old` and
            `new` are its last readable state; both are None without one.
    """

    old: Object | None
    new: Object | None
    unreadable: Unreadable | None = None

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return key_of(self._present)

    @property
    def is_replacement(self) -> bool:
        """Return whether `new` is another object of the same name: `old` was deleted and `new` created, unseen in between."""
        return self.old is not None and self.new is not None and uid_of(self.old) != uid_of(self.new)

    @property
    def _present(self) -> Object:
        present = self.new if self.new is not None else self.old
        if present is None and self.unreadable is not None:
            return self.unreadable.object
        if present is None:
            raise ValueError("a notification needs an old or a new object")
        return present


class Store:
    """Objects of one selection."""

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        """Create an empty store with an index for each of `indexers`."""
        self._objects: dict[Key, Object] = {}
        self._unreadable: dict[Key, Unreadable] = {}
        self._indexers: dict[str, Indexer] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {}
        self._resource_version = ""
        self.add_indexers(indexers or {})

    @property
    def resource_version(self) -> str:
        """Return the resourceVersion that the store is current to; "" before the first list."""
        return self._resource_version

    def current_to(self, namespace: str) -> str:
        """Return the same for the objects of a namespace; it does not differ here (see `JoinedStore`)."""
        del namespace
        return self._resource_version

    @property
    def unreadable(self) -> Mapping[Key, Unreadable]:
        """Return the objects that exist and cannot be decoded."""
        return self._unreadable

    @property
    def indexers(self) -> Mapping[str, Indexer]:
        """Return the indexers by name."""
        return self._indexers

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return the object `key`, or None."""
        return self._objects.get(key)

    def keys(self) -> KeysView[Key]:
        """Return the keys, as a view."""
        return self._objects.keys()

    def values(self) -> Sequence[Object]:
        """Return all objects."""
        return list(self._objects.values())

    def by_index(self, index_name: str, value: str) -> Sequence[Object]:
        """Return the objects with the index value `value` in `index_name`, in the order in which they were added.

        Raises:
            KeyError: There is no such index.
        """
        return [self._objects[key] for key in self._indexes[index_name].get(value, ())]

    def add_indexers(self, indexers: Mapping[str, Indexer]) -> None:
        """Add indexes, and fill them with the stored objects.

        Raises:
            ValueError: There is one of that name that does something else.
        """
        for name, indexer in indexers.items():
            if self._indexers.setdefault(name, indexer) is not indexer:
                raise ValueError(f"index {name!r} exists with another function: give one of the two another name")
            if name not in self._indexes:
                self._indexes[name] = {}
                for key, obj in self._objects.items():
                    self._link(name, key, self._values(name, obj))

    def replace(self, items: Iterable[Item], resource_version: str) -> list[Notification]:
        """Replace the whole content by `items`, and return the changes: deletes first, then adds and updates.

        An object with the same uid and resourceVersion as before is unchanged. A key given twice counts once, in its last state.
        """
        fresh = {key_of(known_part(item)): item for item in items}
        changes = [self._remove(key) for key in dict.fromkeys((*self._objects, *self._unreadable)) if key not in fresh]
        changes += [self._put(key, item) for key, item in fresh.items() if not self._is_known(key, item)]
        self._resource_version = resource_version
        return changes

    def put(self, obj: Item, resource_version: str = "") -> Notification | None:
        """Add or update `obj`, note `resource_version` unless it is "", and return the change.

        Returns:
            None when the object is already there in this or a newer state: events may be delivered twice.
        """
        self.advance(resource_version)
        key = key_of(known_part(obj))
        return None if self._is_known(key, obj) or self._is_outdated(key, obj) else self._put(key, obj)

    def remove(self, obj: Item, resource_version: str = "") -> Notification | None:
        """Remove the object with the key of `obj`, note `resource_version` unless it is "", and return the change.

        Returns:
            None when there is no such object. Otherwise a notification whose `old` is `obj`, the state in which it was deleted, if that is
            readable.
        """
        self.advance(resource_version)
        key = key_of(known_part(obj))
        if self._current(key) is None:
            return None
        change = self._remove(key)
        return change if isinstance(obj, Unreadable) else replace(change, old=obj)

    def advance(self, resource_version: str) -> None:
        """Note that the store is current to `resource_version`, unless that is ""."""
        self._resource_version = resource_version or self._resource_version

    def _current(self, key: Key) -> Item | None:
        """Return the newest state of the object."""
        return self._unreadable.get(key) or self._objects.get(key)

    def _is_known(self, key: Key, item: Item) -> bool:
        current = self._current(key)
        if current is None or isinstance(current, Unreadable) != isinstance(item, Unreadable):
            return False
        known, obj = known_part(current), known_part(item)
        version = resource_version_of(obj)
        return version != "" and (uid_of(known), resource_version_of(known)) == (uid_of(obj), version)

    def _is_outdated(self, key: Key, item: Item) -> bool:
        current = self._current(key)
        if current is None:
            return False
        known, obj = known_part(current), known_part(item)
        return uid_of(known) == uid_of(obj) and is_at_least(resource_version_of(obj), resource_version_of(known)) is False

    def _put(self, key: Key, item: Item) -> Notification:
        old = self._objects.get(key)
        if isinstance(item, Unreadable):
            self._unreadable[key] = item
            return Notification(old, old, item)
        self._objects[key] = item
        for name in self._indexers:
            if old is None:
                self._link(name, key, self._values(name, item))
            elif (before := self._values(name, old)) != (after := self._values(name, item)):
                self._unlink(name, key, before)
                self._link(name, key, after)
        return Notification(old, item, self._unreadable.pop(key, None))

    def _remove(self, key: Key) -> Notification:
        old = self._objects.pop(key, None)
        if old is not None:
            for name in self._indexers:
                self._unlink(name, key, self._values(name, old))
        return Notification(old, None, self._unreadable.pop(key, None))

    def _link(self, name: str, key: Key, values: Iterable[str]) -> None:
        for value in values:
            self._indexes[name].setdefault(value, {})[key] = None

    def _unlink(self, name: str, key: Key, values: Iterable[str]) -> None:
        index = self._indexes[name]
        for value in values:
            keys = index[value]
            del keys[key]
            if not keys:
                del index[value]

    def _values(self, name: str, obj: Object) -> frozenset[str]:
        try:
            return frozenset(self._indexers[name](obj))
        except Exception:
            # One malformed object of one user must not stop the watch of everybody's.
            log.exception("object not indexed", index=name, object=str(key_of(obj)))
            return frozenset()
