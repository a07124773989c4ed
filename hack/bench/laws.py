"""What the operator costs as a law `a · jobs + b · workers + c`, fitted to what `make bench` measured."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.results import Outcome, creates_a_second, middle
from bench.scenarios import SCENARIOS, Kind

_TERMS: Final = ("jobs", "workers", "constant")
_NO_LESS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    Attributes:
        workers: Of all jobs together.
        value: More than 0.
    """

    scenario: str
    jobs: int
    workers: int
    value: float


@dataclass(frozen=True, slots=True)
class Law:
    """What something costs.

    Attributes:
        a_job: For each job, besides its workers.
        a_worker: For each worker.
        constant: Without any job.
        deviation: Of the measurement that it fits worst, as a share of it.
    """

    a_job: float
    a_worker: float
    constant: float
    deviation: float

    def at(self, jobs: int, workers: int) -> float:
        """Return the cost of `jobs` with `workers` in all."""
        return self.a_job * jobs + self.a_worker * workers + self.constant


def fitted(points: Sequence[Point]) -> Law:
    """Return the law that fits `points` best: least squares of the relative deviations, none of its terms below 0.

    A long scenario thus counts no more than a short one, and noise cannot make a job that gives something back.

    Raises:
        ValueError: They are too few, or too much alike, to tell the three terms apart.
    """
    values = np.array([point.value for point in points])
    rows = np.array([(point.jobs, point.workers, 1) for point in points], dtype=float).reshape(-1, len(_TERMS)) / values[:, None]
    scales = np.linalg.norm(rows, axis=0) if len(points) else np.ones(len(_TERMS))
    if np.linalg.matrix_rank(rows / scales) < len(_TERMS):
        raise ValueError(f"{len(points)} scenarios cannot tell jobs, workers and a constant apart")
    best, least = np.zeros(len(_TERMS)), float("inf")
    # Least squares without negative terms is the best of the plain ones by any choice of terms: with three there are seven.
    for count in range(1, len(_TERMS) + 1):
        for chosen in map(list, itertools.combinations(range(len(_TERMS)), count)):
            terms = np.zeros(len(_TERMS))
            terms[chosen] = np.linalg.lstsq(rows[:, chosen] / scales[chosen], np.ones(len(points)), rcond=None)[0] / scales[chosen]
            error = float(np.sum((rows @ terms - 1) ** 2))
            if (terms >= -_NO_LESS).all() and error < least:
                best, least = np.maximum(terms, 0), error
    a_job, a_worker, constant = (float(term) for term in best)
    return Law(a_job, a_worker, constant, float(np.max(np.abs(rows @ best - 1))))


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is predicted.

    Attributes:
        unit: In which figures for one job or worker are shown; `scale` of it are one of what was measured.
        scenarios: Those that show it.
        value: What was measured; None when that scenario does not show it.
    """

    title: str
    unit: str
    scale: float
    scenarios: Sequence[str]
    value: Callable[[Outcome], float | None]

    @property
    def name(self) -> str:
        """Return the title with the unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def points(self, outcomes: Sequence[Outcome]) -> list[Point]:
        """Return what was measured of it, beside nobody else's Pods."""
        found = [(outcome, self.value(outcome)) for outcome in outcomes if outcome.scenario in self.scenarios]
        return [Point(each.scenario, each.jobs, each.jobs * each.workers, value) for each, value in found if value]

    def missing(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Return the scenarios that would show it, and were not measured."""
        measured = {point.scenario for point in self.points(outcomes)}
        return [name for name in self.scenarios if name not in measured]


def _requests(outcome: Outcome) -> float | None:
    return sum(outcome.ours.requests.values()) if outcome.ours else None


def _cpu_seconds(outcome: Outcome) -> float | None:
    return outcome.ours.cost.cpu_seconds if outcome.ours else None


def _memory(outcome: Outcome) -> float | None:
    """Return the most memory while all was there: of a start with jobs that run, what it has when it is done."""
    return outcome.ours.cost.rss_mib["peak"] if outcome.ours else outcome.figures.get("rss")


_PLAIN: Final = [each for each in SCENARIOS if each.kind is Kind.LOAD and not each.foreign_pods]
QUANTITIES: Final = (
    Quantity("requests", "", 1, [each.name for each in _PLAIN], _requests),
    Quantity("processor time", "ms", 1000, [each.name for each in _PLAIN], _cpu_seconds),
    # Of a stream, not all jobs are there at the same time.
    Quantity("memory", "KiB", 1024, [*(each.name for each in _PLAIN if not each.rate), "restart-1000"], _memory),
)


@dataclass(frozen=True)
class Model:
    """What can be said from the measurements that there are.

    Attributes:
        laws: By the quantity's title, as far as they can be fitted.
        gaps: Scenarios that were not measured, by the title of the quantity that they would show.
        creates_a_second: Most objects a second that the API server made for a bare client; None when no floor was measured.
        outcomes: The measurements.
    """

    laws: dict[str, Law]
    gaps: dict[str, list[str]]
    creates_a_second: float | None
    outcomes: Sequence[Outcome]


def model_of(outcomes: Sequence[Outcome]) -> Model:
    """Fit what can be fitted."""
    laws = dict[str, Law]()
    for quantity in QUANTITIES:
        try:
            laws[quantity.title] = fitted(quantity.points(outcomes))
        except ValueError:
            continue  # what is missing is among the gaps
    gaps = {quantity.title: names for quantity in QUANTITIES if (names := quantity.missing(outcomes))}
    rates = [creates_a_second(each, middle(each.floor)) for each in outcomes if each.floor]
    return Model(laws, gaps, max(rates, default=None), outcomes)
