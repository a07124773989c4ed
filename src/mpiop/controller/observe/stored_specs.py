"""The specs of MPIJobs as the store keeps them: as JSON, equal ones once, and all together within a fixed number of bytes.

As Python objects, 1.4 MB of JSON take 30 MB. A sync decodes the spec that it needs, and reads it from the API server if it is not kept:
beyond the budget the largest are dropped, so many large jobs of one user cost the others nothing (docs/adr/0023).
"""

import hashlib
from typing import Any, Final, TypedDict, cast
from weakref import WeakValueDictionary

import msgspec

from mpiop.api.manager import other_manager
from mpiop.kube.items import NOT_JSON
from mpiop.kube.objects import Object

BUDGET_BYTES: Final = 64 * 2**20
"""Of all specs: those of 20,000 usual jobs."""

LARGE_BYTES: Final = 32 * 2**10
"""The worst spec of this size takes 0.05 s to parse and to build from. Jobs with a larger one are computed in a thread, one at a time."""

_ROOM: Final = 8
"""Of the budget one part of so many is made free at a time, so that it is not searched for each new spec."""
_DIGEST_BYTES: Final = 16


class _RunPolicy(TypedDict, total=False):
    managedBy: Any


class _Head(TypedDict, total=False):
    runPolicy: _RunPolicy


_HEADS: Final = msgspec.json.Decoder(_Head)


class StoredSpec:
    """The spec of one or more MPIJobs; equal specs are the same object.

    Attributes:
        text: Its JSON; None when it was dropped.
        size: Its length in bytes.
        is_ours: Whether its jobs are for this operator to run (`spec.runPolicy.managedBy`).
    """

    __slots__ = ("__weakref__", "is_ours", "size", "text")

    def __init__(self, text: bytes) -> None:
        """Keep `text`."""
        self.text: bytes | None = text
        self.size: Final = len(text)
        self.is_ours: Final = other_manager({"spec": _head(text)}) is None

    @property
    def is_large(self) -> bool:
        """Return whether computing with it would block the event loop."""
        return self.size > LARGE_BYTES


class Specs:
    """Keeps the specs of all jobs in a store."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        """Keep `budget_bytes` of JSON at most."""
        self._budget_bytes = budget_bytes
        self._known: WeakValueDictionary[bytes, StoredSpec] = WeakValueDictionary()
        self._bytes = 0
        """What is kept, or more: specs that are gone count until there is no room left."""

    def trimmed(self, mpijob: Object) -> Object:
        """Return `mpijob`, as it came from the API server, with its spec as a `StoredSpec`."""
        return {**mpijob, "spec": cast("Any", self._stored(json_of(mpijob)))}

    def _stored(self, text: bytes | memoryview) -> StoredSpec:
        digest = hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()
        spec = self._known.get(digest)
        if spec is None:
            spec = self._known[digest] = StoredSpec(bytes(text))
        elif spec.text is None:
            spec.text = bytes(text)
        else:
            return spec
        self._bytes += spec.size
        if self._bytes > self._budget_bytes:
            self._make_room()
        return spec

    def _make_room(self) -> None:
        kept = sorted((spec for spec in self._known.values() if spec.text is not None), key=lambda spec: spec.size)
        self._bytes = sum(spec.size for spec in kept)
        if self._bytes <= self._budget_bytes:
            return
        while self._bytes > self._budget_bytes - self._budget_bytes // _ROOM:
            largest = kept.pop()
            largest.text = None
            self._bytes -= largest.size


def stored_spec(mpijob: Object) -> StoredSpec:
    """Return the spec of an MPIJob in the store."""
    return cast("StoredSpec", mpijob.get("spec"))


def json_of(mpijob: Object) -> bytes | memoryview:
    """Return the spec of an MPIJob, as it came from the API server, as JSON."""
    spec: Any = mpijob.get("spec")
    return memoryview(spec) if isinstance(spec, msgspec.Raw) else msgspec.json.encode(spec)


def _head(text: bytes) -> Any:
    """Return the fields of a spec that name the controller of the job; None if the spec has another shape."""
    try:
        return _HEADS.decode(text)
    except NOT_JSON:
        return None
