"""`make bench-compare BASE=<commit>`: two versions of the operator by turns on the same machine, and what differs beyond noise."""

import argparse
import asyncio
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from bench import command
from bench.measure import Bench
from bench.results import Outcome, Run
from bench.scenarios import Kind, Scenario, find
from demonstration.cluster import ROOT
from embedded.progress import Progress

FOLDER = ROOT / "build" / "bench" / "compare"
VERSIONS: Final = ("base", "this")
_LEAST_CHANGE: Final = 0.02
"""Less than this share is no change, however even the runs were."""

_FIGURES: Final[Mapping[str, Callable[[Outcome, Run], float]]] = {
    "makespan, s": lambda _, run: run.course.makespan,
    "all pods made, p99 of jobs, s": lambda _, run: run.course.created["p99"],
    "Running, p50 of jobs, s": lambda _, run: run.course.running.get("p50", 0.0),
    "Running, p99 of jobs, s": lambda _, run: run.course.running.get("p99", 0.0),
    "jobs seen Running before the end": lambda _, run: run.course.seen_running,
    "CPU a job, ms": lambda outcome, run: 1000 * run.cost.cpu_seconds / outcome.jobs,
    "memory idle, MiB": lambda _, run: run.cost.rss_mib["idle"],
    "memory peak, MiB": lambda _, run: run.cost.rss_mib["peak"],
    "requests a job": lambda outcome, run: sum(run.requests.values()) / outcome.jobs,
    "syncs a job": lambda outcome, run: run.cost.syncs / outcome.jobs,
    "queue, mean, s": lambda _, run: run.cost.queue_seconds["mean"],
}


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of both versions, one value a run.

    Attributes:
        is_beyond_noise: No run of one version came between those of the other, and the means are not next to each other.
    """

    name: str
    base: Sequence[float]
    this: Sequence[float]

    @property
    def share(self) -> float:
        """Return by which share the mean has grown; negative when it has shrunk."""
        before = fmean(self.base)
        return fmean(self.this) / before - 1 if before else 0.0

    @property
    def is_beyond_noise(self) -> bool:
        """Return whether it is a change and not chance."""
        are_apart = max(self.base) < min(self.this) or max(self.this) < min(self.base)
        return are_apart and abs(self.share) > _LEAST_CHANGE

    def __str__(self) -> str:
        """Render it as a line of the table."""
        sides = [f"{fmean(values):9.2f} ({min(values):.2f} to {max(values):.2f})" for values in (self.base, self.this)]
        return f"{self.name:34} {sides[0]:>28} {sides[1]:>28} {self.share:+8.1%}  {'CHANGED' if self.is_beyond_noise else ''}".rstrip()


def check_out(commit: str, folder: Path) -> Path:
    """Write the operator's source as of `commit` into `folder` and return that.

    Raises:
        RuntimeError: There is no such commit.
    """
    ended = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"BASE={commit}: {ended.stderr.decode().strip()}")
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(ended.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def compare(bases: Mapping[str, Path], scenario: Scenario, rounds: int, cluster: str) -> list[Change]:
    """Measure each version `rounds` times, by turns, and return what differs."""
    progress, found = Progress(), {version: list[dict[str, float]]() for version in VERSIONS}
    progress.expect(rounds * len(VERSIONS))
    for number in range(rounds):
        for version in VERSIONS[:: 1 if number % 2 == 0 else -1]:
            progress.say(f"round {number + 1}: {version}")
            bench = Bench(progress, FOLDER / version, levels=(), cluster=cluster, source=bases[version], has_audit=False)
            outcome = await bench.run(scenario)
            if outcome.ours is None:
                raise ValueError(f"{scenario.name} cannot be compared: choose one in which jobs come")
            found[version].append({name: figure(outcome, outcome.ours) for name, figure in _FIGURES.items()})
    return [Change(name, *([run[name] for run in found[version]] for version in VERSIONS)) for name in _FIGURES]


def main() -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(prog="make bench-compare", description=__doc__)
    parser.add_argument("--base", required=True, metavar="COMMIT", help="what to compare the work tree with")
    parser.add_argument("--scenarios", default="burst-50x8", metavar="NAMES", help="with commas between (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each version (default: %(default)s)")
    parser.add_argument("--name", default="bench", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    sources = {"base": check_out(given.base, FOLDER / "source"), "this": ROOT}
    scenarios = [replace(each, rounds=1) for each in find(given.scenarios.replace(",", " ").split()) if each.kind is Kind.LOAD]
    for scenario in scenarios:
        changes = asyncio.run(compare(sources, scenario, given.rounds, given.name))
        print(f"\n{scenario.name}: {given.base}, then the work tree; mean (least to most) of {given.rounds} runs")
        print("\n".join(map(str, changes)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("bench-compare", main))
