"""The back-off of a reflector."""

import math
import random

INITIAL_SECONDS = 0.8
CAP_SECONDS = 30.0
FACTOR = 2.0
HEALTHY_SECONDS = 120.0
"""After so long without a failure the next one counts as the first."""


class Backoff:
    """Exponential back-off with jitter, so that clients do not all reconnect at the same moment."""

    def __init__(self, chance: random.Random) -> None:
        """Take the jitter from `chance`."""
        self._chance = chance
        self._base_seconds = INITIAL_SECONDS
        self._healthy_at = self._forgivable_at = -math.inf

    def delay(self, now: float) -> float:
        """Return the seconds to wait at `now` (monotonic): 0.8 s, then twice as long each time up to 30 s, all times a number in [1, 2)."""
        if now >= self._healthy_at:
            self._base_seconds = INITIAL_SECONDS
        seconds = self._base_seconds * (1.0 + self._chance.random())
        self._base_seconds = min(self._base_seconds * FACTOR, CAP_SECONDS)
        self._healthy_at = now + seconds + HEALTHY_SECONDS
        return seconds

    def shortest_delay(self) -> float:
        """Return the delay after an attempt that made progress, which does not grow: 0.8 s to 1.6 s."""
        return INITIAL_SECONDS * (1.0 + self._chance.random())

    def forgive(self, now: float) -> None:
        """Reset the back-off at `now`, because the server answers again; at most once in two minutes, since it may fail again."""
        if now >= self._forgivable_at:
            self._base_seconds = INITIAL_SECONDS
            self._forgivable_at = now + HEALTHY_SECONDS
