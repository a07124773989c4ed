"""Finding out which API of gang scheduling the API server serves, at start and for as long as it serves none."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from mpiop.controller.gang import Gang, GangApi, candidates, needs_priorities
from mpiop.informers.shared_informer import SharedInformer
from mpiop.kube.errors import KubeError
from mpiop.kube.resources import PRIORITY_CLASSES, Resource

LOOK_SECONDS: Final = 15.0

log = structlog.get_logger(__name__)


class Discoverer(Protocol):
    """The part of the client that says what is served."""

    async def discover(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals of the resources of `group/version`."""
        ...


class GangDiscovery:
    """Fills in a `Gang`: which API there is, and stores of its objects.

    A missing API is not an error of the process: jobs that wait for it say so, and go on when it comes.
    """

    def __init__(self, client: Discoverer, gang: Gang, follow: Callable[[Resource], SharedInformer]) -> None:
        """Ask `client` on behalf of `gang`; `follow` starts an informer."""
        self._client = client
        self._gang = gang
        self._follow = follow
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Look until the API is found and its objects are in the stores; without gang scheduling there is nothing to look for."""
        while self._gang.scheduler and not await self._find():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(LOOK_SECONDS)
        self._answered.set()

    async def wait_for_answer(self) -> None:
        """Wait until it is known whether the API is there, so that no job is told too early that it is missing."""
        await self._answered.wait()

    def problems(self) -> Sequence[str]:
        """Return what is missing (a readiness check)."""
        missing = self._gang.missing
        return [] if missing is None else [str(missing)]

    async def _find(self) -> bool:
        try:
            api = await self._served()
        except KubeError as error:
            log.warning("gang scheduling not found out", scheduler=self._gang.scheduler, error=str(error))
            return False
        if api is not None:
            await self._begin(api)
            return True
        if not self._answered.is_set():
            log.error("gang scheduling not served", scheduler=self._gang.scheduler, advice=str(self._gang.missing))
        self._answered.set()
        return False

    async def _served(self) -> GangApi | None:
        for api in candidates(self._gang.scheduler):
            served = await self._client.discover(api[0].resource.group, api[0].resource.version)
            if all(part.resource.plural in served for part in api):
                return api
        return None

    async def _begin(self, api: GangApi) -> None:
        informers = {part.resource: self._follow(part.resource) for part in api}
        if needs_priorities(api):
            priority_classes = self._follow(PRIORITY_CLASSES)
            await priority_classes.wait_for_sync()
            self._gang.priority_classes = priority_classes.store.values
        for informer in informers.values():
            await informer.wait_for_sync()
        self._gang.listers.update({resource: informer.store for resource, informer in informers.items()})
        self._gang.api = api
        log.info("gang scheduling found", scheduler=self._gang.scheduler, api=api[-1].resource.api_version)
