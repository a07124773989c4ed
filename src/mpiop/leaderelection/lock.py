"""Requests about the Lease on behalf of one identity."""

import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from mpiop.clock import Clock
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, WatchEvent
from mpiop.kube.resources import LEASES, Resource, Selection
from mpiop.leaderelection.config import ElectionConfig
from mpiop.leaderelection.record import held, holder_of, released

_WATCH_SECONDS = 300
_RELEASE_TRIES = 2


class LeaseClient(Protocol):
    """The part of `mpiop.kube.client.Client` that is used; a request should end well within half the renew deadline."""

    async def get(self, resource: Resource, key: Key) -> Object:
        """Return the object."""
        ...

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create the object and return it as stored."""
        ...

    async def update(self, resource: Resource, body: Object) -> Object:
        """Replace the object, if it still has the resourceVersion of `body`, and return it as stored."""
        ...

    def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch what is selected."""
        ...


class LeaseLock:
    """Requests about one Lease; every one of them may raise `KubeError`.

    Attributes:
        written: The Lease as our last write left it; None when there was none, or when nobody knows what became of it.
    """

    def __init__(self, config: ElectionConfig, client: LeaseClient, clock: Clock, identity: str) -> None:
        """Prepare requests in the name of `identity`."""
        self._config = config
        self._client = client
        self._clock = clock
        self._identity = identity
        self.written: Object | None = None

    async def read(self) -> Object | None:
        """Return the Lease as it is now, or None when there is none."""
        try:
            return await self._client.get(LEASES, self._config.key)
        except StatusError as error:
            if error.is_not_found:
                return None
            raise

    def watch(self) -> contextlib.AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch the Lease, beginning with what it is now."""
        key = self._config.key
        selection = Selection(LEASES, namespace=key.namespace, field_selector=f"metadata.name={key.name}")
        return self._client.watch(selection, resource_version="", timeout_seconds=_WATCH_SECONDS)

    async def create(self) -> None:
        """Create the Lease with us as its holder."""
        fresh: Object = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._config.key.namespace, "name": self._config.key.name},
            "spec": {"holderIdentity": self._identity},  # nobody had it before: no transition
        }
        self.written = await self._client.create(LEASES, self._held(fresh))

    async def take(self, lease: Object) -> None:
        """Write us, or a new time of ours, into `lease`, if it has not changed since it was read or written."""
        self.written = None
        self.written = await self._client.update(LEASES, self._held(lease))

    async def release(self) -> bool:
        """Remove our name from the Lease; return whether it was there (L65)."""
        for _ in range(_RELEASE_TRIES):
            lease = await self.read()
            if lease is None or holder_of(lease) != self._identity:
                return False
            try:
                await self._client.update(LEASES, released(lease, self._clock.now()))
            except StatusError as error:
                if not error.is_conflict:
                    raise
            else:
                return True
        return False

    def _held(self, lease: Object) -> Object:
        return held(lease, self._identity, self._config.lease_duration_seconds, self._clock.now())
