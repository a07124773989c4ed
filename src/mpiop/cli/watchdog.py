"""Notices, from a thread of its own, that the event loop does not run, and logs where it hangs."""

import asyncio
import sys
import threading
import time
import traceback
from typing import Final, Never

import structlog

_BEAT_SECONDS: Final = 0.5
_BLOCKED_SECONDS: Final = 3.0
_log = structlog.get_logger(__name__)


class Watchdog:
    """Watches the event loop that `run` runs on, which must be in the main thread.

    Ending a blocked leader is not its business: the elector does that by comparing times, before the next write.
    """

    def __init__(self) -> None:
        """Start watching with `run`."""
        self._beat_at = time.monotonic()
        self._stopped = threading.Event()

    async def run(self) -> Never:
        """Beat until cancelled."""
        thread = threading.Thread(target=self._watch, args=(threading.get_ident(),), name="watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._beat_at = time.monotonic()
                await asyncio.sleep(_BEAT_SECONDS)
        finally:
            self._stopped.set()

    def _watch(self, watched_thread: int) -> None:
        reported_beat = 0.0
        looked_at = time.monotonic()
        while not self._stopped.wait(_BEAT_SECONDS):
            now = time.monotonic()
            was_stopped_too = now - looked_at > 2 * _BEAT_SECONDS  # the whole process was stopped, or starved
            looked_at = now
            beat_at = self._beat_at
            if was_stopped_too or now - beat_at < _BLOCKED_SECONDS or beat_at == reported_beat:
                continue
            reported_beat = beat_at
            frame = sys._current_frames().get(watched_thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented, in spite of its name
            stack = "".join(traceback.format_stack(frame)) if frame else ""
            _log.error("event loop is blocked", seconds=round(now - beat_at, 1), stack=stack)
