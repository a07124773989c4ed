"""Text within the limits that the API server sets, and numbers in text that anybody may have written."""

import re
from typing import Final

MAX_MESSAGE_BYTES: Final = 1024
"""Of an Event's message (`corev1.Event` validation), and by custom of a condition's."""

_CUT: Final = "..."
_WHOLE: Final = re.compile("[0-9]{1,18}")


def whole_number(text: str) -> int | None:
    """Return the number that `text` is, in at most 18 ASCII digits, else None: `int` raises for 4,301 digits."""
    return int(text) if _WHOLE.fullmatch(text) else None


def truncated(text: str, max_bytes: int = MAX_MESSAGE_BYTES) -> str:
    """Return `text`, cut to at most `max_bytes` of UTF-8 with `...` at its end, never inside a character."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - len(_CUT)].decode("utf-8", "ignore") + _CUT
