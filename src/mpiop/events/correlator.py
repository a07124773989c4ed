"""Which occurrences make one Event object, and which are too many."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from mpiop.clock import Clock
from mpiop.kube.text import truncated
from mpiop.token_bucket import TokenBucket

BURST = 25
REFILL_SECONDS = 300.0
MAX_SIMILAR = 10
SIMILAR_SECONDS = 600.0
MAX_ENTRIES = 4096
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
    """What happened; equal occurrences are one Event with a count."""

    regarding: Regarding
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Series:
    """The occurrences that one Event object stands for.

    Attributes:
        count: How often it occurred.
        first: When it first occurred.
        last: When it last occurred.
        message: What the Event says; the newest of the messages that were combined.
        name: Name of the Event, chosen before the first try to store it; "" until then.
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


class Correlator:
    """Remembers recent occurrences; its memory is bounded, the least recently used entry goes first."""

    def __init__(self, clock: Clock) -> None:
        """Start with no memory."""
        self._clock = clock
        self._buckets: _Recent[Regarding, TokenBucket] = _Recent(lambda: TokenBucket(1 / REFILL_SECONDS, BURST))
        self._similar: _Recent[tuple[Regarding, str, str], _Similar] = _Recent(_Similar)
        self._series: _Recent[Occurrence, Series] = _Recent(self._new_series)

    def note(self, occurrence: Occurrence) -> tuple[Occurrence, Series] | None:
        """Count `occurrence` and return the series it belongs to with the identity of that series, or None when it is one too many."""
        identity = self._identity(occurrence)
        if not self._buckets.entry(occurrence.regarding).take(self._clock.monotonic()):
            return None
        series = self._series.entry(identity)
        series.count += 1
        series.last = self._clock.now()
        series.message = occurrence.message
        if identity is not occurrence:
            series.message = truncated(_COMBINED + occurrence.message)
        return identity, series

    def forget(self, identity: Occurrence) -> None:
        """Let the next occurrence begin a new series: the Event is gone, or was never stored."""
        self._series.drop(identity)

    def _identity(self, occurrence: Occurrence) -> Occurrence:
        """Return the occurrence itself, or one without message that stands for many which differ in nothing else."""
        similar = self._similar.entry((occurrence.regarding, occurrence.type, occurrence.reason))
        now = self._clock.monotonic()
        if now - similar.last_at > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last_at = now
        if occurrence.message in similar.messages:
            return occurrence
        if len(similar.messages) >= MAX_SIMILAR:
            return occurrence._replace(message="")
        similar.messages.add(occurrence.message)
        return occurrence

    def _new_series(self) -> Series:
        now = self._clock.now()
        return Series(count=0, first=now, last=now, message="")


class _Recent(Generic[K, V]):
    """A mapping that makes what is missing and forgets what was not used for longest."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._entries: OrderedDict[K, V] = OrderedDict()

    def entry(self, key: K) -> V:
        if key not in self._entries:
            self._entries[key] = self._make()
            if len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        return self._entries[key]

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)
