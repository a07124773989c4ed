"""What the demo prints: numbered steps, lines with the time since its begin, and one sentence when it fails."""

import sys
import threading
import time

from pacing.forecast import Forecast
from pacing.pace import in_words


class DemoError(Exception):
    """The demo cannot continue; the message is one sentence that states what happened and what to do."""


class Screen:
    """Standard output, line by line; may be written to from several threads."""

    def __init__(self, steps: int, forecast: Forecast | None = None) -> None:
        """Expect `steps` steps, those of `forecast` if there is one; the time is counted from now."""
        self._began = self._step_began = time.monotonic()
        self._steps = steps
        self._forecast = forecast
        self._step = 0
        self._lock = threading.Lock()
        self._bold, self._plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began

    def step(self, title: str) -> None:
        """Begin the next step."""
        self.finish()
        self._step += 1
        left = f"; {in_words(self._forecast.left_seconds())} left" if self._forecast else ""
        self.say(f"\n{self._bold}== {self._step}/{self._steps} {title} ({self.elapsed_seconds:.0f} s{left}){self._plain}")

    def finish(self) -> None:
        """End the last step."""
        now = time.monotonic()
        if self._forecast and self._step:
            self._forecast.done(now - self._step_began)
        self._step_began = now

    def line(self, text: str) -> None:
        """Print `text` with the time."""
        self.say(f"   {self.elapsed_seconds:6.1f} s  {text}")

    def block(self, text: str) -> None:
        """Print the output of a command, indented."""
        self.say("\n".join(f"   {line}" for line in text.rstrip().splitlines()))

    def say(self, text: str) -> None:
        """Print a line as it is."""
        with self._lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
