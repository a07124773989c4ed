"""The rank that `mpirun` puts before each line of output."""

import re
from typing import Final, NamedTuple

from mpiop.api.mpi_implementations import IMPLEMENTATIONS

_TAGS: Final = tuple(re.compile(tag) for tag in dict.fromkeys(row.tag for row in IMPLEMENTATIONS.values()))
_ANYWHERE: Final = re.compile(r"\[[^\[\]\s]+\](?:<(?:stdout|stderr)>:)?\s?")


class Tagged(NamedTuple):
    """A line and its rank; None for a line of `mpirun` itself."""

    rank: int | None
    text: str


def untagged(line: str) -> Tagged:
    """Split a line of a launcher's log into rank and text."""
    for tag in _TAGS:
        if found := tag.match(line):
            return Tagged(int(found["rank"]), line[found.end() :])
    return Tagged(None, line)


def without_tags(line: str) -> str:
    """Return a line without any tag, also amid it: Open MPI 4 tags each piece that it passes on, and a piece may begin within a line."""
    return _ANYWHERE.sub("", line)
