"""Shows and stores what was measured."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from bench.results import Cost, Course, Outcome, Run, creates_a_second, middle, ratios
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
    floors = {
        name: {level: [Course(**each) for each in rounds] for level, rounds in raw[name].items()} for name in ("floors", "reporting_floors")
    }
    return Outcome(**{**raw, **floors, **{name: [_run(each) for each in raw[name]] for name in ("references", "runs")}})


def _run(raw: dict[str, Any]) -> Run:
    return Run(Course(**raw["course"]), Cost(**raw["cost"]), raw["requests"])


def by_name(outcomes: Sequence[Outcome]) -> Outcomes:
    """Return the outcomes by the name of their scenario."""
    return {outcome.scenario: outcome for outcome in outcomes}


def details(outcome: Outcome) -> str:
    """Render one outcome for people."""
    lines = [f"{outcome.scenario}: {outcome.jobs} jobs with {outcome.workers} workers"]
    for level, floor in outcome.floors.items():
        rate = creates_a_second(outcome, middle(floor))
        lines.append(f"  floor, {level:>2} at a time: {_courses(floor)}; about {rate:.0f} creates a second")
    for level, floor in outcome.reporting_floors.items():
        lines.append(f"  floor that reports, {level:>2} at a time: {_courses(floor)}")
    if outcome.reporting_floor:
        lines.append(_ratios("floor that reports by floor", outcome.reporting_floor, outcome.floor))
    for name, runs in (("in Go", outcome.references), ("ours", outcome.runs)):
        lines += _operator(name, outcome, runs) if runs else []
    lines += [f"  {name}: {value:g}" for name, value in outcome.figures.items()]
    return "\n".join(lines)


def _operator(name: str, outcome: Outcome, runs: Sequence[Run]) -> list[str]:
    courses, run, workers = [run.course for run in runs], middle(runs), outcome.jobs * outcome.workers
    each = {name: count / outcome.jobs for name, count in run.requests.items()}
    floors = (("floor", outcome.floor), ("floor that reports", outcome.reporting_floor))
    return [
        f"  {name + ':':19} {_courses(courses)}; {min(course.seen_running for course in courses)} seen running",
        *(_ratios(f"{name} by {kind}", courses, floor) for kind, floor in floors if floor),
        (
            f"  CPU {1000 * run.cost.cpu_seconds / outcome.jobs:.1f} ms a job, {1000 * run.cost.cpu_seconds / workers:.2f} ms a worker; "
            f"memory {_all(run.cost.rss_mib)} MiB; {run.cost.syncs / outcome.jobs:.1f} syncs a job; queue {_all(run.cost.queue_seconds)} s"
        ),
        f"  {sum(each.values()):.1f} requests a job: {', '.join(f'{name} {count:.1f}' for name, count in each.items())}",
    ]


def _ratios(name: str, courses: Sequence[Course], floor: Sequence[Course]) -> str:
    spans = ratios(courses, floor)
    words = [f"makespan {median(spans):.2f}" + (f" (rounds: {', '.join(f'{span:.2f}' for span in spans)})" if len(spans) > 1 else "")]
    for what, share in product(("created", "running", "succeeded"), ("p50", "p99")):
        found = ratios(courses, floor, lambda course: getattr(course, what).get(share))  # noqa: B023 - called here and now
        words += [f"{what} {share} {median(found):.2f}"] if found else []
    return f"  {name + ':':19} {', '.join(words)}"


def _courses(rounds: Sequence[Course]) -> str:
    course = middle(rounds)
    spreads = "; ".join(f"{what} {_all(getattr(course, what))}" for what in ("created", "running", "succeeded"))
    every = f" (rounds: {', '.join(f'{each.makespan:.1f}' for each in rounds)})" if len(rounds) > 1 else ""
    return f"makespan {course.makespan:.1f} s{every}; {spreads} (fixed work {median(each.work_ms for each in rounds):.1f} ms)"


def _all(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


def verdicts(outcomes: Sequence[Outcome]) -> str:
    """Render the table of what is to be reached, as far as it was measured, as Markdown."""
    head = ("figure", "goal", "the Go operator", "measured", "verdict")
    rows = [head, *(row.line(by_name(outcomes)) for row in ROWS if row.figure(by_name(outcomes)) is not None)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]
    return "\n".join((lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]))
