"""Commands that tests run as users do, and what they printed."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

Ended = subprocess.CompletedProcess[str]


def ended(
    command: Sequence[str], environment: Mapping[str, str], *, stdin: str = "", folder: Path | None = None, timeout_seconds: float = 120
) -> Ended:
    """Run a command and return how it ended, without noise in what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_seconds,
        check=False,
    )
    return Ended(done.args, done.returncode, without_noise(done.stdout), without_noise(done.stderr))


def without_noise(output: str) -> str:
    """Return output without a warning of Open MPI: its ssh may run before it has put it into a process group, on a busy machine."""
    return "".join(line for line in output.splitlines(keepends=True) if ": Warning: setpgid(" not in line)
