"""Text that a verb reads: a file, or standard input."""

import sys
from pathlib import Path

from mpiop.client.errors import InvalidError


def read_text(file: str) -> str:
    """Return the text of a file; `-` is standard input.

    Raises:
        InvalidError: It cannot be read, or is not UTF-8.
    """
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidError(f"{file}:{line}: no UTF-8") from error
