"""Steps one after the other: what each took when it was last done here shows how long the rest takes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_ENOUGH_SECONDS = 5.0
"""Shorter steps do not show how fast the machine is today."""
_MOST = 4.0


class Forecast:
    """How long the steps of one run still take.

    A step is known by a name, which differs if it has more to do, such as `images` and `images, built`. What a step took is recorded for
    the next run. Where there is no record, `usual` counts, in seconds here. If steps take longer than recorded, so will the rest.
    """

    def __init__(self, usual: Mapping[str, float], record: Path) -> None:
        """Expect the steps of `usual`, in their order; `record` is a file, made when the first step is done."""
        self._record = record
        self._recorded = _read(record)
        self._expected = {name: self._recorded.get(name, seconds) for name, seconds in usual.items()}
        self._left = list(self._expected)
        self._known = {name for name in usual if name in self._recorded}
        self._done_seconds = self._done_expected = 0.0

    def left_seconds(self) -> float:
        """Return how long the steps that are not done take."""
        return self._ratio() * sum(self._expected[name] for name in self._left)

    def done(self, seconds: float) -> None:
        """Note that the next step took so long; a record that cannot be written is left out."""
        name = self._left.pop(0)
        if name in self._known:
            self._done_seconds += seconds
            self._done_expected += self._expected[name]
        self._recorded[name] = round(seconds, 1)
        with suppress(OSError):
            self._record.parent.mkdir(parents=True, exist_ok=True)
            self._record.write_text(json.dumps(self._recorded), encoding="utf-8")

    def _ratio(self) -> float:
        """Return how much slower this run is than the recorded one, within bounds.

        A guess that was wrong means nothing for other steps, and a step that was faster had less to do.
        """
        if self._done_expected < _ENOUGH_SECONDS:
            return 1.0
        return min(_MOST, max(1.0, self._done_seconds / self._done_expected))


def _read(record: Path) -> dict[str, float]:
    try:
        found: Any = json.loads(record.read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
