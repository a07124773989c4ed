"""How often something happened lately."""

from collections import deque


class Recent:
    """Counts what happened within the last seconds."""

    def __init__(self, seconds: float) -> None:
        """Count over so many seconds; nothing has happened yet."""
        self._seconds = seconds
        self._times = deque[float]()

    def note(self, now: float) -> None:
        """Note that it happened at `now`, which never goes back."""
        self._drop_old(now)
        self._times.append(now)

    def count(self, now: float) -> int:
        """Return how often it happened within the seconds before `now`."""
        self._drop_old(now)
        return len(self._times)

    def _drop_old(self, now: float) -> None:
        while self._times and self._times[0] <= now - self._seconds:
            self._times.popleft()
