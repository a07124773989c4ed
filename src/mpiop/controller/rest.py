"""How long a job is left alone between two looks at it.

A look costs 4 to 8 µs a worker, and as it starts or ends there are several events a worker: one for each would be quadratic. Events
that come while the job rests are answered together by one look at the end of the rest, and the more jobs are being looked at the longer
each rests: in a crowd, the processor has better things to do. What does not come by the thousand ends the rest early: the user's word,
what the launcher does, and the last of the workers that are waited for.
"""

import asyncio
from typing import Final, NamedTuple

from mpiop.controller.recent import Recent
from mpiop.kube.objects import Key

USUAL_SECONDS: Final = 1.0
"""Counts are stored no more often, and what else the workers of a job do changes little."""
SECONDS_A_WORKER: Final = 0.001
"""Looks at one job thus take less than 1 % of a core."""
SECONDS_A_LOOK: Final = 0.02
"""For each look at any job within the last second."""
SHARE_IF_PRESSED: Final = 0.05
"""Of that time a job rests when somebody waits for an answer: what belongs together comes within 50 ms, and such news are few."""
MOST_SECONDS: Final = 3.0
"""So long rests a job that has ended, which has nothing to hurry for, and no other for longer."""
_GRAIN_SECONDS: Final = 0.001
"""A timer for less is not worth its while, and would fire beside the one that ends the rest."""


class _Until(NamedTuple):
    pressed: float
    whole: float
    has_ended: bool


class Rest:
    """Remembers until when each job rests; losing that is harmless."""

    def __init__(self) -> None:
        """Let no job rest yet."""
        self._until: dict[Key, _Until] = {}
        self._awaited: dict[Key, int] = {}
        self._missed: set[Key] = set()
        self._looks = Recent(1.0)

    def begin(self, key: Key, workers: int, awaited: int, *, has_ended: bool = False) -> None:
        """Let the job, which has so many workers and waits for `awaited` of them, rest from now on, for it is being looked at."""
        now = asyncio.get_running_loop().time()
        usual = USUAL_SECONDS + workers * SECONDS_A_WORKER + self._looks.count(now) * SECONDS_A_LOOK
        pressed, whole = (now + min(seconds, MOST_SECONDS) for seconds in (usual * SHARE_IF_PRESSED, MOST_SECONDS if has_ended else usual))
        self._until[key] = _Until(pressed, whole, has_ended)
        self._awaited[key] = awaited
        self._missed.discard(key)
        self._looks.note(now)

    def miss(self, key: Key) -> None:
        """Note that a look at the job came too early to see it: whatever comes of it next ends the rest, for the news was lost."""
        self._until.pop(key, None)
        self._missed.add(key)

    def was_missed(self, key: Key) -> bool:
        """Tell whether the last look at the job came too early."""
        return key in self._missed

    def has_ended(self, key: Key) -> bool:
        """Tell whether the job had ended when it was looked at last."""
        return key in self._until and self._until[key].has_ended

    def note_ready(self, key: Key) -> bool:
        """Note that one of the job's workers has become Ready, and tell whether it was the last that is waited for."""
        if left := self._awaited.get(key, 0):
            self._awaited[key] = left - 1
        return left == 1

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
        self._awaited.pop(key, None)
        self._missed.discard(key)
