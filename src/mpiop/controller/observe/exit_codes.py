"""Exit codes in words."""

from collections.abc import Mapping
from signal import Signals
from typing import Final

_SIGNALS: Final[Mapping[object, str]] = {128 + signal.value: signal.name for signal in Signals if signal < Signals.SIGRTMIN}
"""Of a container whose main process a signal ended, or a shell in it. Source: POSIX sh, 2.8.2."""
_MEANINGS: Final[Mapping[object, str]] = {
    126: "the command is not executable",
    127: "command not found",
    255: "ssh or mpirun failed, or the program returned -1",
}
_OWN: Final = "mpirun could not start the program, or a signal ended a rank"
_OWN_CODES: Final = range(130, 136)
"""`mpirun` of Open MPI 4 ends with them if it cannot start a program, or a signal ended a rank. Source: orte/include/orte/constants.h."""


def in_words(code: object, *, of_mpirun: bool = False) -> str:
    """Return the exit code and what it means, if it has a meaning: `exit code 139 (SIGSEGV)`.

    Args:
        code: Of a container.
        of_mpirun: Whether it may be that of `mpirun`, which has codes of its own.
    """
    meaning = (_MEANINGS.get(code) or _SIGNALS.get(code)) if isinstance(code, int) else None
    if of_mpirun and code in _OWN_CODES:
        meaning = _OWN
    return f"exit code {code}" + (f" ({meaning})" if meaning else "")
