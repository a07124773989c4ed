"""The fake API server's etcd: objects by resource and key, one version counter, and the history that watches replay."""

import asyncio
from dataclasses import dataclass

from fakes.semantics import Json, copied
from mpiop.kube.objects import Key
from mpiop.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `old` is None for a creation, `new` is the last state (with a version of its own) for a deletion."""

    version: int
    resource: Resource
    old: Json | None
    new: Json
    is_deletion: bool = False


class Storage:
    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.history: list[Change] = []
        self._objects: dict[Resource, dict[Key, Json]] = {}
        self._listeners: set[asyncio.Queue[Change | None]] = set()

    def get(self, resource: Resource, key: Key) -> Json | None:
        """Return the stored object itself; it is never changed in place."""
        return self._objects.get(resource, {}).get(key)

    def all(self, resource: Resource) -> list[Json]:
        """Return the objects in the order of their keys, as etcd does."""
        return [obj for _, obj in sorted(self._objects.get(resource, {}).items())]

    def everything(self) -> list[tuple[Resource, Key, Json]]:
        return [(resource, key, obj) for resource, objects in self._objects.items() for key, obj in objects.items()]

    def put(self, resource: Resource, key: Key, obj: Json) -> Json:
        """Store a copy of `obj` under the next version and notify the watches."""
        new = self._versioned(obj)
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        objects[key] = new
        self._record(Change(self.version, resource, old, new))
        return new

    def remove(self, resource: Resource, key: Key) -> Json:
        """Remove the object and return its last state, under a version of its own."""
        old = self._objects[resource].pop(key)
        last = self._versioned(old)
        self._record(Change(self.version, resource, old, last, is_deletion=True))
        return last

    def compact(self) -> None:
        """Forget the history: watches from before now get the error Gone."""
        self.compacted = self.version
        self.history.clear()

    def cut_streams(self) -> None:
        """Break all open watches."""
        for queue in self._listeners:
            queue.put_nowait(None)

    def listen(self) -> asyncio.Queue[Change | None]:
        """Return a queue of all changes from now on; None breaks the stream."""
        queue: asyncio.Queue[Change | None] = asyncio.Queue()
        self._listeners.add(queue)
        return queue

    def unlisten(self, queue: asyncio.Queue[Change | None]) -> None:
        """End what `listen` began."""
        self._listeners.discard(queue)

    def _versioned(self, obj: Json) -> Json:
        self.version += 1
        new: Json = copied(obj)
        new["metadata"]["resourceVersion"] = str(self.version)
        return new

    def _record(self, change: Change) -> None:
        self.history.append(change)
        for queue in self._listeners:
            queue.put_nowait(change)
