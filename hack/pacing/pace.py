"""How fast this machine is, compared with the one on which the seconds in our tables were measured."""

import os
import time
import zlib

REFERENCE_SECONDS = 0.31
"""Processor time of `_sample` on that machine, which has two cores."""
REFERENCE_CORES = 2
_REPEATS = 3
_SOON_SECONDS = 5.0
_LONG_SECONDS = 100.0


def measured_pace() -> float:
    """Return how many seconds here are one second in our tables, for work that uses all cores; takes a second to find out.

    Processor time is measured, so other programs do not count; what they cost shows when the first work is done.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_sample() for _ in range(_REPEATS)) / REFERENCE_SECONDS * REFERENCE_CORES / cores


def _sample() -> float:
    """Return the processor time of a piece of work that is the same everywhere."""
    data = b" ".join(str(number * number).encode() for number in range(400_000))
    begun = time.process_time()
    zlib.compress(data, 6)
    return time.process_time() - begun


def in_words(seconds: float) -> str:
    """Return a time that is left, as exact as an estimate is: `about 40 s`, `about 7 min`."""
    if seconds < _SOON_SECONDS:
        return "a few seconds"
    if seconds < _LONG_SECONDS:
        return f"about {5 * max(1, round(seconds / 5))} s"
    return f"about {round(seconds / 60)} min"
