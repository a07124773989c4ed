"""The interfaces of an informer: the client it needs and the metrics it reports."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mpiop.kube.objects import ObjectList, WatchEvent
from mpiop.kube.resources import Selection


class ListerWatcher(Protocol):
    """The two verbs of `mpiop.kube.client.Client` that an informer uses; both raise `mpiop.kube.errors.KubeError`."""

    async def list_page(self, selection: Selection, *, resource_version: str, limit: int = 0, continue_token: str = "") -> ObjectList:
        """Return one page of a list."""
        ...

    def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, send_initial_events: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch with bookmarks; the iterator ends with the stream and raises if it breaks or stays silent."""
        ...


class InformerMetrics(Protocol):
    """Receives the metrics of all informers; `selection` names the informer.

    Two more are read when somebody asks: `SharedInformer.backlog` and `SharedInformer.last_activity`.
    """

    def listed(self, selection: Selection, objects: int) -> None:
        """Count a list or watch-list."""
        ...

    def watch_opened(self, selection: Selection) -> None:
        """Count an opened watch."""
        ...

    def event_received(self, selection: Selection) -> None:
        """Note a usable event or bookmark; staleness is counted from it."""
        ...

    def failed(self, selection: Selection, error: Exception) -> None:
        """Count a failed list or watch, which is retried."""
        ...


class NoInformerMetrics:
    """Discards all metrics."""

    def listed(self, selection: Selection, objects: int) -> None:
        """Ignore it."""

    def watch_opened(self, selection: Selection) -> None:
        """Ignore it."""

    def event_received(self, selection: Selection) -> None:
        """Ignore it."""

    def failed(self, selection: Selection, error: Exception) -> None:
        """Ignore it."""
