"""EventRecorder: queues occurrences without waiting, and writes them concurrently, those of one object in order."""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, Never, Protocol, cast

import structlog

from mpiop.api.constants import EVENT_COMPONENT
from mpiop.backoff import EVENT
from mpiop.clock import Clock, format_time
from mpiop.events.correlator import Correlator, Occurrence, Regarding, Series
from mpiop.kube.errors import CalledOffError, KubeError, StatusError, TransportError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import EVENTS, Resource
from mpiop.kube.text import truncated
from mpiop.shares import RESERVED, Shares

WRITTEN: Final = "written"
DROPPED: Final = "dropped"
LIMITED: Final = "limited"

_MAX_WAITING: Final = 1000
_WRITERS: Final = 8
"""How many Events are written at the same time. If the server takes half a second for each, one writer falls behind a job a second."""

_TRIES: Final = 3
_FLUSH_SECONDS: Final = 2.0
_MAX_NAME_LENGTH: Final = 253
_DEFAULT_NAMESPACE: Final = "default"
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = 500

_log = structlog.get_logger(__name__)


class EventClient(Protocol):
    """The part of `mpiop.kube.client.Client` that is used."""

    async def create(self, resource: Resource, body: Object, *, metadata_only: bool) -> Object:
        """Create the object."""
        ...

    async def patch(self, resource: Resource, key: Key, body: Mapping[str, Any]) -> Object:
        """Merge `body` into the object and return the result."""
        ...


class EventRecorder:
    """Records Events about objects; `run` writes them."""

    def __init__(
        self,
        client: EventClient,
        clock: Clock,
        *,
        count: Callable[[str], None] | None = None,
    ) -> None:
        """Prepare to write Events.

        Args:
            client: Where to write to; writes that it cancels are dropped, because a process that lost its lease must not write.
            clock: For time stamps and limits.
            count: Called with `WRITTEN`, `DROPPED` or `LIMITED` for each occurrence or write, for metrics.
        """
        self._client = client
        self._clock = clock
        self._count = count or _ignore
        self._correlator = Correlator(clock)
        self._waiting: OrderedDict[Occurrence, Series] = OrderedDict()
        self._being_written: set[Regarding] = set()
        self._shares = Shares(_WRITERS)
        self._arrived = asyncio.Event()
        self._last_stamp = 0

    def record(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """Queue an Event about `obj`; neither waits nor fails.

        Args:
            obj: With `apiVersion` and `kind`.
            type_: `Normal` or `Warning`.
            reason: One word in CamelCase.
            message: For people; cut to 1024 bytes.
        """
        occurrence = Occurrence(_regarding(obj), type_, reason, truncated(message))
        noted = self._correlator.note(occurrence)
        if noted is None:
            self._count(LIMITED)
            return
        identity, series = noted
        self._waiting[identity] = series
        self._arrived.set()
        if len(self._waiting) > _MAX_WAITING:
            self._drop_one()

    def _drop_one(self) -> None:
        """Drop the newest occurrence that waits in the namespace with the most of them."""
        waiting = [identity for identity in self._waiting if identity.regarding not in self._being_written]
        if not waiting:
            return
        [(most, _)] = Counter(identity.regarding.namespace for identity in waiting).most_common(1)
        dropped = next(identity for identity in reversed(waiting) if identity.regarding.namespace == most)
        del self._waiting[dropped]
        self._correlator.drop(dropped)
        self._count(DROPPED)

    def forget(self, obj: Object) -> None:
        """Forget the deleted `obj`; queued Events are still written."""
        self._correlator.forget(_regarding(obj))

    async def run(self) -> Never:
        """Write what is recorded; when cancelled, write what still waits, for at most two seconds.

        Cancel this after the work that records has ended, else its last words are lost.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(1, _WRITERS + RESERVED):
                    group.create_task(self._write_for_ever(), name=f"events {number}")
                await self._write_for_ever()
        finally:
            # In a task of its own: before Python 3.11.3, a timeout does not end as one in a task that was cancelled.
            await asyncio.create_task(self._flush(), name="events at the end")

    async def _write_for_ever(self) -> Never:
        while True:
            await self._write_waiting(tries=_TRIES)
            self._arrived.clear()
            await self._arrived.wait()

    async def _flush(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS), asyncio.TaskGroup() as group:
                for _ in range(_WRITERS + RESERVED):
                    group.create_task(self._write_waiting(tries=1))
        if self._waiting:
            _log.warning("events lost at the end", events=len(self._waiting))

    async def _write_waiting(self, *, tries: int) -> None:
        """Write until all that waits is written, or being written by others."""
        while (identity := self._next()) is not None:
            self._being_written.add(identity.regarding)
            self._shares.take(identity.regarding.namespace)
            try:
                await self._write_first(identity, tries)
            finally:
                self._being_written.discard(identity.regarding)
                self._shares.release(identity.regarding.namespace)
                self._arrived.set()  # this writer may take another one than the one that may begin now

    def _next(self) -> Occurrence | None:
        """Return the oldest queued occurrence of an object that no Event is being written for: Events of one object stay in order.

        A namespace in which each write takes long cannot occupy all writers (see `Shares`).
        """
        return next((identity for identity in self._waiting if self._may_begin(identity.regarding)), None)

    def _may_begin(self, regarding: Regarding) -> bool:
        return regarding not in self._being_written and self._shares.has_place(regarding.namespace)

    async def _write_first(self, identity: Occurrence, tries: int) -> None:
        # It stays in the queue while it is written, so that nothing is lost when this is cancelled.
        series = self._waiting[identity]
        count = series.count
        outcome = await self._write_and_retry(identity, series, tries)
        self._count(outcome)
        if outcome == DROPPED:
            self._correlator.drop(identity)
        if outcome == DROPPED or series.count == count:
            self._waiting.pop(identity, None)

    async def _write_and_retry(self, identity: Occurrence, series: Series, tries: int) -> str:
        attempt = 0
        while True:
            attempt += 1
            try:
                await self._write(identity, series)
            except CalledOffError:
                return DROPPED
            except KubeError as error:
                if series.is_stored and isinstance(error, StatusError) and error.is_not_found:
                    series.is_stored, series.name = False, ""  # it has expired: create another, with a new name
                    continue
                if attempt >= tries or not _is_temporary(error):
                    _log_drop(identity, error)
                    return DROPPED
                delay_seconds = _delay_seconds(error, attempt)
            else:
                return WRITTEN
            await asyncio.sleep(delay_seconds)

    async def _write(self, identity: Occurrence, series: Series) -> None:
        series.name = series.name or self._fresh_name(identity.regarding.name)
        key = Key(identity.regarding.namespace or _DEFAULT_NAMESPACE, series.name)
        if series.is_stored:
            change = {"count": series.count, "lastTimestamp": format_time(series.last), "message": series.message}
            await self._client.patch(EVENTS, key, change)
            return
        try:
            await self._client.create(EVENTS, self._event(identity, series, key), metadata_only=True)
        except StatusError as error:
            if not error.is_already_exists:  # names are ours alone: an earlier attempt took effect without an answer
                raise
        series.is_stored = True

    def _event(self, identity: Occurrence, series: Series, key: Key) -> Object:
        regarding = identity.regarding
        involved = {"apiVersion": regarding.api_version, "kind": regarding.kind, "namespace": regarding.namespace}
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": key.namespace, "name": key.name},
            "involvedObject": {**involved, "name": regarding.name, "uid": regarding.uid},
            "type": identity.type,
            "reason": identity.reason,
            "message": series.message,
            "count": series.count,
            "firstTimestamp": format_time(series.first),
            "lastTimestamp": format_time(series.last),
            # Neither source.host nor reportingInstance, as the reference has it: programs compare them.
            "source": {"component": EVENT_COMPONENT},
            "reportingComponent": EVENT_COMPONENT,
        }
        return cast("Object", event)

    def _fresh_name(self, name: str) -> str:
        """Return a name for an Event about the object `name` that no other Event has: the time in nanoseconds, but never twice the same."""
        self._last_stamp = max(self._last_stamp + 1, int(self._clock.now().timestamp() * 1e6) * 1000)
        suffix = f".{self._last_stamp:x}"
        return name[: _MAX_NAME_LENGTH - len(suffix)].rstrip(".-") + suffix


def _regarding(obj: Object) -> Regarding:
    metadata = obj["metadata"]
    return Regarding(
        obj.get("apiVersion", ""), obj.get("kind", ""), metadata.get("namespace", ""), metadata.get("name", ""), metadata.get("uid", "")
    )


def _ignore(_outcome: str) -> None:
    """Count nothing."""


def _is_temporary(error: KubeError) -> bool:
    if isinstance(error, StatusError):
        return error.code == _TOO_MANY_REQUESTS or error.code >= _SERVER_ERRORS
    return isinstance(error, TransportError)


def _delay_seconds(error: KubeError, attempt: int) -> float:
    asked = error.retry_after_seconds if isinstance(error, StatusError) else None
    return EVENT.delay_seconds(attempt - 1) if asked is None else min(asked, EVENT.most_seconds)


def _log_drop(identity: Occurrence, error: KubeError) -> None:
    if isinstance(error, StatusError) and error.is_terminating_namespace:
        return
    regarding = identity.regarding
    _log.warning("event dropped", reason=identity.reason, object=f"{regarding.namespace}/{regarding.name}", error=str(error))
