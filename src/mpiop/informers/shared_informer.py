"""The shared informer: one reflector, one store, and any number of handlers, called after the store was updated."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NoReturn

import structlog

from mpiop.informers.compaction import preparation
from mpiop.informers.listener import Handler, Listener, Registration, call
from mpiop.informers.pager import Pager
from mpiop.informers.reflector import Output, Reflector, ReflectorSettings
from mpiop.informers.source import InformerMetrics, ListerWatcher, NoInformerMetrics
from mpiop.informers.store import Indexer, Notification, Store
from mpiop.informers.watching import Apply, Bookmark, Replace
from mpiop.kube.resources import Selection

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InformerSettings:
    """Settings shared by all informers of a process.

    Attributes:
        reflector: Numbers that reflectors go by.
        metrics: Where measurements go.
    """

    reflector: ReflectorSettings = field(default_factory=ReflectorSettings)
    metrics: InformerMetrics = field(default_factory=NoInformerMetrics)


class SharedInformer:
    """Keeps `store` equal to one selection on the server.

    Attributes:
        selection: What is followed.
        store: The objects, for anybody to read; which of them cannot be decoded, it knows too.
    """

    def __init__(
        self,
        client: ListerWatcher,
        selection: Selection,
        *,
        indexers: Mapping[str, Indexer] | None = None,
        settings: InformerSettings | None = None,
    ) -> None:
        """Prepare to follow `selection`.

        Args:
            client: Where objects come from.
            selection: Which, and what of each; managedFields are left out anyway.
            indexers: Indexes of the store.
            settings: What all informers have in common.
        """
        self.selection = selection
        self.store = Store(indexers)
        settings = settings or InformerSettings()
        prepare = preparation(self.store.get, selection.trim)
        self._reflector = Reflector(Pager(client, selection, prepare), self._take, settings.reflector, settings.metrics)
        self._followers: list[Handler] = []
        self._listeners: list[Listener] = []
        self._resyncs: dict[Listener, asyncio.TimerHandle] = {}
        self._synced = asyncio.Event()
        self._has_started = False
        self._has_stopped = False
        self._last_activity: float | None = None
        self._log = log.bind(selection=str(selection))

    @property
    def has_synced(self) -> bool:
        """Return whether the store has the first list."""
        return self._synced.is_set()

    @property
    def is_running(self) -> bool:
        """Return whether the informer runs."""
        return self._has_started and not self._has_stopped

    @property
    def last_activity(self) -> float | None:
        """Return the event loop's time of the last output of the reflector; None if there was none.

        A server sends a bookmark about each minute, so a last bookmark some minutes ago means that the store may be stale.
        """
        return self._last_activity

    @property
    def backlog(self) -> int:
        """Return the largest number of buffered notifications of a handler."""
        return max((listener.backlog for listener in self._listeners), default=0)

    @property
    def registrations(self) -> Sequence[Registration]:
        """Return all handlers."""
        return tuple(self._listeners)

    def add_handler(self, handler: Handler, *, resync_seconds: float = 0.0) -> Registration:
        """Call `handler` with each stored object as an initial add, then with each change.

        Args:
            handler: Called with one notification at a time, in order. It should be quick: all share one event loop.
            resync_seconds: Period after which it is called with every stored object again; 0 is never.

        Raises:
            RuntimeError: The informer has stopped.
        """
        if self._has_stopped:
            raise RuntimeError(f"informer of {self.selection}: a handler was added after it has stopped, which would never be called")
        listener = Listener(handler, resync_seconds, self._forget)
        self._listeners.append(listener)
        if self.has_synced:
            listener.push_initial([Notification(None, obj) for obj in self.store.values()])
        if self.is_running:
            self._plan_resync(listener)
        return listener

    def follow(self, handler: Handler) -> None:
        """Call `handler` with each change while the store takes it, so that what it keeps and the store are never apart.

        Args:
            handler: Must be quick: nothing else runs meanwhile. An exception is logged.
        """
        self._followers.append(handler)

    async def wait_for_sync(self) -> None:
        """Wait until the store and every handler have the first list."""
        await self._synced.wait()
        for listener in tuple(self._listeners):
            await listener.wait_for_sync()

    async def run(self) -> NoReturn:
        """List and watch until cancelled; afterwards no handler is called.

        Raises:
            RuntimeError: It ran before.
        """
        if self._has_started:
            raise RuntimeError(f"informer of {self.selection}: run() was called twice; make another informer")
        self._has_started = True
        try:
            for listener in self._listeners:
                self._plan_resync(listener)
            await self._reflector.run()
        finally:
            self._has_stopped = True
            for timer in self._resyncs.values():
                timer.cancel()
            self._resyncs.clear()
            for listener in self._listeners:
                listener.close()

    def _take(self, output: Output) -> None:
        self._last_activity = asyncio.get_running_loop().time()
        match output:
            case Replace(items, version):
                self._notify(self.store.replace(items, version))
                if not self.has_synced:
                    log.info("informer synced", selection=str(self.selection), objects=len(self.store))
                    self._synced.set()
                    for listener in self._listeners:
                        listener.push_initial(())
            case Apply(obj, is_deleted, version):
                change = self.store.remove(obj, version) if is_deleted else self.store.put(obj, version)
                self._notify([] if change is None else [change])
            case Bookmark(version):
                self.store.advance(version)

    def _notify(self, changes: Sequence[Notification]) -> None:
        for change in changes:
            if change.unreadable is not None and self.store.unreadable.get(change.key) is change.unreadable:
                version = change.unreadable.object["metadata"].get("resourceVersion", "")
                self._log.warning("object unreadable", object=str(change.key), version=version, problem=change.unreadable.problem)
        for follower, change in product(self._followers, changes):
            call(follower, change)
        for listener in self._listeners:
            listener.push(changes)

    def _plan_resync(self, listener: Listener) -> None:
        if listener.resync_seconds > 0:
            self._resyncs[listener] = asyncio.get_running_loop().call_later(listener.resync_seconds, self._resync, listener)

    def _resync(self, listener: Listener) -> None:
        listener.resync(self.store.values())
        self._plan_resync(listener)

    def _forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
        timer = self._resyncs.pop(listener, None)
        if timer is not None:
            timer.cancel()
