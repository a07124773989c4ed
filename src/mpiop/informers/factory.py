"""The shared informers of a process, one for each selection."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import NoReturn

from mpiop.informers.shared_informer import InformerSettings, SharedInformer
from mpiop.informers.source import ListerWatcher
from mpiop.informers.store import Indexer
from mpiop.kube.resources import Selection


class InformerFactory:
    """Creates one informer for each selection, and runs them all."""

    def __init__(self, client: ListerWatcher, settings: InformerSettings | None = None) -> None:
        """Create informers that list and watch with `client`."""
        self._client = client
        self._settings = settings or InformerSettings()
        self._informers: dict[Selection, SharedInformer] = {}
        self._group: asyncio.TaskGroup | None = None

    def __iter__(self) -> Iterator[SharedInformer]:
        """Iterate over all informers."""
        return iter(tuple(self._informers.values()))

    def informer(
        self,
        selection: Selection,
        *,
        indexers: Mapping[str, Indexer] | None = None,
    ) -> SharedInformer:
        """Return the informer of `selection`, the same one each time, with `indexers` added to those it has.

        Raises:
            ValueError: It exists with another index of the same name.
        """
        known = self._informers.get(selection)
        if known is None:
            known = SharedInformer(self._client, selection, indexers=indexers, settings=self._settings)
            self._informers[selection] = known
            self._start(known)
            return known
        known.store.add_indexers(indexers or {})
        return known

    async def run(self) -> NoReturn:
        """Run all informers, including those created later, until cancelled.

        Raises:
            ExceptionGroup: One of them died, which is a defect; the others are ended.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in self:
                self._start(informer)
            await asyncio.get_running_loop().create_future()  # never set: ends by cancellation alone
        raise AssertionError("unreachable: a task group that never completes")

    def unsynced(self) -> list[Selection]:
        """Return the selections that have not synced yet."""
        return [
            informer.selection
            for informer in self
            if not informer.has_synced or not all(registration.has_synced for registration in informer.registrations)
        ]

    def _start(self, informer: SharedInformer) -> None:
        if self._group is not None:
            self._group.create_task(informer.run(), name=f"informer of {informer.selection}")
