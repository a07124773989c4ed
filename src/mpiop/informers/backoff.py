"""How long a reflector waits after a failure."""

import math
import random

INITIAL_SECONDS = 0.8
CAP_SECONDS = 30.0
FACTOR = 2.0
HEALTHY_SECONDS = 120.0
"""After so long without a failure the next one counts as the first."""


class Backoff:
    """Growing delays with chance in them, so that many clients of a server that comes back do not come all at once."""

    def __init__(self, chance: random.Random) -> None:
        """Draw from `chance`."""
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
        """Return the seconds to wait where each try gets on a little, so that the delay need not grow: 0.8 s to 1.6 s."""
        return INITIAL_SECONDS * (1.0 + self._chance.random())

    def forgive(self, now: float) -> None:
        """Begin anew at `now`, since the server answers again; at most once in two minutes, for it may be about to go again."""
        if now >= self._forgivable_at:
            self._base_seconds = INITIAL_SECONDS
            self._forgivable_at = now + HEALTHY_SECONDS
