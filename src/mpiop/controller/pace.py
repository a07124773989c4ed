"""Writes that may wait for company are made at a bounded rate: not at once after the last one, and never lost.

The rate is bounded for each job, and for all of them together: when many jobs start at once, the API server has better things to do than to
store how many workers of each run by now.
"""

from typing import Final

from mpiop.clock import Clock
from mpiop.controller.recent import Recent
from mpiop.kube.objects import Key

_WINDOW_SECONDS: Final = 10.0
_FREE_WRITES: Final = 10
"""So many writes of all jobs within the window slow none down."""
_SECONDS_A_WRITE: Final = 0.2
_MOST_SECONDS: Final = 10.0
CALM_SECONDS: Final = 3.0
"""So long after nothing was told of it any more, a burst of jobs is over."""
COMPANY_SECONDS: Final = 5.0
"""For no longer a new job of a burst waits to be told of; most run by then."""
SETTLE_SECONDS: Final = 1.0
"""So long after pods have names, name servers know them; who asks for one too early is refused for up to 30 s."""


class Pace:
    """Remembers when something was last written for a job, by topic."""

    def __init__(self, interval_seconds: float, clock: Clock) -> None:
        """Allow one deferrable write per topic and job in each interval."""
        self._interval = interval_seconds
        self._clock = clock
        self._last: dict[Key, dict[str, float]] = {}
        self._first_asked: dict[Key, float] = {}
        self._named_since: dict[Key, float] = {}
        self._recent = Recent(_WINDOW_SECONDS)
        self._stirring: Key | None = None
        self._last_stir = self._last_stir_before = -CALM_SECONDS
        self._without_room: set[Key] = set()

    def remaining_seconds(self, key: Key, topic: str, interval_seconds: float = 0.0) -> float:
        """Return how long a deferrable write should still wait, for `interval_seconds` where that is longer; 0 when it may go."""
        last = self._last.get(key, {}).get(topic)
        if last is None:
            return 0.0
        now = self._clock.monotonic()
        return max(0.0, last + max(self._interval, interval_seconds, self._crowd_seconds(now)) - now)

    def company_seconds(self, key: Key) -> float:
        """Return for how long the first word about a job should wait for more to tell, from when this is first asked; 0 in no crowd."""
        now = self._clock.monotonic()
        since = self._first_asked.setdefault(key, now)
        return max(0.0, since + COMPANY_SECONDS - now) if self._crowd_seconds(now) > 0 else 0.0

    def settles(self, key: Key, *, has_names: bool) -> None:
        """Note whether the pods of a job, whose launcher waits to be told, have their names by now."""
        if has_names:
            self._named_since.setdefault(key, self._clock.monotonic())
        else:
            self._named_since.pop(key, None)

    def settling_seconds(self, key: Key) -> float:
        """Return for how long that launcher should still not ask for them."""
        now = self._clock.monotonic()
        return max(0.0, self._named_since.get(key, now) + SETTLE_SECONDS - now)

    def wrote(self, key: Key, topic: str) -> None:
        """Note a write of that topic, deferrable or not."""
        now = self._clock.monotonic()
        self._last.setdefault(key, {})[topic] = now
        self._recent.note(now)

    def stirs(self, key: Key) -> None:
        """Note that the job gets on: objects of it are being made, it runs, or it has ended."""
        if key != self._stirring:
            self._stirring, self._last_stir_before = key, self._last_stir
        self._last_stir = self._clock.monotonic()

    def needs_room(self, key: Key, *, is_needed: bool) -> None:
        """Note whether pods of that job find no room on the nodes."""
        (self._without_room.add if is_needed else self._without_room.discard)(key)

    def bustle_seconds(self, key: Key) -> float:
        """Return for how long what may wait for other jobs should wait; 0 when no other gets on, or one needs room."""
        if self._without_room:
            return 0.0
        last = self._last_stir_before if key == self._stirring else self._last_stir
        return max(0.0, last + CALM_SECONDS - self._clock.monotonic())

    def forget(self, key: Key) -> None:
        """Drop what is known of a job that is gone."""
        self._last.pop(key, None)
        self._first_asked.pop(key, None)
        self._named_since.pop(key, None)
        self._without_room.discard(key)

    def _crowd_seconds(self, now: float) -> float:
        """Return how far apart the writes of a job should be for the sake of all the others."""
        return min(_MOST_SECONDS, (self._recent.count(now) - _FREE_WRITES) * _SECONDS_A_WRITE)
