"""Whole lines of ranks, from what each library's `mpirun` makes of them."""

import random
import tracemalloc
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from mpiop.api.mpi_implementations import INTEL, MPICH, OPEN_MPI, Implementation
from mpiop.client.tags import RankLines

Log = list[tuple[int | None, str]]


def whole(library: Implementation | None, *lines: str) -> Log:
    return [(line.rank, line.text.decode()) for line in RankLines(library).whole(line.encode() for line in lines)]


@dataclass(frozen=True)
class Mpirun:
    """How an `mpirun` passes on output: measured with its real version, on a pipe and on a pseudo-terminal.

    Attributes:
        tag: With `{rank}`.
        reads: Most bytes that it reads at once.
        keeps: Most bytes that it writes of them, with all tags.
        joins: Whether it joins pieces itself, so that only the end of a rank's output can be within a line.
    """

    library: Implementation
    tag: str
    reads: int
    keeps: int = 2**30
    joins: bool = False

    def log(self, outputs: Sequence[bytes], *, flushes: bool, chance: random.Random) -> bytes:
        """Return its standard output if the ranks print `outputs`, block by block or also before a block is full."""
        pieces = [self._pieces(output, flushes=flushes, chance=chance) for output in outputs]
        written = bytearray()
        while waiting := [rank for rank, each in enumerate(pieces) if each]:
            rank = chance.choice(waiting)
            written += b"".join(self._tagged(pieces[rank].popleft(), self.tag.format(rank=rank).encode()))[: self.keeps]
        return bytes(written)

    def _pieces(self, output: bytes, *, flushes: bool, chance: random.Random) -> deque[bytes]:
        pieces: deque[bytes] = deque()
        start = 0
        while start < len(output):
            end = start + (chance.randrange(1, self.reads) if flushes else self.reads)
            if self.joins:
                end = output.find(b"\n", end) + 1 or len(output)
            pieces.append(output[start:end])
            start = end
        return pieces

    @staticmethod
    def _tagged(piece: bytes, tag: bytes) -> Iterator[bytes]:
        return (tag + line for line in piece.splitlines(keepends=True))


OPEN_MPI_4 = Mpirun(OPEN_MPI, "[1,{rank}]<stdout>:", 4096, 8192)
MPIRUNS = [
    pytest.param(OPEN_MPI_4, id="Open MPI 4"),
    pytest.param(Mpirun(OPEN_MPI, "[1,{rank}]<stdout>: ", 4096, joins=True), id="Open MPI 5"),
    pytest.param(Mpirun(MPICH, "[1,{rank}]<output>:", 65536), id="MPICH 4"),
    pytest.param(Mpirun(MPICH, "[1,{rank}]<output>:", 32768), id="MPICH 5"),
    pytest.param(Mpirun(INTEL, "[1,{rank}]<output>:", 16384), id="Intel MPI"),
]


def printed(rank: int, count: int, chance: random.Random, *, shortest: int = 9) -> list[bytes]:
    """Return lines that are empty, indented, coloured, not UTF-8, or similar to a tag."""
    starts = (b"", b"   ", b"\x1b[32m", b"\xff\xfe", b"x[1] = ", b"[0] ", b"[1,0] ", b"50%\r60%")
    return [b"rank %d: begins" % rank] + [
        chance.choice(starts) + b"%d.%d." % (rank, number) + b"z" * chance.randrange(shortest, 80) if number % 50 else b""
        for number in range(count)
    ]


def by_rank(library: Implementation, log: Iterable[bytes]) -> dict[int | None, list[bytes]]:
    found: dict[int | None, list[bytes]] = defaultdict(list)
    for line in RankLines(library).whole(log):
        found[line.rank].append(line.text)
    return found


@pytest.mark.parametrize("flushes", [False, True], ids=["blocks", "flushed"])
@pytest.mark.parametrize("mpirun", MPIRUNS)
def test_each_rank_has_the_lines_that_it_printed_byte_for_byte(mpirun: Mpirun, *, flushes: bool) -> None:
    chance = random.Random(1)  # noqa: S311
    lines = [printed(rank, 5_000, chance) for rank in (0, 1)]
    log = mpirun.log([b"\n".join(lines[0]) + b"\n", b"\n".join(lines[1])], flushes=flushes, chance=chance)
    assert by_rank(mpirun.library, log.removesuffix(b"\n").split(b"\n")) == {0: lines[0], 1: lines[1]}


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("library", "log", "lines"),
    [
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:a"], [(0, "a")], id="a line"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:1[1,1]<stdout>:a", "[1,0]<stdout>:2"], [(1, "a"), (0, "12")], id="pieces of two ranks"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:1[1,0]<stdout>:2[1,0]<stdout>:3"], [(0, "123")], id="one line in pieces"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:a[1,1]<stdout>:b"], [(1, "b"), (0, "a")], id="a rank's last line has no end"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:a[1,1]<stdout>:b", "[1,0]<stderr>:c"], [(1, "b"), (0, "c"), (0, "a")], id="another stream"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:[1,1]<stdout>:a"], [(0, "[1,1]<stdout>:a")], id="mpirun within mpirun"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:see [1,1]<stderr>:a"], [(0, "see [1,1]<stderr>:a")], id="text like another stream's tag"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:see [2,1]<stdout>:a"], [(0, "see [2,1]<stdout>:a")], id="text like another job's tag"),
        pytest.param(OPEN_MPI, ["[warning] a", "[1,0]<stdout>:b"], [(None, "[warning] a"), (0, "b")], id="a line of mpirun"),
        pytest.param(OPEN_MPI, ["[x-1@1,12]<stdout>: a"], [(12, "a")], id="Open MPI 5's longer name"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:   a", "[1,0]<stdout>:b"], [(0, "   a"), (0, "b")], id="4: an indented line is first"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:    a", "[1,0]<stdout>: b"], [(0, "   a"), (0, "b")], id="5: an indented line is first"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>:    a"], [(0, "    a")], id="no line shows the version"),
        pytest.param(OPEN_MPI, ["[1,0]<stdout>: ", "[1,0]<stdout>: b"], [(0, ""), (0, "b")], id="5: an empty line"),
        pytest.param(MPICH, ["[1,0]<output>:a[1] = 2"], [(0, "a[1] = 2")], id="Hydra: an index is no tag"),
        pytest.param(MPICH, ["[5] a", "[5] b[1] c"], [(5, "a"), (5, "b[1] c")], id="Hydra: a user's own -prepend-rank"),
        pytest.param(OPEN_MPI, [f"[1,{NINES}]<stdout>:a"], [(None, f"[1,{NINES}]<stdout>:a")], id="a number that no rank has"),
        pytest.param(OPEN_MPI, [f"[1,0]<stdout>:a[1,{NINES}]<stdout>:b"], [(0, f"a[1,{NINES}]<stdout>:b")], id="the same in a line"),
        pytest.param(MPICH, [f"[{NINES}] a"], [(None, f"[{NINES}] a")], id="Hydra: a number that no rank has"),
        pytest.param(INTEL, ["[1,7]<output>: a"], [(7, " a")], id="Hydra: a space is the program's"),
        pytest.param(None, ["[1,0]<stdout>:a"], [(None, "[1,0]<stdout>:a")], id="no tags"),
    ],
)
def test_lines_of_a_log(library: Implementation | None, log: list[str], lines: Log) -> None:
    assert whole(library, *log) == lines


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.tags.MOST_BYTES", 10)
    assert whole(OPEN_MPI, "[1,0]<stdout>:1234567" * 9, "[1,1]<stdout>:a") == [(0, "1234567123"), (1, "a")]


def test_tags_of_ever_new_ranks_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.tags._MOST_TAGS", 100, raising=False)
    monkeypatch.setattr("mpiop.client.tags._MOST_BEGUN_BYTES", 10**6, raising=False)
    lines = RankLines(OPEN_MPI)
    tracemalloc.start()
    try:
        ended = sum(len(list(lines.add(b"".join(b"[1,%d]<stdout>:a" % (at + rank) for rank in range(99))))) for at in range(0, 9900, 99))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ended + len(list(lines.rest())) == 9900
    assert most < 2 * 10**6


def test_indented_lines_are_not_held_back_for_ever() -> None:
    lines = RankLines(OPEN_MPI)
    assert sum(len(list(lines.add(b"[1,0]<stdout>:   indented"))) for _ in range(150)) == 150


@pytest.mark.parametrize("length", [2, 3, 5, 8, 12, 16, 40])
def test_it_warns_if_mpirun_drops_output_and_only_then(length: int) -> None:
    chance = random.Random(length)  # noqa: S311
    texts = [b"".join(b"%d\n" % chance.randrange(10 ** (length - 1), 10**length) for _ in range(5_000)) for _ in (0, 1)]
    log = OPEN_MPI_4.log(texts, flushes=False, chance=chance).removesuffix(b"\n").split(b"\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = by_rank(OPEN_MPI, log)
    is_whole = [b"\n".join(found[rank]) + b"\n" for rank in (0, 1)] == texts
    assert (is_whole, len(caught)) == ((True, 0) if length > 12 else (False, 1))
    assert all("run the job with --no-tag" in str(warning.message) for warning in caught)
