"""The rank that `mpirun` puts before what it passes on, and the whole lines of each rank."""

import re
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mpiop.api.mpi_implementations import Implementation
from mpiop.client.logs import MOST_BYTES

_MOST_HELD: Final = 100
_MOST_TAGS: Final = 10_000
_MOST_BEGUN_BYTES: Final = 64 * 2**20
_BEGUN_BYTES: Final = 1000
"""What an unfinished line counts for besides its text."""
_LOST: Final = (
    "mpirun dropped output: it keeps {limit} bytes of what it passes on at once, and the tags of short lines fill them; "
    "run the job with --no-tag (is_tagged=False)"
)
_ANYWHERE: Final = re.compile(r"\[[^\[\]\s]+\](?:<(?:stdout|stderr)>:)?\s?")


class Tagged(NamedTuple):
    """A line and its rank; None for a line of `mpirun` itself."""

    rank: int | None
    text: bytes


class _Tag(NamedTuple):
    """A tag that was seen. `stream` is what follows its rank; `others` finds the same tag with any rank."""

    text: bytes
    rank: int
    stream: bytes
    others: re.Pattern[bytes]


class RankLines:
    """Joins the pieces of each rank into whole lines.

    `mpirun` reads a piece of a rank's output, of any size, and passes it on with a tag before it and before each further line in it. So
    a line of the log may have pieces of several ranks, and a line of a rank may be spread over several lines of the log:

        [1,0]<stdout>:ab[1,1]<stdout>:cd    `ab` begins a line of rank 0; `cd` ends one of rank 1
        [1,0]<stdout>:ef                    `ef` ends the line `abef` of rank 0

    Within a line, only text that equals the line's first tag, apart from the rank, counts as a tag. Such text directly after a tag is
    the program's own, because no piece is empty. Elsewhere the program's own text cannot be distinguished from a tag that it equals.

    It warns once if `mpirun` dropped output (`Implementation.tag_limit`).
    """

    def __init__(self, library: Implementation | None) -> None:
        """Begin a log; without a `library` it has no tags."""
        self._tag = re.compile(library.tag.encode()) if library else None
        self._line_tag = re.compile(library.line_tag.encode()) if library and library.line_tag else None
        self._gap = library.tag_gap.encode() if library else b""
        self._is_gap_known = not self._gap
        self._limit = library.tag_limit if library else 0
        self._streaks: dict[bytes, _Streak] = {}
        self._tags: dict[bytes, _Tag] = {}
        self._held: list[tuple[_Tag, bytes]] = []
        self._begun: dict[_Tag, bytearray] = {}
        self._begun_bytes = 0
        self._has_lost = False

    def add(self, line: bytes) -> Iterable[Tagged]:
        """Take a line of the log, and return the lines that end in it.

        Until a line shows whether the library puts a gap after a tag, those that begin with more than one are held back.
        """
        if self._tag is None:
            return (Tagged(None, line),)
        found = self._tag.match(line)
        if found is None:
            return self._without_tag(self._tag, line)
        tag = self._tags.get(found[0]) or self._learn(found)
        if not self._is_gap_known:
            self._held.append((tag, line))
            self._is_gap_known = self._shows_gap(line[len(tag.text) :])
            return self._release() if self._is_gap_known or len(self._held) == _MOST_HELD else ()
        return self._split(tag, line)

    def rest(self) -> Iterable[Tagged]:
        """Return what is left at the end of the log: lines that were held back, and those without an end."""
        return [*self._release(), *self._without_end()]

    def _without_end(self) -> Iterable[Tagged]:
        whole = [Tagged(tag.rank, bytes(text)) for tag, text in self._begun.items()]
        self._begun.clear()
        self._begun_bytes = 0
        return whole

    def _learn(self, found: re.Match[bytes]) -> _Tag:
        text, (start, end) = found[0], found.span("rank")
        job, stream = text[: start - found.start()], text[end - found.start() :]
        if len(self._tags) == _MOST_TAGS:
            self._tags.clear()
        others = _others(job, stream)
        return self._tags.setdefault(text, _Tag(text, int(found["rank"]), stream, others))

    def _shows_gap(self, text: bytes) -> bool:
        """Return whether a line without its tag shows if there is a gap. One could be the program's, but few lines begin so."""
        if not text.startswith(self._gap):
            self._gap = b""
            return True
        return not text.startswith(self._gap * 2)

    def _release(self) -> Iterable[Tagged]:
        if not self._is_gap_known:
            self._gap, self._is_gap_known = b"", True
        held, self._held = self._held, []
        return [whole for tag, line in held for whole in self._split(tag, line)]

    def whole(self, lines: Iterable[bytes]) -> Iterator[Tagged]:
        """Take all lines of the log, and yield whole ones."""
        for line in lines:
            yield from self.add(line)
        yield from self.rest()

    def _without_tag(self, pattern: re.Pattern[bytes], line: bytes) -> Iterable[Tagged]:
        if self._line_tag and (found := self._line_tag.match(line)):
            return (Tagged(int(found["rank"]), line[found.end() :]),)
        if self._limit and (found := pattern.search(line)) and any(tag.startswith(line[: found.start()]) for tag in self._tags):
            self._warn()  # the piece before was cut within a tag
            return self.add(line[found.start() :])
        return (Tagged(None, line),)

    def _warn(self) -> None:
        if not self._has_lost:
            self._has_lost = True
            warnings.warn(_LOST.format(limit=self._limit), stacklevel=2)

    def _split(self, tag: _Tag, line: bytes) -> Iterable[Tagged]:
        streak = self._streak(tag) if self._limit else None
        start = self._after_gap(line, len(tag.text))
        whole: list[Tagged] = []
        if line.find(tag.stream, start) >= 0:
            tag, start = self._take_pieces(tag, line, start, whole)
        if streak is not None:
            streak.end += len(line) + 1
        whole.append(self._ended(tag, line[start:]))
        return whole

    def _take_pieces(self, tag: _Tag, line: bytes, start: int, whole: list[Tagged]) -> tuple[_Tag, int]:
        """Take the pieces of a line but for the last, and return the tag of that and where its text starts."""
        after = start
        while found := tag.others.search(line, after):
            streak = self._streaks.get(tag.stream)
            is_cut = streak is not None and streak.is_cut(found.start(), self._limit)
            if found.start() == start and not is_cut:
                after += 1
                continue
            self._take_piece(tag, line[start : found.start()], whole, is_cut=is_cut)
            tag = self._tags.get(found[0]) or self._learn(found)
            start = after = self._after_gap(line, found.end())
            if streak is not None:
                streak.restart_at(tag, found.start())
        return tag, start

    def _take_piece(self, tag: _Tag, piece: bytes, whole: list[Tagged], *, is_cut: bool) -> None:
        """Keep the beginning of a line; where `mpirun` dropped what follows, or too much is kept, it is one of the `whole` lines."""
        if is_cut:
            self._warn()
            if piece or tag in self._begun:
                whole.append(self._ended(tag, piece))
            return
        begun = self._begun.get(tag)
        if begun is None:
            begun = self._begun[tag] = bytearray()
            self._begun_bytes += _BEGUN_BYTES
        kept = piece[: MOST_BYTES - len(begun)]
        begun += kept
        self._begun_bytes += len(kept)
        if self._begun_bytes > _MOST_BEGUN_BYTES:
            whole += self._without_end()

    def _ended(self, tag: _Tag, text: bytes) -> Tagged:
        if self._begun and (begun := self._begun.pop(tag, None)) is not None:
            self._begun_bytes -= _BEGUN_BYTES + len(begun)
            text = bytes(begun + text[: MOST_BYTES - len(begun)])
        return Tagged(tag.rank, text)

    def _after_gap(self, line: bytes, start: int) -> int:
        if not self._gap:
            return start
        if line.startswith(self._gap, start):
            return start + len(self._gap)
        self._gap = b""  # the lines before began with a gap of their own
        return start

    def _streak(self, tag: _Tag) -> "_Streak":
        streak = self._streaks.get(tag.stream) or self._streaks.setdefault(tag.stream, _Streak(tag))
        streak.add_line(tag)
        return streak


class _Streak:
    """Tagged lines of one rank that follow one another in a stream; `end` is where the last one ends, in bytes."""

    def __init__(self, tag: _Tag) -> None:
        self._tag = tag
        self._starts = deque[int](maxlen=1000)
        self.end = 0

    def add_line(self, tag: _Tag) -> None:
        """Begin a line."""
        if tag != self._tag:
            self._tag = tag
            self._starts.clear()
        self._starts.append(self.end)

    def restart_at(self, tag: _Tag, at: int) -> None:
        """Begin a piece `at` bytes after the beginning of the line."""
        self._tag = tag
        self._starts.clear()
        self._starts.append(self.end + at)

    def is_cut(self, at: int, limit: int) -> bool:
        """Return whether the piece that ends `at` bytes after the beginning of the line is as long as `limit`, mostly by its tags.

        Open MPI 4 counts the tags that it adds, so it drops output only where short lines fill its buffer with tags.
        """
        begin = self.end + at - limit
        return begin in self._starts and sum(start >= begin for start in self._starts) * len(self._tag.text) > limit // 2


@lru_cache(maxsize=100)
def _others(job: bytes, stream: bytes) -> re.Pattern[bytes]:
    """Return what finds the tags of any rank in a stream."""
    return re.compile(re.escape(job) + rb"(?P<rank>\d{1,9})" + re.escape(stream))


def without_tags(line: str) -> str:
    """Return a line without any tag, also amid it: Open MPI 4 tags each piece that it passes on, and a piece may begin within a line."""
    return _ANYWHERE.sub("", line)
