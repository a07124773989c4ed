"""What becomes of several rounds of a measurement, and of what is stored of it."""

from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.results import Cost, Course, Outcome, Run, middle
from bench.verdict import ROWS

GO_MAKESPANS = (13.0, 15.0, 14.0)


def course(makespan: float, seen_running: int = 100) -> Course:
    return Course(makespan, {}, {}, {}, {}, seen_running, load=0.0)


def run(makespan: float, seen_running: int = 100, conflicts: int = 0) -> Run:
    return Run(course(makespan, seen_running), Cost(makespan / 10, {"idle": 60.0}, 10, {}), {"patch pods: 409": conflicts})


def rounds(*ours: Run) -> Sequence[Outcome]:
    """Return rounds whose floors took 9 and 10, 8 and 11, 13 and 7 seconds."""
    floors = [{"8": course(a), "16": course(b)} for a, b in ((9.0, 10.0), (8.0, 11.0), (13.0, 7.0))]
    return [
        Outcome("burst-100x4", 100, 4, floors=floor, ours=each, reference=run(go))
        for floor, each, go in zip(floors, ours, GO_MAKESPANS, strict=True)
    ]


def row(outcome: Outcome, title: str) -> tuple[str, str]:
    (found,) = (each for each in ROWS if title in each.title)
    *_, measured, verdict = found.line({outcome.scenario: outcome})
    return measured, verdict


def test_the_middle_run_of_each_counts() -> None:
    outcome = middle(rounds(run(9.0), run(9.9), run(12.0)))

    assert {level: floor.makespan for level, floor in outcome.floors.items()} == {"8": 9.0, "16": 10.0}
    assert outcome.reference == run(14.0)
    assert outcome.ours == run(9.9)
    assert row(outcome, "100 jobs with 4 workers") == ("1.10 (9.9 s, floor 9.0 s)", "reached")


def test_what_must_never_be_counts_in_all_rounds() -> None:
    outcome = middle(rounds(run(9.0, seen_running=99), run(9.9), run(12.0, conflicts=2)))

    assert row(outcome, "seen Running") == ("99", "NOT REACHED")
    assert row(outcome, "conflicts") == ("2", "NOT REACHED")


def test_one_round_is_as_it_was() -> None:
    (one,) = rounds(run(9.0), run(9.9), run(12.0))[:1]
    assert middle([one]) == one


def test_all_rounds_are_stored(tmp_path: Path) -> None:
    outcome = middle(rounds(run(9.0), run(9.9), run(12.0)))

    report.write(tmp_path / "results.json", [outcome])

    assert report.read(tmp_path / "results.json")[1] == [outcome]
    assert "ours, other rounds: makespan 9.0 s, 12.0 s" in report.details(outcome)
