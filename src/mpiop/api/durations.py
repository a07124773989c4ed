"""Durations as users read and write them, such as 90m or 1d12h."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

_UNIT_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART: Final = re.compile("([0-9]{1,9})([smhd])")
_MOST_CHARACTERS: Final = 64


def parse_duration(text: str) -> int | None:
    """Return the seconds of a duration such as 90m or 1d12h; None if it is none."""
    parts = _PART.findall(text) if len(text) <= _MOST_CHARACTERS else ()
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def format_duration(duration: timedelta) -> str:
    """Render `duration` as kubectl does: the two largest units that matter, for example `35s`, `5m3s`, `2h5m`, `3d4h`."""
    seconds = max(0, round(duration.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    pairs = ((days, "d", hours % 24, "h"), (hours, "h", minutes % 60, "m"), (minutes, "m", seconds % 60, "s"))
    for large, unit, small, smaller_unit in pairs:
        if large:
            return f"{large}{unit}" + (f"{small}{smaller_unit}" if small else "")
    return f"{seconds}s"
