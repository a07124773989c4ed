"""What the model of scaling says: laws are recovered from measurements, limits come from the real builders, gaps are told."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench import report
from bench.laws import QUANTITIES, Law, Model, Point, fitted, model_of
from bench.results import Cost, Course, Outcome, Run
from bench.scaling import BEGIN, END, LOADS, PAGE, memory_limit_mib, predictions, rendered, uses, written
from bench.scenarios import SCENARIOS, SMALL, Kind, Scenario
from bench.sizes import CEILING, LIMITS, MIB, NAMINGS, OBJECTS, SHORT, Limit, Naming, all_bytes, all_running, bytes_of, job_of, largest
from mpiop.api.validation import validate

REQUESTS, CPU, MEMORY = Law(20, 2, 0, 0), Law(0.01, 0.001, 0.5, 0), Law(0.02, 0.005, 57, 0)
MACHINE = {"version": "v1", "cores": 2, "architecture": "x86_64"}
CONFIG_MAP = LIMITS[0]
GROWING = ("ConfigMap, all workers running",)


def course(scenario: Scenario, creates_a_second: float) -> Course:
    seconds = scenario.jobs * (scenario.workers + 6) / creates_a_second
    spread = {"p50": seconds / 2, "p99": seconds}
    return Course(seconds, spread, spread, spread, spread, 0, 0.0)


def outcome(scenario: Scenario) -> Outcome:
    """Return what would be measured if the laws above were exact."""
    jobs, workers = scenario.jobs, scenario.jobs * scenario.workers
    memory, requests = MEMORY.at(jobs, workers), {"create pods": int(REQUESTS.at(jobs, workers))}
    made = Outcome(scenario.name, jobs, scenario.workers)
    if scenario.kind is Kind.RESTART:
        made.figures = {"rss": memory}
    elif scenario.kind is Kind.LOAD:
        made.floors = {"8": [course(scenario, 400)], "16": [course(scenario, 500)]}
        cost = Cost(CPU.at(jobs, workers), {"idle": 57, "peak": memory, "end": memory}, 1, {})
        made.runs = [Run(course(scenario, 300), cost, requests)]
    return made


def measured(*, without: Sequence[str] = ()) -> list[Outcome]:
    return [outcome(each) for each in SCENARIOS if each.name not in without]


def same(law: Law) -> object:
    return pytest.approx((law.a_job, law.a_worker, law.constant), rel=1e-6, abs=1e-6)


def terms(law: Law) -> tuple[float, float, float]:
    return law.a_job, law.a_worker, law.constant


def test_laws_are_recovered_from_what_was_measured() -> None:
    model = model_of(measured())
    assert {title: terms(law) for title, law in model.laws.items()} == {
        "requests": same(REQUESTS),
        "processor time": same(CPU),
        "memory": same(MEMORY),
    }
    assert model.gaps == {}
    assert model.creates_a_second == pytest.approx(500)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([], id="none"),
        pytest.param([Point("one", 1, 1000, 5)], id="one"),
        pytest.param([Point("a", 50, 400, 5), Point("b", 100, 400, 7)], id="two"),
        pytest.param([Point(f"{jobs}", jobs, 8 * jobs, jobs) for jobs in (10, 20, 50, 100)], id="all with 8 workers"),
    ],
)
def test_what_cannot_tell_jobs_from_workers_is_not_fitted(points: Sequence[Point]) -> None:
    with pytest.raises(ValueError, match=f"{len(points)} scenarios cannot tell"):
        fitted(points)


def test_noise_makes_no_cost_negative_and_shows_as_a_deviation() -> None:
    noisy = [(50, 400, 0.9), (100, 400, 1.1), (1, 1000, 0.9), (1, 5000, 1.1), (500, 1000, 1.0)]
    points = [Point("", jobs, workers, REQUESTS.at(jobs, workers) * factor) for jobs, workers, factor in noisy]
    rows = np.array([(point.jobs, point.workers, 1) for point in points]) / np.array([[point.value] for point in points])
    plain, without_constant = (np.linalg.lstsq(rows[:, :count], np.ones(len(points)))[0] for count in (3, 2))
    assert plain[2] < 0, "else this shows nothing"
    law = fitted(points)
    assert terms(law) == pytest.approx((*without_constant, 0))
    assert 0.01 < law.deviation < 0.3


def test_memory_is_not_fitted_to_jobs_that_are_not_there_at_the_same_time() -> None:
    [memory] = [quantity for quantity in QUANTITIES if quantity.title == "memory"]
    assert {each.name for each in SCENARIOS if each.rate}.isdisjoint(memory.scenarios)


def test_a_long_scenario_counts_no_more_than_a_short_one() -> None:
    points = [Point("", jobs, workers, CPU.at(jobs, workers)) for jobs, workers in ((50, 400), (100, 400), (1, 1000), (500, 1000))]
    law = fitted([*points, Point("", 1, 50_000, 2 * CPU.at(1, 50_000))])
    assert law.deviation < 0.5, "the one that differs does not bend all the others"


@pytest.mark.parametrize(
    ("without", "quantity", "is_fitted"),
    [
        pytest.param(["one-5000"], "requests", True, id="enough is left"),
        pytest.param(["one-1000", "one-5000", "stream-500x2"], "requests", False, id="too little is left"),
        pytest.param(["restart-1000"], "memory", True, id="memory without the start with jobs"),
        pytest.param([each.name for each in SCENARIOS if each.name != "failover"], "processor time", False, id="nothing with jobs"),
    ],
)
def test_scenarios_that_were_not_measured_are_told(without: Sequence[str], quantity: str, is_fitted: bool) -> None:  # noqa: FBT001 - the table
    model = model_of(measured(without=without))
    assert (quantity in model.laws) == is_fitted
    told = next(line for line in rendered(model, MACHINE).splitlines() if line.startswith(f"**{quantity.capitalize()}: "))
    missing = [name for name in without if name in next(each for each in QUANTITIES if each.title == quantity).scenarios]
    assert ", ".join(sorted(missing)) == ", ".join(sorted(re.findall(r"[a-z]+-[0-9]+(?:x[0-9]+)?", told)))
    assert "`make bench`" in told
    assert ("fitted without" in told) == is_fitted


def test_without_any_result_sizes_and_limits_are_there_all_the_same() -> None:
    text = rendered(model_of([]), None)
    assert f"{largest(CONFIG_MAP):,}" in text
    assert text.count("not fitted, for want of") == len(QUANTITIES)


def test_what_was_not_fitted_to_is_foretold_beside_its_measurement() -> None:
    lines = rendered(model_of([*measured(), outcome(SMALL[0])]), MACHINE).splitlines()
    [check] = [line for line in lines if "nothing was fitted" in line]
    assert re.findall(r"To (\S+) nothing was fitted", check) == ["foreign-20x8", "small-10x8"]
    assert "requests 360 foretold, 360 measured" in check


def test_predictions_follow_the_laws() -> None:
    many, large = (predictions(model_of(measured()), load) for load in LOADS)
    assert many["requests"] == "300,000"
    assert many["takes at least"] == "600 s (API server): 16.7 jobs a second"
    assert many["memory, all at the same time"] == "507 MiB"
    assert large["requests"] == "100,020"
    assert large["nearest limit"].startswith("1 MiB of data in a ConfigMap")
    assert large["nearest limit"].endswith("**cannot be**")


def test_memory_is_the_first_limit_of_many_jobs_where_the_law_says_so() -> None:
    hungry = Model({"memory": Law(1, 0, 50, 0)}, {}, None, [])
    first = uses(hungry, LOADS[0])[0]
    assert "resources.limits.memory" in first.limit
    assert first.share == pytest.approx(10_050 / memory_limit_mib())


@pytest.mark.parametrize("naming", NAMINGS, ids=lambda naming: naming.title)
def test_the_config_map_is_full_at_the_number_that_is_told(naming: Naming) -> None:
    most = largest(CONFIG_MAP, naming)
    assert most is not None
    full, over = (all_running(job_of(workers, naming), naming.options)["data"] for workers in (most, most + 1))
    assert sum(map(len, full.values())) <= MIB < sum(map(len, over.values()))


def test_the_longest_names_are_those_that_are_allowed() -> None:
    longest, workers = NAMINGS[-1], 50_000
    assert validate(job_of(workers, longest)) == ()
    assert validate(job_of(workers, Naming("", f"{longest.job}a", longest.namespace))) != ()


@pytest.mark.parametrize("name", [name for name in OBJECTS if name not in GROWING])
def test_no_object_but_the_config_map_grows_with_the_workers(name: str) -> None:
    assert bytes_of(name, 50_000) - bytes_of(name, 1) < 32, "a few digits"


def test_all_objects_are_one_of_each_and_the_pods_of_the_other_workers() -> None:
    assert all_bytes(1) == sum(bytes_of(name, 1) for name in OBJECTS)
    assert all_bytes(8) - all_bytes(7) == pytest.approx(bytes_of("Pod of a worker", 8), abs=200)


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.title)
def test_a_limit_is_the_last_number_of_workers_that_fits(limit: Limit) -> None:
    most = largest(limit)
    biggest = job_of(CEILING if most is None else most)
    assert limit.size(biggest, SHORT.options) <= limit.most
    assert most is None or limit.size(job_of(most + 1), SHORT.options) > limit.most


def test_the_document_is_changed_between_the_marks_alone() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert written(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert written(written(page, "other"), "new") == written(page, "new")


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END} {BEGIN}"], ids=["no mark", "no end", "no begin", "the wrong way round"])
def test_a_document_without_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"must have {BEGIN} and, after it, {END}")):
        written(page, "new")


def test_the_document_has_the_marks_and_the_limits_of_the_builders_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, "new")
    told = [line for line in page.splitlines() if line.startswith(f"| {CONFIG_MAP.title} | ")]
    numbers = " | ".join(f"{largest(CONFIG_MAP, naming):,}" for naming in NAMINGS)
    assert [numbers in line for line in told] == [True], "run `make bench-scaling WRITE=1`"


def test_results_are_read_as_they_were_stored(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    report.write(path, measured())
    _, outcomes = report.read(path)
    assert model_of(outcomes).laws == model_of(measured()).laws
