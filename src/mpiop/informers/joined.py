"""One resource in several namespaces: an informer for each, read and waited for as one.

A right to list a resource in a namespace is not one to list it everywhere, and the API server has no list of several namespaces.
"""

import asyncio
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from mpiop.informers.listener import Handler
from mpiop.informers.shared_informer import SharedInformer
from mpiop.informers.store import Store
from mpiop.kube.objects import Key, Object, Unreadable


class JoinedStore:
    """The stores of several namespaces, to read like one `Store`."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        """Read `stores`, by namespace."""
        self._stores = stores

    @property
    def unreadable(self) -> Mapping[Key, Unreadable]:
        """Return the objects that exist and cannot be decoded."""
        return ChainMap(*(store.unreadable for store in self._stores.values()))  # type: ignore[arg-type]  # nobody writes to it

    def current_to(self, namespace: str) -> str:
        """Return the resourceVersion that the objects of a namespace are current to; "" before its first list."""
        store = self._stores.get(namespace)
        return store.current_to(namespace) if store is not None else ""

    def get(self, key: Key) -> Object | None:
        """Return the object `key`, or None."""
        store = self._stores.get(key.namespace)
        return store.get(key) if store is not None else None

    def keys(self) -> Sequence[Key]:
        """Return the keys of all objects."""
        return list(chain.from_iterable(store.keys() for store in self._stores.values()))

    def values(self) -> Sequence[Object]:
        """Return all objects."""
        return [obj for store in self._stores.values() for obj in store.values()]

    def by_index(self, index_name: str, value: str) -> Sequence[Object]:
        """Return the objects with the index value `value` in `index_name`, namespace by namespace.

        Raises:
            KeyError: There is no such index.
        """
        return [obj for store in self._stores.values() for obj in store.by_index(index_name, value)]


class JoinedInformer:
    """The informers of one resource.

    Attributes:
        parts: One for each namespace, or a single one for all namespaces or for a resource that is in none.
        store: The objects of all of them.
    """

    def __init__(self, parts: Sequence[SharedInformer]) -> None:
        """Join `parts`, at least one, whose selections differ in their namespace only."""
        self.parts = parts
        stores = {part.selection.namespace: part.store for part in parts}
        self.store: Store | JoinedStore = parts[0].store if len(parts) == 1 else JoinedStore(stores)

    @property
    def last_activity(self) -> float | None:
        """Return the event loop's time of the last output of the part that had none for the longest; None if one never had any."""
        times = [part.last_activity for part in self.parts]
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None

    @property
    def backlog(self) -> int:
        """Return the largest number of buffered notifications of a handler."""
        return max(part.backlog for part in self.parts)

    def add_handler(self, handler: Handler) -> None:
        """Call `handler` with each stored object as an initial add, then with each change."""
        for part in self.parts:
            part.add_handler(handler)

    def follow(self, handler: Handler) -> None:
        """Call `handler` with each change while the store takes it."""
        for part in self.parts:
            part.follow(handler)

    def has_synced(self, namespace: str) -> bool:
        """Return whether the part of a namespace and its handlers have the first list."""
        return all(part.has_synced and all(handler.has_synced for handler in part.registrations) for part in self._of(namespace))

    async def wait_for_sync(self, namespace: str) -> None:
        """Wait until the part of a namespace and its handlers have the first list; those of others may never get one."""
        for part in self._of(namespace):
            await part.wait_for_sync()

    def _of(self, namespace: str) -> Sequence[SharedInformer]:
        return [part for part in self.parts if part.selection.namespace in {"", namespace}]


async def wait_for_any(informers: Collection[JoinedInformer], namespaces: Sequence[str]) -> None:
    """Wait until all `informers` have the first list of one of the `namespaces`.

    An administrator of a namespace may take our rights in it away, for ever: that must not stop the others.
    """

    async def wait_for(namespace: str) -> None:
        for informer in informers:
            await informer.wait_for_sync(namespace)

    waiting = [asyncio.create_task(wait_for(namespace)) for namespace in namespaces]
    try:
        ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()  # raises what ended it
    finally:
        for task in waiting:
            task.cancel()
