"""Time as an input: the time of day, and the time since an event."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Source of time; waiting itself is `asyncio.sleep`, which tests run in virtual time."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC; for time stamps that people read, never for measuring."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point; never goes back, and counts suspended time too."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on CLOCK_BOOTTIME: a lease runs on while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def format_time(moment: datetime) -> str:
    """Render `moment` (aware) as the RFC 3339 seconds that Kubernetes' `metav1.Time` uses."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time stamp (seconds or microseconds) into an aware datetime.

    Raises:
        ValueError: `text` is not a valid time stamp.
    """
    return datetime.fromisoformat(text)
