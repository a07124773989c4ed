"""Finds out which API of gang scheduling the API server serves; repeated until it serves one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from mpiop.controller.gang.gang import Gang, GangApi, candidates, needs_priorities
from mpiop.informers.shared_informer import SharedInformer
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.resources import PRIORITY_CLASSES, Resource, Selection

RETRY_SECONDS: Final = 15.0

log = structlog.get_logger(__name__)


class Discoverer(Protocol):
    """The part of the client that discovers resources."""

    async def discover(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals of the resources of `group/version`."""
        ...


class GangDiscovery:
    """Completes a `Gang` with the API that is served and the caches of its objects.

    A missing or forbidden API is not an error of the process: the jobs that need it are Stalled until it can be used.
    """

    def __init__(
        self,
        client: Discoverer,
        gang: Gang,
        follow: Callable[[Resource], SharedInformer],
        failure: Callable[[Selection], Exception | None],
    ) -> None:
        """Ask `client` on behalf of `gang`; `follow` starts an informer, `failure` returns the last error of one."""
        self._client = client
        self._gang = gang
        self._follow = follow
        self._failure = failure
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Retry until the API is found and its objects are cached; return at once without gang scheduling."""
        while self._gang.scheduler and not await self._find():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(RETRY_SECONDS)
        self._answered.set()

    async def wait_for_answer(self) -> None:
        """Wait until it is known whether the API can be used, so that no job is Stalled too early."""
        await self._answered.wait()

    def problems(self) -> Sequence[str]:
        """Return what is missing (for the readiness probe)."""
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
        """Wait until `informer` has synced; if that takes long, log why."""
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await informer.wait_for_sync()
        except TimeoutError:
            reason = self._failure(informer.selection) or "no answer"
            log.warning("gang scheduling cannot be followed", selection=str(informer.selection), error=str(reason))
            self._refused(f"{informer.selection}: {reason}", is_answer=True)
            await informer.wait_for_sync()

    def _refused(self, words: str, *, is_answer: bool) -> None:
        """Note why the API cannot be used; if that `is_answer`, the jobs that need it become Stalled."""
        self._gang.refusal = words
        if is_answer:
            self._answered.set()
