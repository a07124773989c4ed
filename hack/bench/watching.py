"""Watches that wake who waits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, TypeAlias

from mpiop.kube.client import Client
from mpiop.kube.errors import TransportError
from mpiop.kube.objects import Object
from mpiop.kube.resources import Resource, Selection

_WATCH_SECONDS: Final = 3600
_AGAIN_SECONDS: Final = 0.1

See: TypeAlias = Callable[[str, Object], None]
"""Takes the type of an event, ADDED, MODIFIED or DELETED, and its object."""


class News:
    """Wakes those who wait for something to become so."""

    def __init__(self) -> None:
        """Begin with no news."""
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Let all who wait ask once more."""
        self._changed.set()

    async def until(self, is_reached: Callable[[], bool]) -> float:
        """Wait until `is_reached`, which is asked after each piece of news, and return the loop time."""
        while not is_reached():
            self._changed.clear()
            await self._changed.wait()
        return asyncio.get_running_loop().time()


@contextlib.asynccontextmanager
async def watching(client: Client, namespace: str, sees: Mapping[Resource, See], changes: News) -> AsyncIterator[None]:
    """Watch `namespace` while the block runs, and notify `changes` of each event that was seen; a refused watch ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_follow(client, Selection(resource, namespace), see, changes)) for resource, see in sees.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _follow(client: Client, selection: Selection, see: See, changes: News) -> None:
    """Notify of each event; what a broken watch missed comes with the next one."""
    version = ""
    while True:
        watch = client.watch(selection, resource_version=version, timeout_seconds=_WATCH_SECONDS)
        with contextlib.suppress(TransportError):
            async with watch as events:
                async for event in events:
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the watch of {selection} ended with {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        see(event["type"], event["object"])
                        changes.notify()
        await asyncio.sleep(_AGAIN_SECONDS)  # a server that is gone is not asked at full speed
