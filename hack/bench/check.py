"""`make bench-check`: the figures that do not depend on how fast the machine is. Fails above any bound; never on times."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bench import command, report
from bench.measure import Bench
from bench.results import Outcome, Run
from bench.scenarios import find
from demonstration.cluster import ROOT
from embedded.progress import Progress

FOLDER = ROOT / "build" / "bench" / "check"
PATIENT: Final = ("--lease-duration=120s", "--renew-deadline=100s", "--retry-period=5s")
"""A machine that is too busy to renew the lease in time is none that these figures depend on."""
JOBS, FOREIGN = "small-10x8", "small-foreign"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must not be above.

    Attributes:
        why: Where the bound comes from.
    """

    title: str
    scenario: str
    most: float
    figure: Callable[[Outcome, Run], float]
    why: str


def _refused(_: Outcome, run: Run) -> int:
    return sum(count for name, count in run.requests.items() if ":" in name and not name.startswith("get "))


def _reads(outcome: Outcome, run: Run) -> float:
    return sum(count for name, count in run.requests.items() if name.startswith("get ")) / outcome.jobs


def _requests(*names: str) -> Callable[[Outcome, Run], float]:
    return lambda outcome, run: sum(run.requests.get(name, 0) for name in names) / outcome.jobs


BOUNDS: Final = (
    Bound(
        "creates a job but Events",
        JOBS,
        12,
        _requests(*(f"create {kind}" for kind in ("secrets", "services", "configmaps", "jobs", "pods"))),
        "one for each object: 4 and 8 Pods",
    ),
    Bound("Events a job", JOBS, 3, _requests("create events", "patch events"), "Created, Running, Succeeded"),
    Bound("deletes a job", JOBS, 8, _requests("delete pods"), "one for each worker"),
    Bound("patches of Pods a job", JOBS, 1, _requests("patch pods"), "the addresses of its workers"),
    Bound(
        "patches of status and hosts a job",
        JOBS,
        12,
        _requests("patch mpijobs", "patch configmaps"),
        "4, and counts of a start that takes long on a busy machine",
    ),
    Bound("reads a job", JOBS, 0, _reads, "the caches show all"),
    Bound("requests refused", JOBS, 0, _refused, "no conflict, nothing made twice"),
    Bound("syncs a job", JOBS, 40, lambda outcome, run: run.cost.syncs / outcome.jobs, "at most one for each of some 60 changes"),
    Bound("memory idle, MiB", JOBS, 64, lambda _, run: run.cost.rss_mib["idle"], "goal"),
    Bound("memory peak, MiB", JOBS, 80, lambda _, run: run.cost.rss_mib["peak"], "idle, 32 connections and 10 jobs"),
    Bound("memory idle beside 1,000 foreign Pods, MiB", FOREIGN, 66, lambda _, run: run.cost.rss_mib["idle"], "goal"),
)


async def measured(cluster: str) -> Mapping[str, Outcome]:
    """Return what the small scenarios took, without a floor and without an audit log."""
    progress = Progress()
    bench = Bench(progress, FOLDER, levels=(), cluster=cluster, has_audit=False, flags=PATIENT)
    scenarios = find((JOBS, FOREIGN))
    progress.expect(len(scenarios))
    return {scenario.name: await bench.run(scenario) for scenario in scenarios}


def main() -> int:
    """Measure, show each figure beside its bound, and return 1 when one is above it."""
    parser = argparse.ArgumentParser(prog="make bench-check", description=__doc__)
    parser.add_argument("--name", default="bench-check", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    outcomes = asyncio.run(measured(given.name))
    report.write(FOLDER / "results.json", list(outcomes.values()))
    print(report.details(outcomes[JOBS]))
    failures = 0
    for bound in BOUNDS:
        outcome = outcomes[bound.scenario]
        if outcome.ours is None:
            raise ValueError(f"{bound.scenario} is no scenario in which jobs come")
        figure = bound.figure(outcome, outcome.ours)
        failures += figure > bound.most
        print(f"{'ok    ' if figure <= bound.most else 'FAILED'} {bound.title:44} {figure:7.1f}  at most {bound.most:g} ({bound.why})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(command.run("bench-check", main))
