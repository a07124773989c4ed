"""Writes that may wait for company are made at a bounded rate: not at once after the last one, and never lost."""

from mpiop.clock import Clock
from mpiop.kube.objects import Key


class Pace:
    """Remembers when something was last written for a job, by topic."""

    def __init__(self, interval_seconds: float, clock: Clock) -> None:
        """Allow one deferrable write per topic and job in each interval."""
        self._interval = interval_seconds
        self._clock = clock
        self._last: dict[Key, dict[str, float]] = {}

    def remaining_seconds(self, key: Key, topic: str) -> float:
        """Return how long a deferrable write should still wait; 0 when it may go."""
        last = self._last.get(key, {}).get(topic)
        return 0.0 if last is None else max(0.0, last + self._interval - self._clock.monotonic())

    def wrote(self, key: Key, topic: str) -> None:
        """Note a write of that topic, deferrable or not."""
        self._last.setdefault(key, {})[topic] = self._clock.monotonic()

    def forget(self, key: Key) -> None:
        """Drop what is known of a job that is gone."""
        self._last.pop(key, None)
