"""How long a job is left alone between two looks at it.

A look costs 4 to 8 µs a worker, and as it starts or ends there are several events a worker: one for each would be quadratic. Events
that come while the job rests are answered together by one look at the end of the rest. A small job rests for less than people notice, and
the longer the more jobs are being looked at: in a crowd, the processor has better things to do. One that runs already has little to
hurry for, one that has ended nothing. What does not come by the thousand, the user's word and what the launcher does, ends the rest early.
"""

import asyncio
from typing import Final, NamedTuple

from mpiop.controller.recent import Recent
from mpiop.kube.objects import Key

LEAST_SECONDS: Final = 0.05
"""What comes within that time mostly belongs together: pods are made, started and ended a few at a time."""
SECONDS_A_WORKER: Final = 0.001
"""Looks at one job thus take less than 1 % of a core."""
SECONDS_A_WORKER_IF_PRESSED: Final = 0.0001
"""For who waits for an answer; such news are too few to take much of a core."""
SECONDS_A_LOOK: Final = 0.001
"""For each look at any job within the last second: 50 busy jobs thus get four a second each."""
RUNNING_SECONDS: Final = 1.0
"""At least so long rests a job that runs: counts are stored no more often, and what else its workers do changes little."""
MOST_SECONDS: Final = 3.0
_GRAIN_SECONDS: Final = 0.001
"""A timer for less is not worth its while, and would fire beside the one that ends the rest."""


class _Until(NamedTuple):
    pressed: float
    whole: float


class Rest:
    """Remembers until when each job rests; losing that is harmless."""

    def __init__(self) -> None:
        """Let no job rest yet."""
        self._until: dict[Key, _Until] = {}
        self._looks = Recent(1.0)

    def begin(self, key: Key, workers: int, at_least_seconds: float = 0.0) -> None:
        """Let the job, which has so many workers, rest from now on, for it is being looked at."""
        now = asyncio.get_running_loop().time()
        least = LEAST_SECONDS + self._looks.count(now) * SECONDS_A_LOOK
        whole = max(least + workers * SECONDS_A_WORKER, at_least_seconds)
        wished = _Until(least + workers * SECONDS_A_WORKER_IF_PRESSED, whole)
        self._until[key] = _Until(*(now + min(seconds, MOST_SECONDS) for seconds in wished))
        self._looks.note(now)

    def remaining_seconds(self, key: Key, *, is_pressing: bool = False) -> float:
        """Return how long the job still rests, or, if there `is_pressing` news of it, may go on to; 0 when it does not."""
        until = self._until.get(key)
        if until is None:
            return 0.0
        remaining = (until.pressed if is_pressing else until.whole) - asyncio.get_running_loop().time()
        return remaining if remaining > _GRAIN_SECONDS else 0.0

    def forget(self, key: Key) -> None:
        """Drop what is known of a job that is gone."""
        self._until.pop(key, None)
