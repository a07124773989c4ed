"""The back-off of a reflector."""

import math
import random

from mpiop.backoff import REFLECTOR

HEALTHY_SECONDS = 120.0
"""After so long without a failure the next one counts as the first."""


class ReflectorBackoff:
    """Counts the failures of a reflector, and forgets them after a healthy time."""

    def __init__(self, chance: random.Random) -> None:
        """Take the jitter from `chance`."""
        self._chance = chance
        self._failures = 0
        self._healthy_at = self._forgivable_at = -math.inf

    def delay(self, now: float) -> float:
        """Count a failure at `now` (monotonic) and return the seconds to wait."""
        if now >= self._healthy_at:
            self._failures = 0
        seconds = REFLECTOR.delay_seconds(self._failures, self._chance.random())
        self._failures += 1
        self._healthy_at = now + seconds + HEALTHY_SECONDS
        return seconds

    def shortest_delay(self) -> float:
        """Return the delay after an attempt that made progress, which does not grow."""
        return REFLECTOR.delay_seconds(0, self._chance.random())

    def forgive(self, now: float) -> None:
        """Reset the back-off at `now`, because the server answers again; at most once in two minutes, since it may fail again."""
        if now >= self._forgivable_at:
            self._failures = 0
            self._forgivable_at = now + HEALTHY_SECONDS
