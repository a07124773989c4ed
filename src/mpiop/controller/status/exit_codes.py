"""Exit codes in words."""

from signal import Signals
from typing import Final

_KNOWN: Final = {126: "the command is not executable", 127: "command not found", 255: "the code of a failed ssh"}
_SIGNAL_BASE: Final = 128


def in_words(code: object) -> str:
    """Return the exit code and what it means, if it has a meaning: `exit code 139 (SIGSEGV)`."""
    meaning = _meaning(code) if isinstance(code, int) else ""
    return f"exit code {code}" + (f" ({meaning})" if meaning else "")


def _meaning(code: int) -> str:
    """Return what shells and the container runtime mean with `code`; "" when it is the program's own. Source: POSIX sh, 2.8.2."""
    if code in _KNOWN:
        return _KNOWN[code]
    known = {signal.value: signal.name for signal in Signals}
    return known.get(code - _SIGNAL_BASE, "")
