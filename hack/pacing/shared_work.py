"""Parts that are built next to each other on one machine: how long all of them still take."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_LEAST_LEFT = 0.05
"""Of a part that should be done and is not."""
_MOST = 4.0
_ENOUGH_SECONDS = 10.0
"""A shorter part does not show how fast the machine is."""


class SharedWork:
    """How long a number of parts still takes; threads may share it.

    Parts at work get equal shares of the machine. When one is done earlier or later than expected, the pace of all changes accordingly.

    Attributes:
        pace: How many seconds here are one second of the parts.
    """

    def __init__(self, seconds: Mapping[str, float], pace: float, now: Callable[[], float]) -> None:
        """Expect that each part takes so many seconds at pace 1, alone on the machine."""
        self.pace = pace
        self._seconds = dict(seconds)
        self._made = dict.fromkeys(seconds, 0.0)
        self._at_work: set[str] = set()
        self._now = now
        self._then = now()
        self._lock = threading.Lock()

    def begin(self, name: str) -> None:
        """Note that a part is at work."""
        with self._lock:
            self._advance()
            self._at_work.add(name)

    def done(self, name: str) -> None:
        """Note that a part is done; one that never was at work was done by somebody else."""
        with self._lock:
            self._advance()
            seconds, made = self._seconds.pop(name), self._made.pop(name)
            if name not in self._at_work:
                return
            self._at_work.remove(name)
            if seconds >= _ENOUGH_SECONDS:
                ratio = min(_MOST, max(1 / _MOST, made / seconds if made else 1.0))
                self.pace *= ratio
                self._made = {other: amount / ratio for other, amount in self._made.items()}

    def left_seconds(self) -> float:
        """Return how long the parts that are not done take."""
        with self._lock:
            self._advance()
            left = (max(seconds - self._made[name], _LEAST_LEFT * seconds) for name, seconds in self._seconds.items())
            return self.pace * sum(left)

    def _advance(self) -> None:
        now = self._now()
        for name in self._at_work:
            self._made[name] += (now - self._then) / self.pace / len(self._at_work)
        self._then = now


def recorded_pace(file: Path) -> float | None:
    """Return the pace that an earlier build left in a file; None if it left none."""
    try:
        pace = float(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return pace if pace > 0 else None


def record_pace(file: Path, pace: float) -> None:
    """Leave the pace of a build to the next one; it does without if that fails."""
    with suppress(OSError):
        file.write_text(f"{pace:.3f}\n", encoding="utf-8")
