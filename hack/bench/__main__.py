"""`make bench`: mpiop and the reference, Kubeflow's MPI Operator, side by side: how long jobs take, and what the operators use."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import broken, command, failover, libraries, loads, memory, real_jobs, results, shares, steps, stock, table
from bench.scenarios import LARGE, Kind, Scenario, find
from bench.session import Setting, Turns, by_operator, measure
from demonstration.cluster import ROOT
from embedded.progress import Progress

FOLDER: Final = ROOT / "build" / "bench"
PAGE: Final = ROOT / "docs" / "performance.md"
TURNS: Final[Mapping[Kind, Turns]] = {
    Kind.REAL_JOB: real_jobs.turns,
    Kind.LOAD: loads.turns,
    Kind.MEMORY: by_operator(memory.turn),
    Kind.FAILOVER: by_operator(failover.turn),
    Kind.STOCK: by_operator(stock.turn),
    Kind.LIBRARIES: libraries.turns,
    Kind.BROKEN: by_operator(broken.turn),
    Kind.SHARES: shares.turns,
    Kind.STEPS: steps.turns,
}


async def bench(scenarios: Sequence[Scenario], rounds: int, cluster: str, folder: Path) -> None:
    """Measure the scenarios one after the other."""
    progress = Progress()
    turns = {Kind.LOAD: 3, Kind.LIBRARIES: 1, Kind.STEPS: 1}
    progress.expect(sum((rounds or each.rounds) * turns.get(each.kind, 2) for each in scenarios))
    for scenario in scenarios:
        await measure(Setting(scenario, cluster, folder), TURNS[scenario.kind], rounds or scenario.rounds, progress)


def _names(scenarios: Sequence[Scenario]) -> str:
    return ", ".join(scenario.name for scenario in scenarios)


def main() -> int:
    """Read the command line, measure, and show the newest result of each scenario."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--scenarios", default="", metavar="NAMES", help=f"with commas between; default: all but {_names(LARGE)}")
    parser.add_argument("--rounds", type=int, default=0, help="of each scenario; default: what each needs, 1 to 20")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)} too")
    parser.add_argument("--name", default="bench", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    if given.rounds < 0:
        parser.error(f"--rounds {given.rounds}: make it 1 or more")
    scenarios = find(given.scenarios.replace(",", " ").split())
    shutil.rmtree(FOLDER / "logs", ignore_errors=True)
    asyncio.run(bench(scenarios, given.rounds, given.name, FOLDER))
    newest = results.read(FOLDER)
    print(f"\n{table.rendered(newest)}\n\nall samples: {FOLDER.relative_to(ROOT)}/*.json")
    if given.write:
        table.write(PAGE, newest)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("bench", main))
