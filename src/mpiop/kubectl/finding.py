"""What a check of `doctor` finds."""

from typing import Final, NamedTuple

OK: Final = "ok"
NOTE: Final = "note"
PROBLEM: Final = "problem"
UNKNOWN: Final = "unknown"
STYLES: Final = {OK: "green", NOTE: "yellow", PROBLEM: "red", UNKNOWN: "yellow"}
"""Each verdict, and how it is printed."""


class Finding(NamedTuple):
    """The result of a check: what was found, and what to do about it."""

    verdict: str
    text: str
    advice: str = ""
