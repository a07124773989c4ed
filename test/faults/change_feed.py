"""Notifies runs of changes in their namespaces, so that they need not ask all the time; what happened they look up themselves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fakes.following import background
from mpiop.informers.factory import InformerFactory
from mpiop.informers.store import Notification
from mpiop.kube.client import Client
from mpiop.kube.resources import JOBS, MPIJOBS, PODS, Selection

TOGETHER_SECONDS = 0.03
"""Changes within this time are handled together."""


class ChangeFeed:
    """One watch of each resource for all runs."""

    def __init__(self, client: Client) -> None:
        self._changes: dict[str, asyncio.Event] = {}
        self._factory = InformerFactory(client)
        for resource in (MPIJOBS, JOBS, PODS):
            self._factory.informer(Selection(resource)).add_handler(self._note)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["ChangeFeed"]:
        """Watch until the context is left."""
        async with background(asyncio.create_task(self._factory.run())):
            yield self

    def next_change(self, namespace: str) -> asyncio.Event:
        """Return what is set when something changes in a namespace; ask before looking how things are."""
        return self._changes.setdefault(namespace, asyncio.Event())

    def notify(self, namespace: str) -> None:
        if change := self._changes.pop(namespace, None):
            change.set()

    def _note(self, notification: Notification) -> None:
        obj = notification.new or notification.old
        if obj is not None:
            self.notify(obj["metadata"].get("namespace", ""))


async def wait_for_change(change: asyncio.Event, seconds: float) -> None:
    """Wait until the change came, or for so long: the server may be disturbed, and not all that is waited for is in it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await change.wait()
            await asyncio.sleep(TOGETHER_SECONDS)
