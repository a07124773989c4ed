"""What is to be reached, and whether it was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.audit import conflicts
from bench.results import Outcome, Run, middle, ratios

Outcomes = Mapping[str, Outcome]
Values = Callable[[Outcomes], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure to reach.

    Attributes:
        reference: What the operator in Go took elsewhere, as text; where it is measured too, that is shown.
        form: How a figure is shown.
        most: It should not be above this.
        values: What it is of, mostly one of each round; none when its scenario was not measured.
        shown: More to show beside it.
        summary: What counts of the values.
        is_least: It should not be below `most` instead.
    """

    title: str
    reference: str
    form: str
    most: float
    values: Values
    shown: Callable[[Outcomes], str] = lambda _: ""
    summary: Callable[[Sequence[float]], float] = median
    is_least: bool = False

    def figure(self, outcomes: Outcomes) -> float | None:
        """Return the figure; None when its scenario was not measured."""
        values = self.values(outcomes)
        return self.summary(values) if values else None

    def line(self, outcomes: Outcomes) -> tuple[str, str, str, str, str]:
        """Return title, goal, reference, what was measured, and the verdict.

        Raises:
            ValueError: It was not measured.
        """
        figure = self.figure(outcomes)
        goal = f"{'≥' if self.is_least else '≤'} {self.form.format(self.most)}"
        if figure is None:
            raise ValueError(f"{self.title}: the scenario was not run")
        reached = figure >= self.most if self.is_least else figure <= self.most
        theirs = self.figure({name: run for name, outcome in outcomes.items() if (run := outcome.of_reference()) is not None})
        more = "; ".join(filter(None, (self.shown(outcomes), self._range(self.values(outcomes)))))
        measured = self.form.format(figure) + (f" ({more})" if more else "")
        reference = self.reference if theirs is None else f"{self.form.format(theirs)} in this run"
        return self.title, goal, reference, measured, "reached" if reached else "NOT REACHED"

    def _range(self, values: Sequence[float]) -> str:
        least, most = self.form.format(min(values)), self.form.format(max(values))
        return f"{len(values)} runs: {least} to {most}" if least != most else ""


def _by_floor(name: str) -> Values:
    def values(outcomes: Outcomes) -> Sequence[float]:
        outcome = outcomes.get(name)
        return ratios((run.course for run in outcome.runs), outcome.floor) if outcome and outcome.runs and outcome.floor else ()

    return values


def _seconds(name: str) -> Callable[[Outcomes], str]:
    def shown(outcomes: Outcomes) -> str:
        outcome = outcomes[name]
        return f"{middle(outcome.runs).course.makespan:.1f} s, floor {middle(outcome.floor).makespan:.1f} s"

    return shown


def _of_runs(name: str, of: Callable[[Outcome, Run], float]) -> Values:
    def values(outcomes: Outcomes) -> Sequence[float]:
        outcome = outcomes.get(name)
        return [of(outcome, run) for run in outcome.runs] if outcome else ()

    return values


def _cpu_each_job(outcome: Outcome, run: Run) -> float:
    return 1000 * run.cost.cpu_seconds / outcome.jobs


def _cpu_each_worker(outcome: Outcome, run: Run) -> float:
    return _cpu_each_job(outcome, run) / outcome.workers


def _cpu_of_many(outcomes: Outcomes) -> Sequence[float]:
    few, many = (_of_runs(name, _cpu_each_worker)(outcomes) for name in ("one-1000", "one-5000"))
    return [median(many) / median(few)] if few and many else ()


def _requests_each_job(outcome: Outcome, run: Run) -> float:
    return sum(run.requests.values()) / outcome.jobs


def _memory_idle(_: Outcome, run: Run) -> float:
    return run.cost.rss_mib["idle"]


def _seen_running(_: Outcome, run: Run) -> float:
    return run.course.seen_running


def _conflicts(outcomes: Outcomes) -> Sequence[float]:
    counts: list[float] = [conflicts(run.requests) for outcome in outcomes.values() for run in outcome.runs]
    return [*counts, *(outcome.figures["conflicts"] for outcome in outcomes.values() if "conflicts" in outcome.figures)]


def _figure(name: str, what: str) -> Values:
    return lambda outcomes: [outcomes[name].figures[what]] if name in outcomes and what in outcomes[name].figures else ()


ROWS: Final[Sequence[Row]] = (
    Row("50 jobs with 8 workers, makespan by the floor's", "1.39", "{:.2f}", 1.10, _by_floor("burst-50x8"), _seconds("burst-50x8")),
    Row("100 jobs with 4 workers, makespan by the floor's", "1.54", "{:.2f}", 1.10, _by_floor("burst-100x4"), _seconds("burst-100x4")),
    Row("one job of 1,000 workers, makespan by the floor's", "2.47", "{:.2f}", 1.15, _by_floor("one-1000"), _seconds("one-1000")),
    Row("operator CPU per 8-worker job", "42 ms", "{:.1f} ms", 20, _of_runs("burst-50x8", _cpu_each_job)),
    Row("operator CPU per 4-worker job", "28 ms", "{:.1f} ms", 14, _of_runs("burst-100x4", _cpu_each_job)),
    Row("operator CPU per worker of 1,000", "1.8 ms", "{:.2f} ms", 1.0, _of_runs("one-1000", _cpu_each_worker)),
    Row("operator CPU per worker of 5,000 by that of 1,000", "", "{:.2f}", 1.15, _cpu_of_many),
    Row("API requests per 8-worker job, clean-up included", "26.9", "{:.1f}", 27, _of_runs("burst-50x8", _requests_each_job)),
    Row("conflicts, all scenarios", "", "{:.0f}", 0, _conflicts, summary=sum),
    Row("memory, idle", "56 MB", "{:.0f} MiB", 64, _of_runs("burst-50x8", _memory_idle)),
    Row("memory, idle beside 10,000 foreign Pods", "124 MB", "{:.0f} MiB", 66, _of_runs("foreign-20x8", _memory_idle)),
    Row("start to the end of a first job, lease free", "4.5 s", "{:.1f} s", 5, _figure("first-job", "lease free")),
    Row("the same, predecessor told to stop just before", "20 s", "{:.1f} s", 5, _figure("first-job", "predecessor told to stop")),
    Row(
        "of these 100 jobs, seen Running before the end",
        "14",
        "{:.0f}",
        100,
        _of_runs("burst-100x4", _seen_running),
        summary=min,
        is_least=True,
    ),
    Row("ready after a start with 1,000 jobs", "", "{:.1f} s", 3, _figure("restart-1000", "ready")),
    Row("requests about jobs at that start", "", "{:.0f}", 0, _figure("restart-1000", "requests")),
)
