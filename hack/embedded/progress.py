"""What the user sees while something takes long: a live line on a terminal, plain lines elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

Left = str | Callable[[], str]
"""What is left, in words, or what returns that."""
REFRESH_SECONDS = 0.2
CLEAR = "\r\033[K"


class Progress:
    """Counts the steps of one command."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to `stream`; the default is the standard error."""
        self._total = 0
        self._done = 0
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    def expect(self, steps: int) -> None:
        """Count `steps` more to come."""
        self._total += steps

    @contextlib.contextmanager
    def step(self, name: str, left: "Left" = "") -> Iterator["Step"]:
        """Show that `name` is under way, and what is `left` of it; the step that is yielded takes news of that."""
        self._done += 1
        step = Step(f"[{self._done}/{self._total}] {name}", left, self._stream, live=self._live)
        drawer = threading.Thread(target=step.draw, daemon=True)
        if self._live:
            drawer.start()
        outcome = " — failed"
        try:
            yield step
            outcome = ""
        finally:
            step.over.set()
            if self._live:
                drawer.join()
            self._stream.write(f"{CLEAR if self._live else ''}{step.label} {step.elapsed_seconds:.1f} s{outcome}\n")
            self._stream.flush()

    def say(self, sentence: str) -> None:
        """Write a line of its own."""
        self._stream.write(f"{sentence}\n")
        self._stream.flush()


class Step:
    """One step under way."""

    def __init__(self, label: str, left: "Left", stream: TextIO, *, live: bool) -> None:
        """Begin now; without a live line report it, if there is something to wait for."""
        self.label = label
        self.over = threading.Event()
        self._began = time.monotonic()
        self._stream = stream
        self._live = live
        self.now_left(left)

    @property
    def elapsed_seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self._began

    def now_left(self, left: "Left") -> None:
        """Show that only `left` is to be waited for; a function is asked again whenever the line is drawn."""
        self._left = left
        if not self._live and (words := self._words()):
            self._stream.write(f"{self.label} … {self.elapsed_seconds:.0f} s{words}\n")
            self._stream.flush()

    def draw(self) -> None:
        """Redraw the live line until the step is over."""
        while not self.over.wait(REFRESH_SECONDS):
            self._stream.write(f"{CLEAR}{self.label} … {self.elapsed_seconds:.0f} s{self._words()}")
            self._stream.flush()

    def _words(self) -> str:
        left = self._left if isinstance(self._left, str) else self._left()
        return f"; left: {left}" if left else ""
