"""What is to be reached, and whether it was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.audit import conflicts
from bench.results import Course, Outcome, Run

Outcomes = Mapping[str, Outcome]
Figure = Callable[[Outcomes], float | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure to reach.

    Attributes:
        reference: What the operator in Go took elsewhere, as text; where it is measured too, that is shown.
        form: How a figure is shown.
        most: It should not be above this.
        figure: Computes it; None when its scenario was not measured.
        shown: More to show beside it.
        is_least: It should not be below `most` instead.
    """

    title: str
    reference: str
    form: str
    most: float
    figure: Figure
    shown: Callable[[Outcomes], str] = lambda _: ""
    is_least: bool = False

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
        measured = self.form.format(figure) + (f" ({more})" if (more := self.shown(outcomes)) else "")
        reference = self.reference if theirs is None else f"{self.form.format(theirs)} in this run"
        return self.title, goal, reference, measured, "reached" if reached else "NOT REACHED"


def _pair(outcomes: Outcomes, name: str) -> tuple[Course, Course] | None:
    outcome = outcomes.get(name)
    if outcome is None or outcome.ours is None or outcome.floor is None:
        return None
    return outcome.ours.course, outcome.floor


def _ratio(name: str) -> Figure:
    def figure(outcomes: Outcomes) -> float | None:
        pair = _pair(outcomes, name)
        return pair[0].makespan / pair[1].makespan if pair else None

    return figure


def _seconds(name: str) -> Callable[[Outcomes], str]:
    def shown(outcomes: Outcomes) -> str:
        pair = _pair(outcomes, name)
        return f"{pair[0].makespan:.1f} s, floor {pair[1].makespan:.1f} s" if pair else ""

    return shown


def _of_run(name: str, of: Callable[[Outcome, Run], float]) -> Figure:
    def figure(outcomes: Outcomes) -> float | None:
        outcome = outcomes.get(name)
        return of(outcome, outcome.ours) if outcome and outcome.ours else None

    return figure


def _cpu_each_job(outcome: Outcome, run: Run) -> float:
    return 1000 * run.cost.cpu_seconds / outcome.jobs


def _cpu_each_worker(outcome: Outcome, run: Run) -> float:
    return 1000 * run.cost.cpu_seconds / (outcome.jobs * outcome.workers)


def _cpu_of_many(outcomes: Outcomes) -> float | None:
    few, many = (_of_run(name, _cpu_each_worker)(outcomes) for name in ("one-1000", "one-5000"))
    return many / few if few and many else None


def _requests_each_job(outcome: Outcome, run: Run) -> float:
    return sum(run.requests.values()) / outcome.jobs


def _memory_idle(_: Outcome, run: Run) -> float:
    return run.cost.rss_mib["idle"]


def _seen_running(outcome: Outcome, _: Run) -> float:
    return min(run.course.seen_running for run in outcome.runs)


def _conflicts(outcomes: Outcomes) -> float | None:
    counts: list[float] = [conflicts(run.requests) for outcome in outcomes.values() for run in outcome.runs]
    counts += [outcome.figures["conflicts"] for outcome in outcomes.values() if "conflicts" in outcome.figures]
    return sum(counts) if counts else None


def _figure(name: str, what: str) -> Figure:
    return lambda outcomes: outcomes[name].figures.get(what) if name in outcomes else None


ROWS: Final[Sequence[Row]] = (
    Row("50 jobs with 8 workers, makespan by the floor's", "1.39", "{:.2f}", 1.10, _ratio("burst-50x8"), _seconds("burst-50x8")),
    Row("100 jobs with 4 workers, makespan by the floor's", "1.54", "{:.2f}", 1.10, _ratio("burst-100x4"), _seconds("burst-100x4")),
    Row("one job of 1,000 workers, makespan by the floor's", "2.47", "{:.2f}", 1.15, _ratio("one-1000"), _seconds("one-1000")),
    Row("operator CPU per 8-worker job", "42 ms", "{:.1f} ms", 20, _of_run("burst-50x8", _cpu_each_job)),
    Row("operator CPU per 4-worker job", "28 ms", "{:.1f} ms", 14, _of_run("burst-100x4", _cpu_each_job)),
    Row("operator CPU per worker of 1,000", "1.8 ms", "{:.2f} ms", 1.0, _of_run("one-1000", _cpu_each_worker)),
    Row("operator CPU per worker of 5,000 by that of 1,000", "", "{:.2f}", 1.15, _cpu_of_many),
    Row("API requests per 8-worker job, clean-up included", "26.9", "{:.1f}", 27, _of_run("burst-50x8", _requests_each_job)),
    Row("conflicts, all scenarios", "", "{:.0f}", 0, _conflicts),
    Row("memory, idle", "56 MB", "{:.0f} MiB", 64, _of_run("burst-50x8", _memory_idle)),
    Row("memory, idle beside 10,000 foreign Pods", "124 MB", "{:.0f} MiB", 66, _of_run("foreign-20x8", _memory_idle)),
    Row("start to the end of a first job, lease free", "4.5 s", "{:.1f} s", 5, _figure("first-job", "lease free")),
    Row("the same, predecessor told to stop just before", "20 s", "{:.1f} s", 5, _figure("first-job", "predecessor told to stop")),
    Row("of these 100 jobs, seen Running before the end", "14", "{:.0f}", 100, _of_run("burst-100x4", _seen_running), is_least=True),
    Row("ready after a start with 1,000 jobs", "", "{:.1f} s", 3, _figure("restart-1000", "ready")),
    Row("requests about jobs at that start", "", "{:.0f}", 0, _figure("restart-1000", "requests")),
)
