"""What an informer needs of a client, and what it tells about itself."""

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
        """Open a watch with bookmarks; the iterator ends when the server ends the stream and raises when it is cut or silent."""
        ...


class InformerMetrics(Protocol):
    """Receives measurements of all informers; `selection` says whose.

    Two more are read when somebody asks: `SharedInformer.backlog` and `SharedInformer.last_activity`.
    """

    def listed(self, selection: Selection, objects: int) -> None:
        """The whole content was read anew, by a list or a watch-list."""
        ...

    def watch_opened(self, selection: Selection) -> None:
        """A watch was opened, or opened again."""
        ...

    def event_received(self, selection: Selection) -> None:
        """A usable event or bookmark came; its moment is what staleness is counted from."""
        ...

    def failed(self, selection: Selection, error: Exception) -> None:
        """A list or watch failed and will be tried again."""
        ...


class NoInformerMetrics:
    """Measures nothing."""

    def listed(self, selection: Selection, objects: int) -> None:
        """Ignore it."""

    def watch_opened(self, selection: Selection) -> None:
        """Ignore it."""

    def event_received(self, selection: Selection) -> None:
        """Ignore it."""

    def failed(self, selection: Selection, error: Exception) -> None:
        """Ignore it."""
