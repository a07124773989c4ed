"""Read your own writes: a job is synced only once the caches show our last writes for it.

Deterministic names of children make duplicates impossible; this prevents useless writes too. Other controllers use expectations
(docs/adr/0006). Source: kubernetes pkg/controller/util/consistency, invariant E55.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mpiop.clock import Clock
from mpiop.controller.memory import JobMemory
from mpiop.kube.objects import Key, Object, is_at_least, resource_version_of
from mpiop.kube.resources import Resource

ESCAPE_SECONDS = 30.0


class Versioned(Protocol):
    """The part of a store that shows how current it is."""

    def current_to(self, namespace: str) -> str:
        """Return the resourceVersion that the objects of `namespace` are current to."""
        ...


@dataclass(slots=True)
class _Writes:
    uid: str
    latest: dict[Resource, str] = field(default_factory=dict[Resource, str])
    since: float = 0.0


class Consistency:
    """Remembers the newest resourceVersion that we wrote, by owner and resource."""

    def __init__(self, stores: Mapping[Resource, Versioned], clock: Clock, memory: JobMemory) -> None:
        """Compare what is kept in `memory` with the versions of `stores`; resources without a store are ignored."""
        self._stores = stores
        self._clock = clock
        self._writes: dict[Key, _Writes] = memory.table()

    def wrote(self, owner: Key, uid: str, resource: Resource, result: Object | None) -> None:
        """Note the `result` of a write for the owner; None means that the object is gone, and nothing is waited for."""
        version = resource_version_of(result) if result is not None else ""
        if not version or resource not in self._stores:
            return
        writes = self._writes.get(owner)
        if writes is None or writes.uid != uid:
            writes = self._writes[owner] = _Writes(uid)
        if is_at_least(writes.latest.get(resource, ""), version) is not True:  # answers of simultaneous writes come in any order
            writes.latest[resource] = version
        writes.since = self._clock.monotonic()

    def wait_seconds(self, owner: Key, uid: str) -> float:
        """Return 0 when every cache shows our last writes for the owner, else the longest time to wait for them.

        The expected event queues the owner by itself. The bound is for servers whose versions went back, such as a restored etcd.
        """
        writes = self._writes.get(owner)
        if writes is None:
            return 0.0
        remaining = writes.since + ESCAPE_SECONDS - self._clock.monotonic()
        is_behind = any(
            is_at_least(self._stores[resource].current_to(owner.namespace), version) is False for resource, version in writes.latest.items()
        )
        if writes.uid == uid and is_behind and remaining > 0:
            return remaining
        del self._writes[owner]
        return 0.0

    def is_last_write(self, owner: Key, resource: Resource, obj: Object) -> bool:
        """Return whether `obj` is what our last write of that resource for the owner made, and no sync has begun since."""
        writes = self._writes.get(owner)
        return writes is not None and writes.latest.get(resource) == resource_version_of(obj)
