"""Draws what was measured: `python -m bench.plot` turns build/bench/results.json into docs/performance.svg."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

from bench.report import read
from bench.results import Course, Outcome, ratios
from demonstration.cluster import ROOT

mpl.use("svg")  # no display is needed, nor looked for

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

RESULTS = ROOT / "build" / "bench" / "results.json"
PLOT = ROOT / "docs" / "performance.svg"
_FLOOR, _OURS = "#b0b7c3", "#2f6fde"


def draw(outcomes: Sequence[Outcome], title: str, path: Path) -> None:
    """Draw makespans and times to Running beside the floor's, and the processor time, into the SVG `path`."""
    loads = [each for each in outcomes if each.runs and each.floor]
    if not loads:
        raise ValueError("no scenario with a floor was measured: run `make bench` first")
    names = [f"{each.jobs} × {each.workers}{' *' if 'foreign' in each.scenario else ''}" for each in loads]  # noqa: RUF001 - a figure
    figure, (spans, running, cpu) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    _bars(spans, names, loads, lambda course: course.makespan)
    spans.set_title("first job sent → last Succeeded, s")
    _bars(running, names, loads, lambda course: course.running.get("p50", 0.0))
    running.set_title("job sent → Running (median), s")
    cpu.barh(names, [median(1000 * run.cost.cpu_seconds for run in each.runs) / (each.jobs * each.workers) for each in loads], color=_OURS)
    cpu.set_title("operator's CPU a worker, ms")
    cpu.invert_yaxis()
    spans.legend(["floor: bare client", "operator"], loc="lower right", frameon=False)
    figure.suptitle(f"{title}   (jobs × workers; * beside 10,000 foreign Pods)", fontsize=9)  # noqa: RUF001 - the same
    figure.savefig(path, metadata={"Date": None})


def _bars(axes: Axes, names: Sequence[str], loads: Sequence[Outcome], value: Callable[[Course], float]) -> None:
    """Draw medians of the rounds, and beside them the median of each round's own ratio, as everywhere."""
    places = range(len(names))
    axes.barh([place - 0.2 for place in places], [median(map(value, each.floor)) for each in loads], height=0.38, color=_FLOOR)
    courses = [[run.course for run in each.runs] for each in loads]
    bars = axes.barh([place + 0.2 for place in places], [median(map(value, ours)) for ours in courses], height=0.38, color=_OURS)
    by_floor = (ratios(ours, each.floor, value) for ours, each in zip(courses, loads, strict=True))
    axes.bar_label(bars, [f"{median(found):.2f}" if found else "" for found in by_floor], padding=3, fontsize=8)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.margins(x=0.15)


def title(machine: Mapping[str, Any]) -> str:
    """Return what stands above: which version, on what."""
    return f"mpiop {machine['version']}, {machine['cores']} cores, {machine['memory_gib']} GiB"


def main() -> int:
    """Draw the newest results."""
    if not RESULTS.exists():
        print("there are no results yet: make bench", file=sys.stderr)
        return 2
    machine, outcomes = read(RESULTS)
    draw(outcomes, title(machine), PLOT)
    print(PLOT.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
