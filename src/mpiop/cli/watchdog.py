"""Notices, from a thread of its own, that the event loop does not run, and logs where it hangs."""

import asyncio
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Final, NamedTuple, Never

import structlog

_BEAT_SECONDS: Final = 0.5
_BLOCKED_SECONDS: Final = 3.0
_log = structlog.get_logger(__name__)


class _Beat(NamedTuple):
    at: float
    waited: float
    """Seconds for which the loop's thread was ready to run, but no processor was free, since it started."""


class Watchdog:
    """Watches the event loop that `run` runs on, which must be in the main thread.

    Ending a blocked leader is not its business: the elector does that by comparing times, before the next write.
    """

    def __init__(self) -> None:
        """Start watching with `run`."""
        self._beat = _Beat(time.monotonic(), 0)
        self._stopped = threading.Event()

    async def run(self) -> Never:
        """Beat until cancelled."""
        native_id = threading.get_native_id()
        thread = threading.Thread(target=self._watch, args=(threading.get_ident(), native_id), name="watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._beat = _Beat(time.monotonic(), _waited_seconds(native_id))
                await asyncio.sleep(_BEAT_SECONDS)
        finally:
            self._stopped.set()

    def _watch(self, watched_thread: int, native_id: int) -> None:
        reported: _Beat | None = None
        looked_at = time.monotonic()
        while not self._stopped.wait(_BEAT_SECONDS):
            now = time.monotonic()
            was_stopped_too = now - looked_at > 2 * _BEAT_SECONDS  # the whole process was stopped, or starved
            looked_at = now
            beat = self._beat
            if was_stopped_too or now - beat.at < _BLOCKED_SECONDS or beat is reported:
                continue
            reported = beat
            _report(now - beat.at, _waited_seconds(native_id) - beat.waited, watched_thread)


def _report(seconds: float, waited: float, watched_thread: int) -> None:
    if waited > seconds / 2:
        remedy = "raise the container's cpu request or limit"
        _log.warning(f"event loop gets no processor time: {remedy}", seconds=round(seconds, 1), waited=round(waited, 1))
        return
    frame = sys._current_frames().get(watched_thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented, in spite of its name
    stack = "".join(traceback.format_stack(frame)) if frame else ""
    _log.error("event loop is blocked", seconds=round(seconds, 1), stack=stack)


def _waited_seconds(native_id: int) -> float:
    """Return how long the thread has waited on a run queue (Linux, Documentation/scheduler/sched-stats); 0 if unknown."""
    try:
        _, waited_nanoseconds, _ = Path(f"/proc/self/task/{native_id}/schedstat").read_bytes().split()
    except (OSError, ValueError):
        return 0
    return int(waited_nanoseconds) / 1e9
