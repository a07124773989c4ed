"""What happens in the namespaces of the cases: when something changed last, and when an object was first seen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

from e2e.waiting import until
from fakes.following import background
from mpiop.informers.factory import InformerFactory
from mpiop.informers.store import Notification
from mpiop.kube.client import Client
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource, Selection

KINDS: tuple[Resource, ...] = (MPIJOBS, SERVICES, CONFIG_MAPS, SECRETS, JOBS, PODS, EVENTS)
QUIET_SECONDS = 1.6
"""As when the recordings were made; the Job controller gathers events of Pods for one second."""


class Follower:
    """Follows all kinds in all namespaces."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._factory = InformerFactory(client)
        self._changed: dict[str, float] = {}
        self._seen: dict[tuple[str, str, str], float] = {}
        for resource in KINDS:
            self._factory.informer(Selection(resource)).add_handler(partial(self._note, resource))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Follower"]:
        """Watch until the context is left."""
        async with background(asyncio.create_task(self._factory.run())):
            for informer in self._factory:
                await informer.wait_for_sync()
            yield self

    def first_seen(self, resource: Resource, namespace: str, name: str) -> float | None:
        """Return the loop time at which an object was first seen."""
        return self._seen.get((resource.kind, namespace, name))

    async def until_quiet(self, namespace: str) -> None:
        """Wait until nothing has changed in a namespace for a while."""
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def is_quiet() -> bool:
            return loop.time() - max(begun, self._changed.get(namespace, begun)) >= QUIET_SECONDS

        await until(f"quiet in {namespace}", is_quiet)

    async def objects(self, namespace: str) -> dict[str, list[dict[str, object]]]:
        """Return all objects of a namespace by kind, read again."""
        pages = [await self._client.list_page(Selection(resource, namespace), resource_version="") for resource in KINDS]
        return {resource.kind: [dict(each) for each in page["items"]] for resource, page in zip(KINDS, pages, strict=True)}

    def _note(self, resource: Resource, notification: Notification) -> None:
        now, key = asyncio.get_running_loop().time(), notification.key
        self._changed[key.namespace] = now
        if notification.new is not None:
            self._seen.setdefault((resource.kind, key.namespace, key.name), now)
