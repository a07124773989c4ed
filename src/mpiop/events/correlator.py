"""Aggregates equal occurrences into one Event, and drops those above a rate; after client-go's EventCorrelator."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from mpiop.clock import Clock
from mpiop.kube.text import truncated
from mpiop.token_bucket import TokenBucket

BURST = 25
REFILL_SECONDS = 300.0
MAX_SIMILAR = 10
SIMILAR_SECONDS = 600.0
MAX_OBJECTS = 1024
MAX_SERIES = 64
"""Of one object; the limit of occurrences fills that in hours at the earliest."""

_COMBINED = "(combined from similar events): "

K = TypeVar("K")
V = TypeVar("V")


class Regarding(NamedTuple):
    """The object that an event is about (`involvedObject`)."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Occurrence(NamedTuple):
    """An occurrence; equal ones are counted in one Event."""

    regarding: Regarding
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Series:
    """The occurrences that one Event object represents.

    Attributes:
        count: How often it occurred.
        first: When it first occurred.
        last: When it last occurred.
        message: Text of the Event: the newest of the combined messages.
        name: Name of the Event, chosen before the first attempt to store it; "" until then.
        is_stored: Whether the Event exists, as far as we know.
    """

    count: int
    first: datetime
    last: datetime
    message: str
    name: str = ""
    is_stored: bool = False


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set[str])
    last_at: float = 0.0


class _Subject:
    """The recent occurrences of one object."""

    def __init__(self) -> None:
        self.bucket = TokenBucket(1 / REFILL_SECONDS, BURST)
        self.similar: defaultdict[tuple[str, str], _Similar] = defaultdict(_Similar)
        self.series: _Recent[Occurrence, Series] = _Recent(MAX_SERIES)

    def identity(self, occurrence: Occurrence, now: float) -> Occurrence:
        """Return the occurrence itself, or one without a message that represents all that differ only in it."""
        similar = self.similar[occurrence.type, occurrence.reason]
        if now - similar.last_at > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last_at = now
        if occurrence.message in similar.messages:
            return occurrence
        if len(similar.messages) >= MAX_SIMILAR:
            return occurrence._replace(message="")
        similar.messages.add(occurrence.message)
        return occurrence


class Correlator:
    """Correlates the occurrences of the objects with the most recent ones; its memory is bounded."""

    def __init__(self, clock: Clock) -> None:
        """Start empty."""
        self._clock = clock
        self._subjects: _Recent[Regarding, _Subject] = _Recent(MAX_OBJECTS)

    def note(self, occurrence: Occurrence) -> tuple[Occurrence, Series] | None:
        """Count `occurrence` and return the series it belongs to with the identity of that series, or None when it is one too many."""
        subject = self._subjects.entry(occurrence.regarding, _Subject)
        identity = subject.identity(occurrence, self._clock.monotonic())
        if not subject.bucket.take(self._clock.monotonic()):
            return None
        now = self._clock.now()
        series = subject.series.entry(identity, lambda: Series(count=0, first=now, last=now, message=""))
        series.count += 1
        series.last = now
        series.message = occurrence.message
        if identity is not occurrence:
            series.message = truncated(_COMBINED + occurrence.message)
        return identity, series

    def drop(self, identity: Occurrence) -> None:
        """Start a new series with the next occurrence: this one was never stored."""
        if (subject := self._subjects.get(identity.regarding)) is not None:
            subject.series.pop(identity, None)

    def forget(self, regarding: Regarding) -> None:
        """Forget a deleted object."""
        self._subjects.pop(regarding, None)


class _Recent(OrderedDict[K, V]):
    """A least recently used cache."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def entry(self, key: K, make: Callable[[], V]) -> V:
        """Return the entry of `key`, made if it is missing."""
        if key not in self:
            self[key] = make()
            if len(self) > self._most:
                self.popitem(last=False)
        self.move_to_end(key)
        return self[key]
