"""Collects the results of ranks from the lines of the launcher's log (`lines`), of which some may be lost or damaged."""

import base64
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from mpiop.client.lines import RESULT, digest

_LINE: Final = re.compile(
    r"(mpiop-(result|raised):([0-9a-f]{16}):([0-9]{1,9})/([0-9]{1,9}):([0-9]{1,9})/([0-9]{1,9}):([A-Za-z0-9+/=]*)):([0-9a-f]{64})"
)
_PIECE: Final = re.compile("mpiop-(?:result|raised):|:[0-9a-f]{64}\\s*$")
MOST_NAMED: Final = 10
"""Ranks, and pieces of each, that a sentence names."""


@dataclass(slots=True)
class Content:
    """The pieces that have arrived from a rank, by their numbers from 1 on."""

    count: int
    pieces: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def whole(self) -> bytes | None:
        """Return the content; None if a piece is missing."""
        if len(self.pieces) < self.count:
            return None
        return base64.b64decode("".join(self.pieces[number] for number in range(1, self.count + 1)))

    @property
    def missing(self) -> str:
        """Return which pieces are missing."""
        numbers = [number for number in range(1, self.count + 1) if number not in self.pieces]
        return f"{len(numbers)} of {self.count} pieces ({_some(numbers)})"


@dataclass(slots=True)
class Run:
    """What has arrived from one run of the ranks: by rank its result, or what it raised."""

    ranks: int
    results: dict[int, Content] = field(default_factory=dict[int, Content])
    raised: dict[int, Content] = field(default_factory=dict[int, Content])

    @property
    def whole(self) -> dict[int, bytes]:
        """Return the results that are whole, by rank."""
        return {rank: whole for rank, content in sorted(self.results.items()) if (whole := content.whole) is not None}

    @property
    def missing(self) -> str:
        """Return what is missing, by rank."""
        whole = self.whole
        lacking = [rank for rank in range(self.ranks) if rank not in whole]
        named = [f"rank {rank} lacks {self.results[rank].missing if rank in self.results else 'all'}" for rank in lacking[:MOST_NAMED]]
        return ", ".join(named) + (f" and {len(lacking) - len(named)} more ranks" if len(lacking) > len(named) else "")


class Collector:
    """Collects the lines of a call. What has another key, or was damaged, is left out."""

    def __init__(self, key: bytes) -> None:
        """Collect the lines that were made with `key`."""
        self._key = key
        self._runs: dict[str, Run] = {}

    @property
    def runs(self) -> list[Run]:
        """Return what has arrived, in the order in which the runs began."""
        return list(self._runs.values())

    def add(self, line: str) -> None:
        """Take a line of the log."""
        found = _LINE.search(line)
        if found is None or not hmac.compare_digest(digest(self._key, found[1]), found[9]):
            return
        rank, ranks, number, count = map(int, found.group(4, 5, 6, 7))
        run = self._runs.setdefault(found[3], Run(ranks))
        contents = run.results if found[2] == RESULT else run.raised
        contents.setdefault(rank, Content(count)).pieces[number] = found[8]


def is_piece(line: str) -> bool:
    """Return whether a line has a piece of a result, be it damaged or of others."""
    return _PIECE.search(line) is not None


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:MOST_NAMED])) + (", …" if len(numbers) > MOST_NAMED else "")
