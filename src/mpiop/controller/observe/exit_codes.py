"""Exit codes in words."""

from collections.abc import Mapping
from signal import Signals
from typing import Final

from mpiop.api.mpi_implementations import IMPLEMENTATIONS

_SIGNALS: Final[Mapping[object, str]] = {128 + signal.value: signal.name for signal in Signals if signal < Signals.SIGRTMIN}
"""Of a container whose main process a signal ended, or a shell in it. Source: POSIX sh, 2.8.2."""
_MEANINGS: Final[Mapping[object, str]] = {
    126: "the command is not executable",
    127: "command not found",
    255: "ssh or mpirun failed, or the program returned -1",
}
_OF_MPIRUN: Final[Mapping[object, str]] = {code: meaning for row in IMPLEMENTATIONS.values() for code, meaning in row.exit_codes.items()}


def in_words(code: object, *, of_mpirun: bool = False) -> str:
    """Return the exit code and what it means, if it has a meaning: `exit code 139 (SIGSEGV)`.

    Args:
        code: Of a container.
        of_mpirun: Whether it may be that of `mpirun`, which has codes of its own.
    """
    meaning = (_MEANINGS.get(code) or _SIGNALS.get(code)) if isinstance(code, int) else None
    if of_mpirun:
        meaning = _OF_MPIRUN.get(code, meaning)
    return f"exit code {code}" + (f" ({meaning})" if meaning else "")
