"""The page docs/failed-jobs.md: what users see of each job of `e2e.ends`, as rows that a test compares with what is shown.

In a row, `…` matches any text, and the job is called pi.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from e2e.clusters import ROOT
from e2e.ends import End
from e2e.kubectl import Kubectl
from e2e.plugin import Tool

PAGE: Final = ROOT / "docs" / "failed-jobs.md"
SHOWN: Final = ROOT / "build" / "e2e" / "failed-jobs.md"
"""What the last run has shown, as rows of the page."""
SAME: Final = "the same"
"""Instead of a text: what `kubectl mpi why` begins with is the message."""
UNKNOWN: Final = "the launcher failed with "
"""How the message begins if the operator knows only the exit code."""


class Shown(NamedTuple):
    """What a user sees of a failed job: its STATE, its MESSAGE and the first line of `kubectl mpi why`, as text or as a pattern."""

    state: str
    message: str
    why: str

    def fits(self, pattern: "Shown") -> bool:
        """Return whether this is what a row of the page has."""
        return all(map(is_like, self, pattern))


class Row(NamedTuple):
    """A row of the page; several libraries may show the same."""

    planted: str
    libraries: tuple[str, ...]
    pattern: Shown


def rows() -> Iterator[Row]:
    """Yield the rows of the page."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        planted, *cells = [cell.strip() for cell in line.split("|")[1:-1]] or [""]
        if cells and not planted.startswith(("planted", "--")):
            libraries, state, message, why = cells
            yield Row(planted, tuple(libraries.split(", ")), Shown(state, message, message if why == SAME else why))


def row_of(end: End) -> Row:
    """Return the row of a job.

    Raises:
        ValueError: The page has none, or several.
    """
    [row] = [row for row in rows() if row.planted == end.planted and end.seen_with in row.libraries]
    return row


def shown(end: End, here: Kubectl, tool: Tool) -> Shown:
    """Return what a failed job shows now."""
    heads, line = here.run("get", "mpijob", end.id, "--output=wide").splitlines()
    cells = {head: line[heads.index(head) :] for head in ("STATE", "MESSAGE")}
    why = tool.run("why", end.id).partition("\n")[0].removeprefix(f"Job {end.id} failed: ")
    texts = (cells["STATE"].split()[0], cells["MESSAGE"].strip(), why)
    return Shown(*(text.replace(end.id, "pi") for text in texts))


def is_like(text: str, pattern: str) -> bool:
    """Return whether the text is what the pattern has."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text) is not None


def record(end: End, found: Shown) -> None:
    """Write down what a job has shown, as a row of the page."""
    SHOWN.parent.mkdir(parents=True, exist_ok=True)
    cells = [end.planted, end.seen_with, *found]
    with SHOWN.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(cells)} |\n")
