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
    courses = {name: Course(**raw[name]) if raw.get(name) else None for name in ("reporting_floor", "ours")}
    floors = {level: Course(**course) for level, course in raw["floors"].items()}
    found = {**raw, **courses, "floors": floors, "cost": Cost(**raw["cost"]) if raw["cost"] else None}
    if theirs := raw.get("reference"):
        found["reference"] = Run(**{**theirs, "course": Course(**theirs["course"]), "cost": Cost(**theirs["cost"])})
    return Outcome(**found)


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
    if outcome.reporting_floor is not None:
        lines.append(f"  floor that reports: {_course(outcome.reporting_floor)}")
    if (theirs := outcome.of_reference()) is not None:
        lines += _operator("in Go", theirs)
    lines += _operator("ours", outcome)
    lines += [f"  {name}: {value:g}" for name, value in outcome.figures.items()]
    return "\n".join(lines)


def _operator(name: str, outcome: Outcome) -> list[str]:
    lines = list[str]()
    if outcome.ours is not None:
        lines.append(f"  {name + ':':19} {_course(outcome.ours)}; {outcome.ours.seen_running} seen running")
        lines += _ratios(name, outcome)
    if outcome.cost is not None:
        cost = outcome.cost
        workers = outcome.jobs * outcome.workers
        lines.append(
            f"  CPU {1000 * cost.cpu_seconds / outcome.jobs:.1f} ms a job, {1000 * cost.cpu_seconds / workers:.2f} ms a worker; "
            f"memory {_all(cost.rss_mib)} MiB; {cost.syncs / outcome.jobs:.1f} syncs a job; queue {_all(cost.queue_seconds)} s"
        )
    counts = outcome.requests or (outcome.cost.own_count if outcome.cost else {})
    each = {name: count / outcome.jobs for name, count in counts.items()}
    lines.append(f"  {sum(each.values()):.1f} requests a job: {', '.join(f'{name} {count:.1f}' for name, count in each.items())}")
    return lines


def _ratios(name: str, outcome: Outcome) -> list[str]:
    floor, ours = outcome.floor, outcome.ours
    if floor is None or ours is None:
        return []
    words = [f"makespan {ours.makespan / floor.makespan:.2f}"]
    for what in ("created", "running", "succeeded"):
        pair = getattr(ours, what), getattr(floor, what)
        words += [f"{what} {name} {pair[0][name] / max(pair[1][name], 0.001):.2f}" for name in pair[1] if name in pair[0]]
    return [f"  {name + ' by floor:':19} {', '.join(words)}"]


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
