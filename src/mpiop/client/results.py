"""Results of ranks as lines of the launcher's log: a rank makes them, the caller collects them.

A result is a pickle, and reading a pickle runs code. All that a program prints is in the same log, so each line has a digest made with the
key of its call (HMAC-SHA256), and a line without the right digest is no result. The key itself is not in the log: who reads the log, or
chooses what a rank prints, cannot make a line that is read. The digest covers the run, the rank and the number of the piece too, so a line
that is repeated, moved or cut cannot pass for another.

This file travels to the ranks. It needs nothing but the standard library, and older Pythons can import it, to report their version.
"""

from __future__ import annotations  # for older Pythons

import base64
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

RESULT: Final = "result"
RAISED: Final = "raised"
PIECE_LENGTH: Final = 1000
"""Characters of base64 in a line. `mpirun` passes output on by 4 KiB, and kubelets cut lines at 16 KiB."""
_LINE: Final = re.compile(
    r"(mpiop-(result|raised):([0-9a-f]{16}):([0-9]{1,9})/([0-9]{1,9}):([0-9]{1,9})/([0-9]{1,9}):([A-Za-z0-9+/=]*)):([0-9a-f]{64})"
)
_MOST_NAMED: Final = 10
"""Ranks, and pieces of each, that a sentence names."""


@dataclass(frozen=True)
class Writer:
    """Makes the lines of a rank.

    Attributes:
        key: Of the call.
        run: The same 16 hexadecimal digits for all ranks: a launcher that failed may be started again, with other results.
        rank: Which one the lines are about.
        ranks: How many there are.
    """

    key: bytes
    run: str
    rank: int
    ranks: int

    def lines(self, kind: str, content: bytes) -> Iterator[str]:
        """Yield `content` in lines; `kind` is `RESULT` or `RAISED`."""
        text = base64.b64encode(content).decode()
        pieces = [text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH)] or [""]
        for number, piece in enumerate(pieces, 1):
            signed = f"mpiop-{kind}:{self.run}:{self.rank}/{self.ranks}:{number}/{len(pieces)}:{piece}"
            yield f"{signed}:{_digest(self.key, signed)}\n"


@dataclass
class Content:
    """The pieces that have arrived from a rank, by their numbers from 1 on."""

    count: int
    pieces: dict[int, str] = field(default_factory=dict)

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


@dataclass
class Run:
    """What has arrived from one run of the ranks: by rank its result, or what it raised."""

    ranks: int
    results: dict[int, Content] = field(default_factory=dict)
    raised: dict[int, Content] = field(default_factory=dict)

    @property
    def whole(self) -> dict[int, bytes]:
        """Return the results that are whole, by rank."""
        return {rank: whole for rank, content in sorted(self.results.items()) if (whole := content.whole) is not None}

    @property
    def missing(self) -> str:
        """Return what is missing, by rank."""
        whole = self.whole
        lacking = [rank for rank in range(self.ranks) if rank not in whole]
        named = [f"rank {rank} lacks {self.results[rank].missing if rank in self.results else 'all'}" for rank in lacking[:_MOST_NAMED]]
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
        if found is None or not hmac.compare_digest(_digest(self._key, found[1]), found[9]):
            return
        rank, ranks, number, count = map(int, found.group(4, 5, 6, 7))
        run = self._runs.setdefault(found[3], Run(ranks))
        contents = run.results if found[2] == RESULT else run.raised
        contents.setdefault(rank, Content(count)).pieces[number] = found[8]


def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:_MOST_NAMED])) + (", …" if len(numbers) > _MOST_NAMED else "")
