"""Finding out which API of gang scheduling the API server serves, at start and for as long as it serves none."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from mpiop.controller.gang.gang import Gang, GangApi, candidates, needs_priorities
from mpiop.informers.shared_informer import SharedInformer
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.resources import PRIORITY_CLASSES, Resource, Selection

LOOK_SECONDS: Final = 15.0

log = structlog.get_logger(__name__)


class Discoverer(Protocol):
    """The part of the client that says what is served."""

    async def discover(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals of the resources of `group/version`."""
        ...


class GangDiscovery:
    """Fills in a `Gang`: which API there is, and stores of its objects.

    An API that is missing, or may not be used, is not an error of the process: jobs that wait for it say so, and go on when it comes.
    """

    def __init__(
        self,
        client: Discoverer,
        gang: Gang,
        follow: Callable[[Resource], SharedInformer],
        failure: Callable[[Selection], Exception | None],
    ) -> None:
        """Ask `client` on behalf of `gang`; `follow` starts an informer, `failure` says why one does not get on."""
        self._client = client
        self._gang = gang
        self._follow = follow
        self._failure = failure
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Look until the API is found and its objects are in the stores; without gang scheduling there is nothing to look for."""
        while self._gang.scheduler and not await self._find():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(LOOK_SECONDS)
        self._answered.set()

    async def wait_for_answer(self) -> None:
        """Wait until it is known whether the API is there and can be used, so that no job is told too early that it is missing."""
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
            if isinstance(error, StatusError):
                self._refused(str(error), is_answer=bool(self._gang.refusal))
            return False
        if api is not None:
            await self._begin(api)
            return True
        self._gang.refusal = ""
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
        priority_classes = self._follow(PRIORITY_CLASSES) if needs_priorities(api) else None
        for informer in filter(None, (*informers.values(), priority_classes)):
            await self._wait_for_sync(informer)
        if priority_classes is not None:
            self._gang.priority_classes = priority_classes.store.values
        self._gang.listers.update({resource: informer.store for resource, informer in informers.items()})
        self._gang.api = api
        log.info("gang scheduling found", scheduler=self._gang.scheduler, api=api[-1].resource.api_version)

    async def _wait_for_sync(self, informer: SharedInformer) -> None:
        """Wait until `informer` has everything, and tell why it has not where that takes long."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await informer.wait_for_sync()
        except TimeoutError:
            reason = self._failure(informer.selection) or "no answer"
            log.warning("gang scheduling cannot be followed", selection=str(informer.selection), error=str(reason))
            self._refused(f"{informer.selection}: {reason}", is_answer=True)
            await informer.wait_for_sync()

    def _refused(self, words: str, *, is_answer: bool) -> None:
        """Note why the API cannot be used; once that `is_answer`, jobs that need it are told."""
        self._gang.refusal = words
        if is_answer:
            self._answered.set()
