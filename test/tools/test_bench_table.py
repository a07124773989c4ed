"""Which scenarios are measured, what is kept of them, and what the table makes of it."""

from pathlib import Path

import pytest

from bench import results, table
from bench.results import Result, Round
from bench.scenarios import LARGE, SCENARIOS, find
from bench.table import BEGIN, END, ROWS


def burst(ours: float, reference: float = 10.0, *, cpu: float = 1.0) -> Round:
    """Return a round of a burst next to a floor of 5 s; the reference takes 2 ms of processor time a job."""
    return {
        "reference": {"makespan": reference, "CPU a job": 2.0},
        "mpiop": {"makespan": ours, "CPU a job": cpu},
        "floor": {"makespan": 5.0},
    }


def bursts(*rounds: Round) -> Result:
    return Result("burst-50x8", "here", rounds)


def cells(result: Result, title: str) -> list[str]:
    """Return the cells of the first row whose title has that text: reference, mpiop, ratio, goal, verdict."""
    row = next(each for each in ROWS if each.scenario == result.scenario and title in each.title)
    return list(row.line(result))[1:]


def test_both_stand_side_by_side_with_the_ratio_and_its_interval() -> None:
    assert cells(bursts(*[burst(7.0)] * 5), "all Succeeded") == ["10.0 s", "7.0 s", "0.70 (0.70 to 0.70)", "ratio ≤ 1", "reached"]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        pytest.param((11.0,) * 5, "**not reached**", id="above the goal"),
        pytest.param((9.0, 9.0, 9.0, 11.0, 11.0), "reached, within the noise", id="below it by chance, perhaps"),
        pytest.param((11.0, 11.0, 11.0, 9.0, 9.0), "**not reached**, within the noise", id="above it by chance, perhaps"),
        pytest.param((10.0,) * 5, "reached", id="just the goal"),
        pytest.param((9.0,) * 4, "too few rounds: 4 of 5", id="fewer rounds than usual prove nothing"),
        pytest.param((11.0,), "**not reached**", id="one bad round is bad enough to say so"),
    ],
)
def test_each_row_says_whether_the_goal_is_reached(ours: tuple[float, ...], verdict: str) -> None:
    assert cells(bursts(*map(burst, ours)), "all Succeeded")[-1] == verdict


def test_the_floor_of_the_same_round_is_shown_and_is_no_goal() -> None:
    assert cells(bursts(*[burst(7.0)] * 5), "relative to the API server's") == ["2.00", "1.40", "0.70 (0.70 to 0.70)", "", ""]


def one_job(failed_tries: int, rounds: int = 20) -> Result:
    """Return rounds of three runs each; of mpiop, tries failed in the first round alone."""
    ours = [{"failed tries": 0.0 if number else failed_tries, "runs": 3.0} for number in range(rounds)]
    theirs = {"failed tries": 1.0, "runs": 3.0}
    return Result("one-job", "here", [{"reference": theirs, "mpiop": each} for each in ours])


@pytest.mark.parametrize(
    ("result", "mpiop", "verdict"),
    [
        pytest.param(one_job(0), "0 in 60 runs", "reached", id="none"),
        pytest.param(one_job(1), "1 in 60 runs", "**not reached**", id="one in all rounds is too many, though the median is 0"),
        pytest.param(one_job(0, rounds=16), "0 in 48 runs", "too few runs: 48", id="too few runs to tell"),
    ],
)
def test_tries_that_failed_are_counted_over_all_rounds(result: Result, mpiop: str, verdict: str) -> None:
    theirs, ours, _, goal, found = cells(result, "failed launcher attempts")

    assert theirs.startswith(f"{len(result.rounds)} in ")
    assert (ours, goal, found) == (mpiop, "0 in 50 runs", verdict)


def test_memory_beside_others_is_compared_with_our_own_alone() -> None:
    measured = Result("memory", "here", [{"reference": {"idle": 50.0, "beside": 100.0}, "mpiop": {"idle": 60.0, "beside": 63.0}}] * 5)

    assert cells(measured, "without a job") == ["50 MiB", "60 MiB", "1.20 (1.20 to 1.20)", "ratio ≤ 1.1", "**not reached**"]
    assert cells(measured, "next to") == ["100 MiB", "63 MiB", "1.05 (1.05 to 1.05)", "ratio to idle ≤ 1.1", "reached"]


@pytest.mark.parametrize(("seconds", "verdict"), [(0.4, "reached"), (1.5, "**not reached**")])
def test_a_failover_has_a_bound_of_its_own(seconds: float, verdict: str) -> None:
    measured = Result("failover", "here", [{"reference": {"failover": 16.0}, "mpiop": {"failover": seconds}}] * 5)

    assert cells(measured, "leader")[3:] == ["≤ 1.00 s", verdict]


def test_every_scenario_has_a_row_and_every_row_a_scenario() -> None:
    assert {row.scenario for row in ROWS} == {scenario.name for scenario in (*SCENARIOS, *LARGE)}


def test_the_newest_result_of_each_scenario_is_kept(tmp_path: Path) -> None:
    old, new, other = bursts(burst(9.0)), bursts(burst(7.0), burst(8.0)), Result("failover", "there", [{"mpiop": {"failover": 0.4}}])
    for result in (old, other, new):
        results.write(tmp_path, result)

    kept = results.read(tmp_path)

    assert {name: list(result.rounds) for name, result in kept.items()} == {"burst-50x8": list(new.rounds), "failover": list(other.rounds)}
    assert table.rendered(kept).splitlines()[:2] == ["- burst-50x8 (2 rounds): here.", "- failover (1 round): there."]


def test_the_table_takes_its_place_on_the_page(tmp_path: Path) -> None:
    page, newest = tmp_path / "page.md", {"burst-50x8": bursts(burst(7.0))}
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n", encoding="utf-8")

    table.write(page, newest)
    table.write(page, newest)

    assert page.read_text(encoding="utf-8") == f"before\n\n{BEGIN}\n\n{table.rendered(newest)}\n\n{END}\n\nafter\n"


def test_what_the_page_has_of_other_scenarios_stays(tmp_path: Path) -> None:
    page, failover = tmp_path / "page.md", Result("failover", "there", [{"mpiop": {"failover": 0.4}}])
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    table.write(page, {"burst-50x8": bursts(burst(9.0)), "failover": failover})

    table.write(page, {"burst-50x8": bursts(burst(7.0), burst(8.0))})

    expected = {"burst-50x8": bursts(burst(7.0), burst(8.0)), "failover": failover}
    assert page.read_text(encoding="utf-8") == f"{BEGIN}\n\n{table.rendered(expected)}\n\n{END}\n"


def test_a_page_without_a_place_for_the_table_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n", encoding="utf-8")

    with pytest.raises(ValueError, match="<!-- bench -->"):
        table.write(page, {})


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param((), [scenario.name for scenario in SCENARIOS], id="all"),
        pytest.param(("failover", "one-job"), ["failover", "one-job"], id="some, in the order asked for"),
        pytest.param(("small-10x8",), ["small-10x8"], id="one that does not run by default"),
    ],
)
def test_scenarios_are_chosen_by_name(names: tuple[str, ...], found: list[str]) -> None:
    assert [scenario.name for scenario in find(names)] == found


def test_an_unknown_scenario_is_an_error_that_lists_the_names() -> None:
    with pytest.raises(ValueError, match=r"no scenario burst, x; the scenarios are one-job, burst-50x8, .*failover"):
        find(("burst", "one-job", "x"))
