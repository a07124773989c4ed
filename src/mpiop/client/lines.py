"""The lines of the launcher's log that carry a result or a traceback of a rank. This file travels to the ranks and makes them there.

A result is a pickle, and reading a pickle runs code. All that a program prints is in the same log, so each line has a digest made with the
key of its call (HMAC-SHA256), and a line without the right digest is ignored. The key itself is not in the log: who reads the log, or
chooses what a rank prints, cannot make a line that is read. The digest covers the run, the rank and the number of the piece too, so a line
that is repeated, moved or cut cannot pass for another.

It needs nothing but the standard library, and runs on Python 3.6 too, so that an image with an old Python can report its version.
"""

import base64
import hmac
from collections.abc import Iterator

RESULT = "result"
RAISED = "raised"
PIECE_LENGTH = 1000
"""Characters of base64 in a line. `mpirun` passes output on by 4 KiB, and kubelets cut lines at 16 KiB."""


def lines(key: bytes, kind: str, origin: str, content: bytes) -> "Iterator[str]":
    """Yield `content` in lines.

    Args:
        key: Of the call.
        kind: `RESULT` or `RAISED`.
        origin: `RUN:RANK/RANKS`. RUN is the same 16 hexadecimal digits for all ranks of a run of the launcher: it may run again, with other
            results.
        content: May have no bytes at all.
    """
    text = base64.b64encode(content).decode()
    pieces = [text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH)] or [""]
    for number, piece in enumerate(pieces, 1):
        signed = f"mpiop-{kind}:{origin}:{number}/{len(pieces)}:{piece}"
        yield f"{signed}:{digest(key, signed)}\n"


def digest(key: bytes, text: str) -> str:
    """Return 64 hexadecimal digits that only those who have the key can make."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()
