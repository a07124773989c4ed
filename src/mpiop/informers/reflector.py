"""The reflector: lists and watches one selection for as long as it runs, whatever the server and the network do.

It lists (or streams the list over a watch), then watches from that version; `transitions` lists the reactions to failures. It has
three kinds of output, in the order of the changes on the server: `Replace`, `Apply` and `Bookmark`.

The version to resume from never goes back, unless the server does not have it: then the reflector lists the newest version.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

import structlog

from mpiop.informers.backoff import ReflectorBackoff
from mpiop.informers.pager import PAGE_LIMIT, Pager, Prepare
from mpiop.informers.reflector_transitions import (
    FRUITLESS_WATCHES,
    INTERNAL_ERROR,
    TRANSITIONS,
    Ending,
    Step,
    list_ending,
    stream_ending,
    watch_ending,
)
from mpiop.informers.source import InformerMetrics, ListerWatcher, NoInformerMetrics
from mpiop.informers.watching import INITIAL_EVENTS_END, Apply, Bookmark, Replace, Watching
from mpiop.kube.errors import StatusError
from mpiop.kube.resources import Selection

log = structlog.get_logger(__name__)

Output = Replace | Apply | Bookmark
Sink = Callable[[Output], None]

MOST_RETRY_AFTER_SECONDS = 60.0
"""A longer Retry-After, such as that of a page which a load balancer shows, does not keep an informer away."""

EVENTS_A_TURN = 50
"""Events that are handled before other tasks get their turn."""


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Settings of a reflector; durations in seconds.

    Attributes:
        page_limit: Objects a page of a list.
        min_watch_seconds: The server is asked to end a watch after once to twice as long, so that watches spread over servers.
        watch_grace_seconds: How much longer than that we wait for it to do so.
        short_watch_seconds: After a watch that ends sooner there is a pause; with nothing gained it counts as failed.
        stream_patience_seconds: How long the initial events of a watch-list may take; after that the server is assumed not to support them.
        internal_error_seconds: For how long after the first one internal errors in a watch are treated as temporary.
        streams: Whether to try watch-lists at all.
        chance: Source of the jitter.
    """

    page_limit: int = PAGE_LIMIT
    min_watch_seconds: float = 300.0
    watch_grace_seconds: float = 30.0
    short_watch_seconds: float = 1.0
    stream_patience_seconds: float = 60.0
    internal_error_seconds: float = 10.0
    streams: bool = True
    chance: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True, slots=True)
class _Result:
    step: Step
    ending: Ending
    error: Exception | None = None


class Reflector:
    """Turns lists and watches of one selection into a sequence of outputs."""

    def __init__(
        self,
        pager: Pager,
        sink: Sink,
        settings: ReflectorSettings | None = None,
        metrics: InformerMetrics | None = None,
    ) -> None:
        """Follow what `pager` reads.

        Args:
            pager: The client, the selection and what is done to each object before it is passed on.
            sink: Takes the outputs; synchronous, so that nothing comes after the reflector was stopped.
            settings: Numbers to go by.
            metrics: Where measurements go; by default nowhere.
        """
        self._client: ListerWatcher = pager.client
        self._selection: Selection = pager.selection
        self._prepare: Prepare = pager.prepare
        self._pager = pager
        self._sink = sink
        self._settings = settings or ReflectorSettings()
        self._metrics: InformerMetrics = metrics or NoInformerMetrics()
        self._backoff = ReflectorBackoff(self._settings.chance)
        self._log = log.bind(selection=str(self._selection))
        self._resource_version = ""
        self._wants_newest = False
        self._has_paginated = False
        self._can_stream = self._settings.streams
        self._fruitless = 0
        self._internal_errors_since: float | None = None

    @property
    def resource_version(self) -> str:
        """Return the resourceVersion of the last output; "" before the first list."""
        return self._resource_version

    async def run(self) -> NoReturn:
        """List and watch until cancelled; no failure ends it."""
        step = Step.START
        while True:
            if step is Step.START:
                step = Step.STREAM if self._can_stream else Step.LIST
            begun = asyncio.get_running_loop().time()
            result = await (self._list() if step is Step.LIST else self._watch(step))
            if result.step is Step.WATCH and result.ending is Ending.DONE and self._is_short(begun):
                result = replace(result, ending=Ending.SHORT)
            move = TRANSITIONS[result.step, result.ending]
            if result.error is not None:
                self._report(result, result.error, move.step)
            if result.ending is Ending.EXPIRED:
                self._wants_newest = result.step is not Step.WATCH
                # The server was restarted, and its watch cache starts now: the back-off of its downtime should not delay us any longer.
                self._backoff.forgive(asyncio.get_running_loop().time())
            if move.pause:
                await self._pause(result)
            step = move.step

    async def _list(self) -> _Result:
        version = "" if self._wants_newest else self._resource_version or "0"
        # A limit on a list at a known version would make it exact, and the server read it from etcd, not from its cache.
        limit = self._settings.page_limit if version in {"", "0"} or self._has_paginated else 0
        try:
            listing = await self._pager.read(version, limit)
            self._has_paginated = self._has_paginated or (version == "0" and listing.is_paginated)
            self._replace(Replace(listing.items, listing.resource_version))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and the list tried again
            return _Result(Step.LIST, list_ending(error, at_newest=version == ""), error)
        return _Result(Step.LIST, Ending.DONE)

    async def _watch(self, step: Step) -> _Result:
        version = "" if self._wants_newest and step is Step.STREAM else self._resource_version
        watching = Watching(self._selection, self._prepare, version, is_stream=step is Step.STREAM)
        seconds = int(self._settings.min_watch_seconds * (1.0 + self._settings.chance.random()))
        longest = seconds + self._settings.watch_grace_seconds
        deadline = asyncio.timeout(self._settings.stream_patience_seconds if watching.is_stream else longest)
        begun = asyncio.get_running_loop().time()
        try:
            async with (
                deadline,
                self._client.watch(
                    self._selection, resource_version=version, timeout_seconds=seconds, send_initial_events=watching.is_stream
                ) as events,
            ):
                watching.is_open = True
                self._metrics.watch_opened(self._selection)
                async for event in events:
                    output = watching.receive(event)
                    if isinstance(output, Replace):
                        self._replace(output)
                        deadline.reschedule(begun + longest)
                    elif output is not None:
                        self._advance(output)
                    if watching.events_seen % EVENTS_A_TURN == 0:
                        await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and followed by the next step
            return self._overdue(watching) if deadline.expired() else self._failed(watching, error)
        has_failed = watching.gained == 0 and self._is_short(begun)
        return self._fruitless_or(Ending.INTERRUPTED if has_failed else Ending.DONE, watching)

    def _is_short(self, begun: float) -> bool:
        return asyncio.get_running_loop().time() - begun < self._settings.short_watch_seconds

    def _overdue(self, watching: Watching) -> _Result:
        if not watching.is_stream:
            return self._fruitless_or(Ending.DONE, watching)  # the server did not end it in time, so we did
        self._can_stream = False
        patience = self._settings.stream_patience_seconds
        return _Result(
            Step.STREAM,
            Ending.FAILED,
            TimeoutError(
                f"watch-list {self._selection}: no bookmark with {INITIAL_EVENTS_END} within {patience} s; lists are used from now on"
            ),
        )

    def _failed(self, watching: Watching, error: Exception) -> _Result:
        if watching.is_stream:
            ending = stream_ending(error, at_newest=watching.start_version == "")
        else:
            ending = watch_ending(error, has_gained=watching.gained > 0, retry_internal=self._may_retry_internal(error))
        return self._fruitless_or(ending, watching, error)

    def _fruitless_or(self, ending: Ending, watching: Watching, error: Exception | None = None) -> _Result:
        step = Step.STREAM if watching.is_stream else Step.WATCH
        if ending is Ending.DONE and not watching.is_stream:
            self._fruitless = 0
            self._internal_errors_since = None
        elif ending in {Ending.DONE, Ending.INTERRUPTED} and watching.is_open and not isinstance(error, StatusError):
            self._fruitless += 1
            if self._fruitless >= FRUITLESS_WATCHES:
                self._fruitless = 0
                ending = Ending.FRUITLESS
        return _Result(step, ending, error)

    def _may_retry_internal(self, error: Exception) -> bool:
        if not isinstance(error, StatusError) or error.code != INTERNAL_ERROR:
            return False
        now = asyncio.get_running_loop().time()
        if self._internal_errors_since is None:
            self._internal_errors_since = now
        return now - self._internal_errors_since < self._settings.internal_error_seconds

    def _replace(self, output: Replace) -> None:
        self._advance(output)
        self._wants_newest = False
        self._fruitless = 0
        self._internal_errors_since = None
        self._metrics.listed(self._selection, len(output.items))

    def _advance(self, output: Output) -> None:
        self._sink(output)
        self._resource_version = output.resource_version or self._resource_version
        self._metrics.event_received(self._selection)

    async def _pause(self, result: _Result) -> None:
        is_getting_on = result.ending is Ending.SHORT
        seconds = self._backoff.shortest_delay() if is_getting_on else self._backoff.delay(asyncio.get_running_loop().time())
        if isinstance(result.error, StatusError):
            seconds = max(seconds, min(result.error.retry_after_seconds or 0.0, MOST_RETRY_AFTER_SECONDS))
        await asyncio.sleep(seconds)

    def _report(self, result: _Result, error: Exception, following: Step) -> None:
        self._metrics.failed(self._selection, error)
        write = self._log.info if result.ending in {Ending.DONE, Ending.SHORT} else self._log.warning
        write(
            "list or watch broke off",
            step=result.step.name,
            ending=result.ending.name,
            following=following.name,
            error=str(error) or repr(error),
        )
