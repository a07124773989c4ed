"""What becomes of several rounds of a measurement, and of what is stored of it."""

from pathlib import Path

from bench import report
from bench.results import Cost, Course, Outcome, Run, ratios
from bench.verdict import ROWS

GO_MAKESPANS = (13.0, 15.0, 14.0)


def course(makespan: float, seen_running: int = 100) -> Course:
    return Course(makespan, {}, {}, {}, {}, seen_running, work_ms=6.0)


def run(makespan: float, seen_running: int = 100, conflicts: int = 0) -> Run:
    return Run(course(makespan, seen_running), Cost(makespan / 10, {"idle": 60.0}, 10, {}), {"patch pods: 409": conflicts})


def outcome(*ours: Run) -> Outcome:
    """Return three rounds whose floors took 9 and 10, 8 and 11, 18 and 7 seconds: the second level is the better one."""
    floors = {"8": list(map(course, (9.0, 8.0, 18.0))), "16": list(map(course, (10.0, 11.0, 7.0)))}
    return Outcome("burst-100x4", 100, 4, floors=floors, runs=list(ours), references=list(map(run, GO_MAKESPANS)))


def row(measured: Outcome, title: str) -> tuple[str, str]:
    (found,) = (each for each in ROWS if title in each.title)
    *_, text, verdict = found.line({measured.scenario: measured})
    return text, verdict


def test_each_run_is_compared_with_the_floor_of_its_own_round() -> None:
    """A machine that gets slow hurts both; of the runs alone the middle one would be 1.21 of the middle floor."""
    measured = outcome(run(10.5), run(12.1), run(7.0))

    assert row(measured, "100 jobs with 4 workers") == ("1.05 (10.5 s, floor 10.0 s; 3 runs: 1.00 to 1.10)", "reached")
    assert "ours by floor:      makespan 1.05 (rounds: 1.05, 1.10, 1.00)" in report.details(measured)


def test_the_best_level_of_the_floor_is_that_of_all_rounds() -> None:
    measured = outcome(run(9.0), run(9.9), run(12.0))

    assert [floor.makespan for floor in measured.floor] == [10.0, 11.0, 7.0]
    assert ratios([measured.runs[0].course], [measured.floor[0]]) == [0.9]


def test_costs_are_the_middle_ones() -> None:
    measured = outcome(run(12.0), run(9.0), run(9.9))

    assert row(measured, "CPU per 4-worker job") == ("9.9 ms (3 runs: 9.0 ms to 12.0 ms)", "reached")
    assert "| 14.0 ms in this run" in report.verdicts([measured])


def test_what_must_never_be_counts_in_all_rounds() -> None:
    measured = outcome(run(9.0, seen_running=99), run(9.9), run(12.0, conflicts=2))

    assert row(measured, "seen Running") == ("99 (3 runs: 99 to 100)", "NOT REACHED")
    assert row(measured, "conflicts") == ("2 (3 runs: 0 to 2)", "NOT REACHED")


def test_one_round_has_no_others() -> None:
    measured = Outcome("burst-100x4", 100, 4, floors={"8": [course(10.0)]}, runs=[run(11.0)])

    assert row(measured, "100 jobs with 4 workers") == ("1.10 (11.0 s, floor 10.0 s)", "reached")
    assert "rounds" not in report.details(measured)


def test_without_a_floor_nothing_is_said_of_it() -> None:
    measured = Outcome("burst-100x4", 100, 4, runs=[run(11.0)])

    assert next(each for each in ROWS if "100 jobs" in each.title).figure({measured.scenario: measured}) is None
    assert "by floor" not in report.details(measured)


def test_all_rounds_are_stored(tmp_path: Path) -> None:
    measured = outcome(run(9.0), run(9.9), run(12.0))

    report.write(tmp_path / "results.json", [measured])

    assert report.read(tmp_path / "results.json")[1] == [measured]
