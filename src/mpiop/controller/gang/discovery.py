"""Finds out which API of gang scheduling the API server serves, and repeats that until it serves one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import structlog

from mpiop.controller.gang.gang import Gang, GangApi, candidates, needs_priorities
from mpiop.informers.joined import JoinedInformer
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
        follow: Callable[[Resource], JoinedInformer],
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

    def problems(self) -> Mapping[str, str]:
        """Return what is missing, by namespace; that of "" is missing in all."""
        namespaces = [""] if self._gang.api is None else self._gang.refusals
        return {namespace: str(missing) for namespace in namespaces if (missing := self._gang.missing(namespace)) is not None}

    async def _find(self) -> bool:
        try:
            api = await self._served()
        except KubeError as error:
            log.warning("gang scheduling not found out", scheduler=self._gang.scheduler, error=str(error))
            if isinstance(error, StatusError):
                self._refused("", str(error), is_answer="" in self._gang.refusals)
            return False
        if api is not None:
            await self._begin(api)
            return True
        self._gang.refusals.clear()
        if not self._answered.is_set():
            log.error("gang scheduling not served", scheduler=self._gang.scheduler, advice=str(self._gang.missing("")))
        self._answered.set()
        return False

    async def _served(self) -> GangApi | None:
        for api in candidates(self._gang.scheduler):
            served = await self._client.discover(api[0].resource.group, api[0].resource.version)
            if all(part.resource.plural in served for part in api):
                return api
        return None

    async def _begin(self, api: GangApi) -> None:
        priority_classes = self._follow(PRIORITY_CLASSES) if needs_priorities(api) else None
        informers = {part.resource: self._follow(part.resource) for part in api}
        if priority_classes is not None:
            await self._wait_for_sync("", priority_classes.parts)
            self._gang.priority_classes = priority_classes.store.values
        self._gang.refusals.clear()
        self._gang.listers.update({resource: informer.store for resource, informer in informers.items()})
        parts = [part for informer in informers.values() for part in informer.parts]
        self._gang.waiting.update(part.selection.namespace for part in parts)
        self._gang.api = api
        log.info("gang scheduling found", scheduler=self._gang.scheduler, api=api[-1].resource.api_version)
        async with asyncio.TaskGroup() as group:
            for namespace in tuple(self._gang.waiting):
                group.create_task(self._follow_in(namespace, [part for part in parts if part.selection.namespace == namespace]))

    async def _follow_in(self, namespace: str, parts: Sequence[SharedInformer]) -> None:
        """Let the jobs of `namespace` use the API once `parts` have synced, which may never be: the right may be missing there."""
        await self._wait_for_sync(namespace, parts)
        self._gang.waiting.discard(namespace)
        self._gang.refusals.pop(namespace, None)
        self._answered.set()

    async def _wait_for_sync(self, namespace: str, informers: Sequence[SharedInformer]) -> None:
        """Wait until `informers` have synced; if that takes long, log why."""
        for informer in informers:
            try:
                async with asyncio.timeout(RETRY_SECONDS):
                    await informer.wait_for_sync()
            except TimeoutError:
                reason = self._failure(informer.selection) or "no answer"
                log.warning("gang scheduling cannot be followed", selection=str(informer.selection), error=str(reason))
                self._refused(namespace, f"{informer.selection}: {reason}", is_answer=True)
                await informer.wait_for_sync()

    def _refused(self, namespace: str, words: str, *, is_answer: bool) -> None:
        """Note why the API cannot be used in `namespace`; if that `is_answer`, the jobs that need it become Stalled."""
        self._gang.refusals[namespace] = words
        if is_answer:
            self._answered.set()
