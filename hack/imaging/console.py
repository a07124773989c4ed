"""What the user sees, on standard error: one line for each thing done; on a terminal also the step at work."""

import shutil
import sys
from typing import TextIO


class Console:
    """Lines that stay, and on a terminal one line that is overwritten."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to `stream`, by default standard error as it is at this moment."""
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()

    def say(self, line: str) -> None:
        """Print `line` to stay."""
        self.clear()
        print(f"images: {line}", file=self._stream, flush=True)

    def step(self, line: str) -> None:
        """Show `line` until the next one, on a terminal only."""
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\033[K{'        ' + line.strip():.{width}}")
            self._stream.flush()

    def clear(self) -> None:
        """Take away what `step` showed."""
        if self._is_terminal:
            self._stream.write("\r\033[K")
