"""Shows and stores what was measured."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.results import Cost, Course, Outcome, Run
from bench.verdict import ROWS, Outcomes
from demonstration.cluster import ROOT


def machine() -> dict[str, Any]:
    """Return what the figures were measured on, and which version."""
    described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    memory = next(line for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines() if line.startswith("MemTotal"))
    return {
        "version": described.strip(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "memory_gib": round(int(memory.split()[1]) / 2**20),
        "python": platform.python_version(),
    }


def write(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write everything as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "outcomes": [asdict(outcome) for outcome in outcomes]}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[dict[str, Any], list[Outcome]]:
    """Return what `write` wrote: the machine, and the outcomes."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["machine"], [_outcome(each) for each in content["outcomes"]]


def _outcome(raw: dict[str, Any]) -> Outcome:
    runs = {name: _run(raw[name]) if raw[name] else None for name in ("reference", "ours")}
    floors = {name: {level: Course(**course) for level, course in raw[name].items()} for name in ("floors", "reporting_floors")}
    return Outcome(**{**raw, **runs, **floors, "others": tuple(map(_run, raw["others"]))})


def _run(raw: dict[str, Any]) -> Run:
    return Run(Course(**raw["course"]), Cost(**raw["cost"]), raw["requests"])


def by_name(outcomes: Sequence[Outcome]) -> Outcomes:
    """Return the outcomes by the name of their scenario."""
    return {outcome.scenario: outcome for outcome in outcomes}


def details(outcome: Outcome) -> str:
    """Render one outcome for people."""
    lines = [f"{outcome.scenario}: {outcome.jobs} jobs with {outcome.workers} workers"]
    for level, course in outcome.floors.items():
        objects = outcome.jobs * (outcome.workers + 6)
        last = course.created.get("p99", course.makespan)
        lines.append(f"  floor, {level:>2} at a time: {_course(course)}; about {objects / max(last, 0.001):.0f} creates a second")
    for level, course in outcome.reporting_floors.items():
        lines.append(f"  floor that reports, {level:>2} at a time: {_course(course)}")
    if outcome.floor is not None and outcome.reporting_floor is not None:
        lines.append(f"  floor that reports by floor: makespan {outcome.reporting_floor.makespan / outcome.floor.makespan:.2f}")
    for name, run in (("in Go", outcome.reference), ("ours", outcome.ours)):
        lines += _operator(name, outcome, run) if run else []
    if outcome.others:
        lines.append(f"  ours, other rounds: makespan {', '.join(f'{run.course.makespan:.1f} s' for run in outcome.others)}")
    lines += [f"  {name}: {value:g}" for name, value in outcome.figures.items()]
    return "\n".join(lines)


def _operator(name: str, outcome: Outcome, run: Run) -> list[str]:
    cost, workers = run.cost, outcome.jobs * outcome.workers
    each = {name: count / outcome.jobs for name, count in run.requests.items()}
    return [
        f"  {name + ':':19} {_course(run.course)}; {run.course.seen_running} seen running",
        *([_ratios(f"{name} by floor", run.course, outcome.floor)] if outcome.floor else []),
        *([_ratios(f"{name} by floor that reports", run.course, outcome.reporting_floor)] if outcome.reporting_floor else []),
        (
            f"  CPU {1000 * cost.cpu_seconds / outcome.jobs:.1f} ms a job, {1000 * cost.cpu_seconds / workers:.2f} ms a worker; "
            f"memory {_all(cost.rss_mib)} MiB; {cost.syncs / outcome.jobs:.1f} syncs a job; queue {_all(cost.queue_seconds)} s"
        ),
        f"  {sum(each.values()):.1f} requests a job: {', '.join(f'{name} {count:.1f}' for name, count in each.items())}",
    ]


def _ratios(name: str, course: Course, floor: Course) -> str:
    words = [f"makespan {course.makespan / floor.makespan:.2f}"]
    for what in ("created", "running", "succeeded"):
        pair = getattr(course, what), getattr(floor, what)
        words += [f"{what} {name} {pair[0][name] / max(pair[1][name], 0.001):.2f}" for name in pair[1] if name in pair[0]]
    return f"  {name + ':':19} {', '.join(words)}"


def _course(course: Course) -> str:
    spreads = "; ".join(f"{what} {_all(getattr(course, what))}" for what in ("created", "running", "succeeded"))
    return f"makespan {course.makespan:.1f} s; {spreads} (load {course.load})"


def _all(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


def verdicts(outcomes: Sequence[Outcome]) -> str:
    """Render the table of what is to be reached, as far as it was measured, as Markdown."""
    head = ("figure", "goal", "the Go operator", "measured", "verdict")
    rows = [head, *(row.line(by_name(outcomes)) for row in ROWS if row.figure(by_name(outcomes)) is not None)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]
    return "\n".join((lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]))
