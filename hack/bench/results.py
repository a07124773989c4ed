"""What a measurement yields: values that become JSON, and the few figures that are computed from many."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import geometric_mean
from typing import Any, Final, TypeVar

from bench.observer import JobTimes
from bench.scenarios import find

_QUEUE: Final = 'workqueue_queue_duration_seconds_{}{{name="MPIJob"}}'
_QUEUE_BUCKET: Final = 'workqueue_queue_duration_seconds_bucket{le="'
_SYNCS: Final = "mpiop_sync_duration_seconds_count"


@dataclass(frozen=True, slots=True)
class Course:
    """How long it took, in seconds.

    Attributes:
        makespan: From the first job sent until the last one Succeeded.
        created: Of a job, from its sending until all of its pods existed: `p50` and `p99`.
        pods_running: Until all of its pods ran.
        running: Until its condition Running was stored; in a floor, `pods_running`.
        succeeded: Until it Succeeded; in a floor, until its launcher Job was complete.
        seen_running: How many jobs showed Running before they ended.
        work_ms: What the machine took for a fixed piece of work right before (`fixed_work`).
    """

    makespan: float
    created: Mapping[str, float]
    pods_running: Mapping[str, float]
    running: Mapping[str, float]
    succeeded: Mapping[str, float]
    seen_running: int
    work_ms: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What the operator used.

    Attributes:
        cpu_seconds: Processor time from the first job until there was nothing more to do, clean-up included.
        rss_mib: Resident memory: `idle`, `peak`, `end`.
        syncs: How many.
        queue_seconds: How long jobs waited for a worker: `mean`, and the bounds of the buckets that hold `p50` and `p99`.

    What an operator does not count is 0.
    """

    cpu_seconds: float
    rss_mib: Mapping[str, float]
    syncs: int
    queue_seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Run:
    """What an operator took.

    Attributes:
        requests: By the audit log, or, where there is none, by the operator's own count, which knows no subresources.
    """

    course: Course
    cost: Cost
    requests: Mapping[str, int]


_Measured = TypeVar("_Measured", Course, Run)


@dataclass
class Outcome:
    """All about one scenario, a value for each round.

    Attributes:
        floors: By how many requests were under way at a time.
        reporting_floors: The same with the statuses and Events that any operator owes; empty where they were not measured.
        references: The operator in Go, if it was measured.
        runs: Our operator, where jobs come.
        figures: Of scenarios that measure one moment: name → value.
    """

    scenario: str
    jobs: int
    workers: int
    floors: dict[str, list[Course]] = field(default_factory=dict[str, list[Course]])
    reporting_floors: dict[str, list[Course]] = field(default_factory=dict[str, list[Course]])
    references: list[Run] = field(default_factory=list[Run])
    runs: list[Run] = field(default_factory=list[Run])
    figures: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def ours(self) -> Run | None:
        """Return the run of our operator with the middle makespan."""
        return middle(self.runs) if self.runs else None

    @property
    def floor(self) -> Sequence[Course]:
        """Return the rounds of the best level of the floor; none where there is no floor."""
        return _best(self.floors)

    @property
    def reporting_floor(self) -> Sequence[Course]:
        """Return the rounds of the best level of the floor that reports."""
        return _best(self.reporting_floors)

    def of_reference(self) -> "Outcome | None":
        """Return the same outcome with the operator in Go in the place of ours."""
        return replace(self, runs=self.references, references=[], figures={}) if self.references else None


def _best(floors: Mapping[str, Sequence[Course]]) -> Sequence[Course]:
    return min(floors.values(), key=lambda rounds: geometric_mean(map(_makespan, rounds)), default=())


def middle(rounds: Sequence[_Measured]) -> _Measured:
    """Return the one with the middle makespan, of an even number the longer of two."""
    return sorted(rounds, key=_makespan)[len(rounds) // 2]


def _makespan(measured: Course | Run) -> float:
    return (measured.course if isinstance(measured, Run) else measured).makespan


def ratios(courses: Iterable[Course], floor: Iterable[Course], value: Callable[[Course], float | None] = _makespan) -> list[float]:
    """Return a value of each round by that of the floor in the same round, as far as both have it.

    Minutes later the same machine may be half as fast.
    """
    pairs = ((value(course), value(bare)) for course, bare in zip(courses, floor, strict=True))
    return [ours / floors for ours, floors in pairs if ours is not None and floors]


def creates_a_second(outcome: Outcome, floor: Course) -> float:
    """Return how many objects a second the API server made until all of 99 % of the jobs existed; of a stream, no more than came."""
    (scenario,) = find([outcome.scenario])
    seconds = scenario.arrival_seconds + floor.created.get("p99", floor.makespan)
    return outcome.jobs * (outcome.workers + 6) / max(seconds, 0.001)


def course_of(jobs: Sequence[JobTimes], work_ms: float) -> Course:
    """Return how long `jobs`, which have all Succeeded, took."""
    ends = [job.succeeded for job in jobs if job.succeeded is not None]
    seen = sum(job.running is not None and job.succeeded is not None and job.running < job.succeeded for job in jobs)
    return Course(
        makespan=round(max(ends) - min(job.submitted for job in jobs), 3),
        created=_spread(jobs, "created"),
        pods_running=_spread(jobs, "pods_running"),
        running=_spread(jobs, "running") or _spread(jobs, "pods_running"),
        succeeded=_spread(jobs, "succeeded"),
        seen_running=seen,
        work_ms=work_ms,
    )


def _spread(jobs: Sequence[JobTimes], what: str) -> dict[str, float]:
    values = sorted(getattr(job, what) - job.submitted for job in jobs if getattr(job, what) is not None)
    return {name: round(percentile(values, share), 3) for name, share in (("p50", 0.5), ("p99", 0.99))} if values else {}


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the values such that `share` of them are not above it."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def counted(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    """Return what the operator's metrics counted between two scrapes: the fields of `Cost` that come from them."""
    delta = _delta(before, after)
    waits = delta.get(_QUEUE.format("count"), 0)
    buckets = sorted((float(name.split('"')[1]), value) for name, value in delta.items() if name.startswith(_QUEUE_BUCKET))
    bounds = {
        name: next((bound for bound, value in buckets if value >= share * waits), 0.0) for name, share in (("p50", 0.5), ("p99", 0.99))
    }
    return {
        "syncs": int(delta.get(_SYNCS, 0)),
        "queue_seconds": {"mean": round(delta.get(_QUEUE.format("sum"), 0) / max(waits, 1), 4), **bounds},
    }


def own_requests(before: Mapping[str, float], after: Mapping[str, float]) -> Mapping[str, int]:
    """Return which requests the operator's metrics counted between two scrapes, those about its Lease left out: `patch mpijobs: 409`."""
    counts = Counter[str]()
    for name, value in _delta(before, after).items():
        if name.startswith("mpiop_api_requests_total") and value and "leases" not in name:
            labels = dict(label.split("=") for label in name.partition("{")[2].rstrip("}").split(","))
            words = {label: text.strip('"') for label, text in labels.items()}
            code = "" if words["code"].startswith("2") else f": {words['code']}"
            counts[f"{words['verb']} {words['resource']}{code}"] += int(value)
    return dict(sorted(counts.items()))


def _delta(before: Mapping[str, float], after: Mapping[str, float]) -> Mapping[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
