"""The table: each figure of both operators side by side, what is to be reached, and whether it was."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.results import FLOOR, OURS, REFERENCE, Result
from bench.samples import Ratio, ratio_of_medians
from bench.scenarios import find
from bench.steps import HOSTS, RANKS

BEGIN, END = "<!-- bench -->", "<!-- end of bench -->"
HEAD: Final = ("", "reference", "mpiop", "ratio", "goal", "")
_NOTE: Final = re.compile(r"(?m)^- ((?:[\w-]+ \(\d+ rounds?\)(?:, )?)+): (.*)\.$")
"""Scenarios and their conditions."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure.

    Attributes:
        form: How it is shown.
        most: The goal: it is not above that.
        most_ratio: The goal: by the reference it is not above that.
        base: Figure of the same operator that it is divided by, instead of the reference's; `ratio` and `most_ratio` count so.
        is_sum: Whether the sum of the rounds counts, out of the sum of `runs`, and not the median.
    """

    title: str
    scenario: str
    figure: str
    form: str
    most: float | None = None
    most_ratio: float | None = None
    base: str = ""
    is_sum: bool = False

    def values(self, result: Result, who: str) -> Sequence[float]:
        """Return what it was of `who`, in each round."""
        return result.values(who, self.figure)

    def ratio(self, result: Result) -> Ratio | None:
        """Return what the goal is about; None where there is nothing to divide by."""
        base = result.values(OURS, self.base) if self.base else self.values(result, REFERENCE)
        ours = self.values(result, OURS)
        return ratio_of_medians(ours, base) if base and ours and not self.is_sum else None

    def line(self, result: Result) -> Sequence[str]:
        """Return its cells."""
        ratio = self.ratio(result)
        span = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio else ""
        return (self.title, self._shown(result, REFERENCE), self._shown(result, OURS), span, self.goal(), self.verdict(result))

    def goal(self) -> str:
        """Render what is to be reached."""
        if self.is_sum:
            return f"{self.most:g} in {LEAST_RUNS} runs"
        if self.most is not None:
            return f"≤ {self.form.format(self.most)}"
        return f"ratio{f' to {self.base}' if self.base else ''} ≤ {self.most_ratio:g}" if self.most_ratio else ""

    def verdict(self, result: Result) -> str:
        """Return whether the goal was reached, in words; "" without a goal."""
        if self.most is None and self.most_ratio is None:
            return ""
        ratio = self.ratio(result)
        if self.most is not None:
            is_reached = self._total(result) <= self.most
        elif ratio is None:
            return "not measured"
        else:
            is_reached = ratio.value <= (self.most_ratio or 0)
        if is_reached and (short := self._what_is_short(result)):
            return f"too few {short}"
        is_sure = ratio is None or self.most_ratio is None or not ratio.low <= self.most_ratio < ratio.high
        return ("reached" if is_reached else "**not reached**") + ("" if is_sure else ", within the noise")

    def _what_is_short(self, result: Result) -> str:
        if self.is_sum:
            runs = sum(result.values(OURS, "runs"))
            return "" if runs >= LEAST_RUNS else f"runs: {runs:g}"
        (scenario,) = find([self.scenario])
        return "" if len(result.rounds) >= scenario.rounds else f"rounds: {len(result.rounds)} of {scenario.rounds}"

    def _total(self, result: Result) -> float:
        values = self.values(result, OURS)
        return sum(values) if self.is_sum else median(values)

    def _shown(self, result: Result, who: str) -> str:
        values = self.values(result, who)
        if not values:
            return "-"
        if self.is_sum:
            return f"{sum(values):g} in {sum(result.values(who, 'runs')):g} runs"
        return self.form.format(median(values))


@dataclass(frozen=True, slots=True)
class FloorRow(Row):
    """A makespan relative to the floor in the same round."""

    def values(self, result: Result, who: str) -> Sequence[float]:
        """Return what it was of `who`, in each round."""
        pairs = zip(result.values(who, self.figure), result.values(FLOOR, self.figure), strict=True)
        return [makespan / floor for makespan, floor in pairs]


LEAST_RUNS: Final = 50


def _loads() -> Sequence[Row]:
    loads = (
        ("burst-50x8", "50 jobs with 8 workers"),
        ("burst-100x4", "100 jobs with 4 workers"),
        ("one-1000", "one job with 1,000 workers"),
    )
    made = [Row(f"{title}: all Pods exist", name, "all made", "{:.1f} s", most_ratio=0.8) for name, title in loads]
    makespans = [
        Row(f"{title}: all Succeeded", name, "makespan", "{:.1f} s", most_ratio=most)
        for (name, title), most in zip(loads, (1.0, 1.0, 0.8), strict=True)
    ]
    floors = [
        FloorRow(f"{title}: all Succeeded, relative to the API server's own time", name, "makespan", "{:.2f}") for name, title in loads
    ]
    reports = [Row(f"{title}: launcher complete → job Succeeded, median", name, "report", "{:.2f} s") for name, title in loads[:2]]
    cleaned = [Row(f"{title}: all Succeeded, and no worker is left", name, "clean", "{:.1f} s") for name, title in loads[:2]]
    costs = [Row(f"{title}: CPU time per job", name, "CPU a job", "{:.1f} ms", most_ratio=0.8) for name, title in loads[:2]]
    return (
        *(row for rows in zip(made, makespans, floors, strict=True) for row in rows),
        *cleaned,
        *reports,
        *costs,
        Row(f"{loads[2][1]}: CPU time per worker", "one-1000", "CPU a worker", "{:.2f} ms", most_ratio=0.8),
        *(Row(f"{title}: requests per job", name, "requests a job", "{:.1f}") for name, title in loads[:2]),
    )


def _slow() -> Sequence[Row]:
    one, many = "one job with 200 workers that start over 30 s", "20 jobs with 8 workers that start over 30 s"
    return (
        Row(f"{one}: status writes", "slow-1x200", "statuses a job", "{:.0f}", most=12),
        Row(f"{one}: host list writes", "slow-1x200", "host lists a job", "{:.0f}", most=8),
        Row(f"{one}: CPU time", "slow-1x200", "CPU a job", "{:.0f} ms", most_ratio=0.4),
        Row(f"{many}: requests per job", "slow-20x8", "requests a job", "{:.1f}", most=30),
        Row(f"{many}: CPU time per job", "slow-20x8", "CPU a job", "{:.1f} ms", most_ratio=0.4),
        Row("20 jobs with 8 workers, each write delayed by 50 ms: all Succeeded", "late-20x8", "makespan", "{:.1f} s", most_ratio=1.0),
        Row(
            "20 jobs with 8 workers, each write delayed by 50 ms: CPU time per job",
            "late-20x8",
            "CPU a job",
            "{:.1f} ms",
            most_ratio=0.8,
        ),
        Row("ten jobs with 8 workers that fit on no node, two minutes: requests per job", "broken-10x8", "requests a job", "{:.1f}"),
        Row("ten jobs with 8 workers that fit on no node, two minutes: CPU time per job", "broken-10x8", "CPU a job", "{:.1f} ms"),
    )


def _large() -> Sequence[Row]:
    largest, stock, stream = "one job with 10,000 workers", "among 12,000 jobs", "2.5 jobs per second"
    return (
        Row(f"{largest}: all Pods exist", "one-10000", "all made", "{:.0f} s"),
        Row(f"{largest}: Succeeded", "one-10000", "makespan", "{:.0f} s"),
        Row(f"{largest}: CPU time per worker", "one-10000", "CPU a worker", "{:.2f} ms"),
        Row(f"{largest}: peak memory", "one-10000", "peak", "{:.0f} MiB"),
        Row(f"{stock}: start → leads and is idle", "stock", "start", "{:.1f} s"),
        Row(f"{stock}: memory after the start", "stock", "memory", "{:.0f} MiB"),
        Row(f"{stock}: objects that the API server must read from etcd", "stock", "read of etcd", "{:.0f}"),
        Row(f"{stock}: time to accept another job, median", "stock", "half accepted", "{:.2f} s"),
        *_steady(stock, "stock"),
        Row(f"{stock}: requests per job", "stock", "requests a job", "{:.1f}"),
        Row(f"{stock}: CPU time of the API server per job, for all its clients", "stock", "server CPU a job", "{:.0f} ms"),
        Row(f"{stock}: memory of the API server", "stock", "server memory", "{:.0f} MiB"),
        *_steady(stream, "stream"),
        Row(f"{stream}: load of the machine", "stream", "busy", "{:.0f} %"),
    )


def _steady(title: str, scenario: str) -> Sequence[Row]:
    return (
        Row(f"{title}: time to accept another job, 99th percentile", scenario, "accepted", "{:.2f} s"),
        Row(f"{title}: time until all its Pods exist, 99th percentile", scenario, "all made", "{:.2f} s"),
        Row(f"{title}: CPU time per job", scenario, "CPU a job", "{:.1f} ms"),
        Row(f"{title}: peak memory", scenario, "peak", "{:.0f} MiB"),
    )


def _shares() -> Sequence[Row]:
    return tuple(
        Row(f"50 jobs with 8 workers, once more: {what}", "shares", figure, "{:.1f} ms")
        for what, figure in (
            ("CPU time per job", "CPU a job"),
            ("CPU time per job of a standby, which only watches", "watching"),
            ("CPU time per job of a client that only sends the same requests", "sending"),
        )
    )


def _libraries() -> Sequence[Row]:
    title = "one job with each of five libraries, apply → Succeeded, total"
    return (
        Row(f"{title}: the image's sshd", "libraries", "sshd", "{:.1f} s"),
        Row(f"{title}: mpiop-agent copied", "libraries", "copied", "{:.1f} s", base="sshd"),
        Row(f"{title}: mpiop-agent mounted", "libraries", "mounted", "{:.1f} s", most_ratio=1.0, base="sshd"),
    )


def _steps() -> Sequence[Row]:
    names = {"openmpi": "Open MPI 4.1", "openmpi5": "Open MPI 5", "mpich": "MPICH 4.3", "mpich5": "MPICH 5", "intel": "Intel MPI"}
    measured = [(library, f"`step -- hostname` with {name}", "its `mpirun`", 0.5) for library, name in names.items()]
    measured += [
        ("function", "a second `a.run` with Open MPI 4.1", "`mpirun` with the import of mpi4py", 0.4),
        ("upload", "a step with `--upload` and a changed file of 1 MiB", "the step", 0.5),
    ]
    where = f"{RANKS} ranks on {HOSTS} hosts"
    rows = (
        (
            Row(f"{where}: {title}", "steps", figure, "{:.2f} s"),
            Row(f"{where}: {title}: {base} alone", "steps", f"{figure} bare", "{:.2f} s"),
            Row(f"{where}: {title}: longer than {base}", "steps", f"{figure} added", "{:.2f} s", most=most),
        )
        for figure, title, base, most in measured
    )
    whole_job = Row(f"{where}: `run -- hostname` with Open MPI 4.1", "steps", "run", "{:.2f} s")
    return (*(row for three in rows for row in three), whole_job)


ROWS: Final[Sequence[Row]] = (
    Row("one job: apply → launcher runs", "one-job", "launcher runs", "{:.2f} s", most_ratio=1.1),
    Row("one job: apply → Succeeded", "one-job", "Succeeded", "{:.2f} s", most_ratio=1.1),
    Row("one job: failed launcher attempts", "one-job", "failed tries", "{:g}", most=0, is_sum=True),
    Row("one job: suspend → no container runs, `active: 0`", "one-job", "suspended", "{:.2f} s", most_ratio=1.0),
    Row("one job: suspend → no Pod left", "one-job", "gone", "{:.2f} s"),
    Row("one job: resume → Running", "one-job", "resumed", "{:.2f} s", most_ratio=1.0),
    *_loads(),
    *_slow(),
    Row("memory without a job", "memory", "idle", "{:.0f} MiB", most_ratio=1.1),
    Row("memory next to 5,000 unrelated Pods", "memory", "beside", "{:.0f} MiB", most_ratio=1.1, base="idle"),
    Row("leader asked to stop → first write of the next leader", "failover", "failover", "{:.2f} s", most=1.0),
    *_large(),
    *_shares(),
    *_libraries(),
    *_steps(),
)


def rendered(results: Mapping[str, Result], before: str = "") -> str:
    """Render as Markdown the conditions of the results, and a table of the rows whose scenario was measured.

    Args:
        results: By scenario.
        before: What was rendered earlier: what it has of other scenarios is kept.
    """
    kept = {cells[0]: cells for cells in map(_cells, before.splitlines()) if len(cells) == len(HEAD)}
    lines = [row.line(results[row.scenario]) if row.scenario in results else kept.get(row.title) for row in ROWS]
    rows = [HEAD, *filter(None, lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    table = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]
    table.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    of = dict[str, list[str]]()
    for each in results.values():
        of.setdefault(each.conditions, []).append(_with_rounds(each))
    for names, conditions in _NOTE.findall(before):
        of.setdefault(conditions, []).extend(name for name in names.split(", ") if name.split()[0] not in results)
    notes = [f"- {', '.join(names)}: {conditions}." for conditions, names in of.items() if names]
    return "\n".join((*notes, "", *table))


def _cells(line: str) -> Sequence[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _with_rounds(result: Result) -> str:
    rounds = len(result.rounds)
    return f"{result.scenario} ({rounds} round{'s' if rounds > 1 else ''})"


def write(page: Path, results: Mapping[str, Result]) -> None:
    """Put the rendered results between the marks of a page; what it has of other scenarios stays.

    Raises:
        ValueError: The page has no such marks.
    """
    text = page.read_text(encoding="utf-8")
    start, begin, rest = text.partition(BEGIN)
    before, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{page} has no line {BEGIN} and {END}")
    page.write_text(f"{start}{begin}\n\n{rendered(results, before)}\n\n{end}{after}", encoding="utf-8")
