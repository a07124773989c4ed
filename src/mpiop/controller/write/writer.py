"""What the writes of a sync need of the client."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol, Self

from mpiop.kube.objects import Key, Object
from mpiop.kube.request import ignore
from mpiop.kube.resources import Resource


class Writer(Protocol):
    """The part of the client that writes, and reads live where a cache is not enough."""

    def of_flow(self, flow: Hashable) -> Self:
        """Return a client whose requests wait with those of `flow`."""
        ...

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False, projection: type[Any] | None = None) -> Object:
        """Return the live object, only its kind and metadata, or what `projection` has."""
        ...

    async def create(
        self,
        resource: Resource,
        body: Object,
        *,
        is_dry_run: bool = False,
        metadata_only: bool = False,
        warn: Callable[[str], None] = ignore,
    ) -> Object:
        """Create the object, or only check whether that is possible."""
        ...

    async def patch(self, resource: Resource, key: Key, body: Any, *, subresource: str = "", metadata_only: bool = False) -> Object:
        """Merge `body`, which carries the preconditions, into the object."""
        ...

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, propagation: str = "Background", is_forced: bool = False
    ) -> Object | None:
        """Delete the object if its UID is `uid`."""
        ...
