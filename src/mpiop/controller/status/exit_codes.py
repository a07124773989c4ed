"""Exit codes in words."""

from collections.abc import Mapping
from signal import Signals
from typing import Final

_MEANINGS: Final[Mapping[object, str]] = {
    126: "the command is not executable",
    127: "command not found",
    **{128 + signal.value: signal.name for signal in Signals},
    255: "the code of a failed ssh",
}
"""What shells and the container runtime mean with an exit code. Source: POSIX sh, 2.8.2."""


def in_words(code: object) -> str:
    """Return the exit code and what it means, if it has a meaning: `exit code 139 (SIGSEGV)`."""
    meaning = _MEANINGS.get(code) if isinstance(code, int) else None
    return f"exit code {code}" + (f" ({meaning})" if meaning else "")
