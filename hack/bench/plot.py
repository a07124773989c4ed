"""Draws what was measured: `python -m bench.plot` turns build/bench/results.json into docs/performance.svg."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from bench.report import read
from bench.results import Outcome, middle
from demonstration.cluster import ROOT

mpl.use("svg")  # no display is needed, nor looked for

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

RESULTS = ROOT / "build" / "bench" / "results.json"
PLOT = ROOT / "docs" / "performance.svg"
_FLOOR, _OURS = "#b0b7c3", "#2f6fde"


def draw(outcomes: Sequence[Outcome], title: str, path: Path) -> None:
    """Draw makespans and times to Running beside the floor's, and the processor time, into the SVG `path`."""
    loads = [(each, middle(each.floor), each.ours) for each in outcomes if each.ours and each.floor]
    if not loads:
        raise ValueError("no scenario with a floor was measured: run `make bench` first")
    names = [f"{outcome.jobs} × {outcome.workers}{' *' if 'foreign' in outcome.scenario else ''}" for outcome, _, __ in loads]  # noqa: RUF001 - a figure
    figure, (spans, running, cpu) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    _bars(spans, names, [floor.makespan for _, floor, __ in loads], [run.course.makespan for _, __, run in loads])
    spans.set_title("first job sent → last Succeeded, s")
    _bars(running, names, [floor.running["p50"] for _, floor, __ in loads], [run.course.running.get("p50", 0.0) for _, __, run in loads])
    running.set_title("job sent → Running (median), s")
    cpu.barh(names, [1000 * run.cost.cpu_seconds / (each.jobs * each.workers) for each, _, run in loads], color=_OURS)
    cpu.set_title("operator's CPU a worker, ms")
    cpu.invert_yaxis()
    spans.legend(["floor: bare client", "operator"], loc="lower right", frameon=False)
    figure.suptitle(f"{title}   (jobs × workers; * beside 10,000 foreign Pods)", fontsize=9)  # noqa: RUF001 - the same
    figure.savefig(path, metadata={"Date": None})


def _bars(axes: Axes, names: Sequence[str], floor: Sequence[float], ours: Sequence[float]) -> None:
    places = range(len(names))
    axes.barh([place - 0.2 for place in places], floor, height=0.38, color=_FLOOR)
    bars = axes.barh([place + 0.2 for place in places], ours, height=0.38, color=_OURS)
    axes.bar_label(bars, [f"{mine / bare:.2f}" if bare else "" for mine, bare in zip(ours, floor, strict=True)], padding=3, fontsize=8)
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
