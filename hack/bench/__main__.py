"""`make bench`: how fast the operator is, what it costs, and how near that is to what the API server can do."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import command, report
from bench.measure import Bench
from bench.results import Outcome
from bench.scenarios import LEVELS, Kind, Scenario, find
from demonstration.cluster import ROOT, is_current_wanted
from embedded.progress import Progress

FOLDER = ROOT / "build" / "bench"


async def measure(bench: Bench, scenarios: Sequence[Scenario], results: Path) -> list[Outcome]:
    """Measure the scenarios one after the other; what is there is stored after each."""
    outcomes: list[Outcome] = []
    bench.progress.expect(sum(steps(scenario, bench) for scenario in scenarios))
    for scenario in scenarios:
        outcomes.append(await bench.run(scenario))
        report.write(results, outcomes)
        print(report.details(outcomes[-1]), flush=True)
    return outcomes


def steps(scenario: Scenario, bench: Bench) -> int:
    """Return how many steps of the progress the scenario has."""
    if scenario.kind is not Kind.LOAD:
        return 1
    return scenario.rounds * (1 + len(bench.levels) * (1 + bench.has_reports) + bench.has_reference)


def main() -> int:
    """Read the command line, measure, and show what was reached."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scenarios", default="", metavar="NAMES", help="with commas between; default: all")
    parser.add_argument("--levels", default=",".join(map(str, LEVELS)), help="requests of the floor at a time; '' leaves the floor out")
    parser.add_argument("--reports", action="store_true", help="measure also a floor that follows all objects and reports")
    parser.add_argument("--reference", action="store_true", help="measure also Kubeflow's operator in Go, without its throttles")
    parser.add_argument("--name", default="bench", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    levels = tuple(int(level) for level in given.levels.split(",") if level)
    if given.reference and is_current_wanted():
        parser.error("--reference needs a cluster of its own: on yours it would let the operator's service account do anything")
    if given.reports and not levels:
        parser.error("--reports needs a level: --levels=32")
    results = FOLDER / "results.json"
    shutil.rmtree(FOLDER / "logs", ignore_errors=True)
    scenarios = find(given.scenarios.replace(",", " ").split())
    bench = Bench(Progress(), FOLDER / "logs", levels, given.name, has_reports=given.reports, has_reference=given.reference)
    outcomes = asyncio.run(measure(bench, scenarios, results))
    print(f"\n{report.verdicts(outcomes)}\n\nall of it: {results.relative_to(ROOT)}")
    if any(outcome.floors for outcome in outcomes):
        from bench import plot  # noqa: PLC0415 - a second that only those pay who have something to draw

        plot.draw(outcomes, plot.title(report.machine()), results.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(command.run("bench", main))
