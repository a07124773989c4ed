"""Other programs, run so that a failure can be understood."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from embedded import interrupts
from imaging.console import Console
from imaging.errors import ImagesError

_SHOWN_LINES = 25


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs programs; long ones write into a log file, whose end is shown when they fail.

    Attributes:
        logs: Folder of the log files.
        environment: Added to our own.
        kept_open: File descriptors that the programs get too: a lock is then held until the last of them has ended.
    """

    console: Console
    logs: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    kept_open: Sequence[int] = ()

    def succeeds(self, command: Sequence[str], *, timeout_seconds: float = 30) -> bool:
        """Return whether `command` exits with 0 in time; its output goes nowhere."""
        return self._ask(command, timeout_seconds) is not None

    def answer(self, command: Sequence[str], *, timeout_seconds: float = 30) -> str:
        """Return what `command` prints, without outer blanks; "" if it fails."""
        return self._ask(command, timeout_seconds) or ""

    def run(self, title: str, command: Sequence[str]) -> None:
        """Run `command` to its end, its output in the log `title`.

        Raises:
            ImagesError: It failed; the message has the end of the output and the log's path.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        path = self.logs / f"{title}.log"
        with path.open("w", encoding="utf-8") as log:
            code = self._stream(command, log.write)
        self.console.clear()
        if code != 0:
            tail = "\n".join(path.read_text("utf-8").splitlines()[-_SHOWN_LINES:])
            raise ImagesError(
                f"{title}: `{' '.join(command[:2])} …` failed with exit code {code}; it ended with:\n{tail}\nAll of it is in {path}"
            )

    def _stream(self, command: Sequence[str], write: Callable[[str], object]) -> int:
        process: subprocess.Popen[str] | None = None
        with ExitStack() as stack:
            try:
                with interrupts.deferred():  # a program that has been started but not yet been taken charge of would outlive us
                    process = stack.enter_context(
                        subprocess.Popen(
                            command,
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT,
                            text=True,
                            errors="replace",
                            env=self._environment(),
                            pass_fds=self.kept_open,
                        )
                    )
                for line in process.stdout or ():
                    write(line)
                    self.console.step(line)
            except KeyboardInterrupt:
                if process is not None:
                    process.terminate()
                raise
        return process.returncode

    def _ask(self, command: Sequence[str], timeout_seconds: float) -> str | None:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=False,
                timeout=timeout_seconds,
                env=self._environment(),
            )
        except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}
