"""`make bench-check`: the figures that do not depend on how fast the machine is. Fails above any bound; never on times."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench import command
from bench.bench_cluster import bench_cluster
from bench.loads import Load, loaded, make_foreign_pods
from bench.operator_process import ours
from bench.scenarios import Scenario, find
from bench.session import leading
from demonstration.cluster import ROOT
from embedded.progress import Progress

FOLDER = ROOT / "build" / "bench" / "check"
PATIENT: Final = ("--lease-duration=120s", "--renew-deadline=100s", "--retry-period=5s")
"""A machine that is too busy to renew the lease in time is none that these figures depend on."""
JOBS, SLOW, FOREIGN = "small-10x8", "small-slow", "small-foreign"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must not be above.

    Attributes:
        figure: Computed of what was measured and the number of jobs.
        why: Where the bound comes from.
    """

    title: str
    scenario: str
    most: float
    figure: Callable[[Load, int], float]
    why: str


def _refused(load: Load, _jobs: int) -> int:
    return sum(count for name, count in load.requests.items() if ":" in name and not name.startswith("get "))


def _reads(load: Load, jobs: int) -> float:
    return sum(count for name, count in load.requests.items() if name.startswith("get ")) / jobs


def _requests(*names: str) -> Callable[[Load, int], float]:
    return lambda load, jobs: sum(load.requests.get(name, 0) for name in names) / jobs


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
    Bound("patches of Pods a job", JOBS, 2, _requests("patch pods"), "the addresses of its workers, for two rounds of the kubelet"),
    Bound(
        "patches of status and hosts a job",
        JOBS,
        20,
        _requests("patch mpijobs", "patch configmaps"),
        "4, and at most two for each worker that starts by itself",
    ),
    Bound(
        "statuses of a slow start",
        SLOW,
        12,
        _requests("patch mpijobs"),
        "Created, Running, Succeeded, batches after 1, 3, 7, 15 and 25 s, the last worker, and three more on a busy machine",
    ),
    Bound(
        "lists of hosts of a slow start",
        SLOW,
        8,
        _requests("patch configmaps"),
        "these batches, the last worker, the end, and one more on a busy machine",
    ),
    Bound("reads a job", JOBS, 0, _reads, "the caches show all"),
    Bound("requests refused", JOBS, 0, _refused, "no conflict, nothing made twice"),
    Bound("syncs a job", JOBS, 40, lambda load, jobs: load.syncs / jobs, "at most one for each of some 60 changes"),
    Bound("memory idle, MiB", JOBS, 64, lambda load, _: load.idle_mib, "goal"),
    Bound("memory peak, MiB", JOBS, 80, lambda load, _: load.peak_mib, "idle, 32 connections and 10 jobs"),
    Bound("memory idle beside 1,000 foreign Pods, MiB", FOREIGN, 66, lambda load, _: load.idle_mib, "goal"),
)


async def measured(cluster: str, scenarios: Sequence[Scenario]) -> Mapping[str, Load]:
    """Return what the operator takes for each scenario, without an audit log."""
    progress, found = Progress(), dict[str, Load]()
    progress.expect(len(scenarios))
    for scenario in scenarios:
        with progress.step(scenario.title) as step:
            async with bench_cluster(cluster, FOLDER / scenario.name, nodes=scenario.nodes) as here:
                await make_foreign_pods(here, scenario)
                async with leading(here, ours(flags=PATIENT)) as operator, operator.alive():
                    found[scenario.name] = await loaded(here, scenario, operator, step)
    return found


def main() -> int:
    """Measure, show each figure next to its bound, and return 1 when one is above it."""
    parser = argparse.ArgumentParser(prog="make bench-check", description=__doc__)
    parser.add_argument("--name", default="bench-check", help="of the embedded cluster (default: %(default)s)")
    given = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    scenarios = find((JOBS, SLOW, FOREIGN))
    loads, jobs = asyncio.run(measured(given.name, scenarios)), {scenario.name: scenario.jobs for scenario in scenarios}
    print(f"requests of {jobs[JOBS]} jobs: {', '.join(f'{name} {count}' for name, count in loads[JOBS].requests.items())}")
    failures = 0
    for bound in BOUNDS:
        figure = bound.figure(loads[bound.scenario], jobs[bound.scenario])
        failures += figure > bound.most
        print(f"{'ok    ' if figure <= bound.most else 'FAILED'} {bound.title:44} {figure:7.1f}  at most {bound.most:g} ({bound.why})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(command.run("bench-check", main))
