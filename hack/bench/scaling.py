"""`make bench-scaling`: what the operator takes for more jobs and workers than were measured, and which limit comes first.

Requests, processor time and memory are laws that are fitted to the newest results of `make bench`. Sizes and their limits are computed with
the operator's own builders and need no measurement. `--write` puts all of it into docs/scaling.md.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bench import command, report
from bench.laws import QUANTITIES, Model, model_of
from bench.sizes import CEILING, LIMITS, MIB, NAMINGS, OBJECTS, SHORT, all_bytes, bytes_of, job_of, largest
from demonstration.cluster import ROOT

RESULTS: Final = ROOT / "build" / "bench" / "results.json"
PAGE: Final = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- model -->", "<!-- end of model -->"
DEPLOYMENT: Final = ROOT / "manifests" / "base" / "deployment.yaml"
ETCD_QUOTA_MIB: Final = 2048
"""etcd's `--quota-backend-bytes`, when nothing is said."""
_SIZED: Final = (1, 1000, 10_000, 50_000)


@dataclass(frozen=True, slots=True)
class Load:
    """What may come: so many jobs with so many workers each."""

    title: str
    jobs: int
    workers: int


@dataclass(frozen=True, slots=True)
class Use:
    """How much of something limited is used.

    Attributes:
        limit: What it is, and the setting that moves it.
        share: 1 is all of it.
    """

    limit: str
    share: float


LOADS: Final = (Load("10,000 jobs with 5 workers", 10_000, 5), Load("one job with 50,000 workers", 1, 50_000))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def shown(figure: float) -> str:
    """Render a figure with what is worth knowing of it: 12,345, 123, 12.3 or 1.23."""
    decimals = 0 if figure >= 100 else 1 if figure >= 10 else 2  # noqa: PLR2004 - three digits
    return f"{figure:,.{decimals}f}"


def rendered(model: Model, machine: dict[str, Any] | None) -> str:
    """Return everything as Markdown: exact sizes and limits, then what was fitted, foretold, and not measured."""
    parts = ["### Sizes", _sizes(), "### Most workers of one job", _limits(), "### Cost"]
    if model.laws:
        parts += [_laws(model), " ".join((*_place(machine), *_checks(model)))]
    for title, names in model.gaps.items():
        state = "fitted without" if title in model.laws else "not fitted, for want of"
        parts.append(f"**{title.capitalize()}: {state} {', '.join(names)}.** To measure: `make bench`, which runs all scenarios.")
    return "\n\n".join((*filter(None, parts), _predictions(model)))


def _place(machine: dict[str, Any] | None) -> list[str]:
    if machine is None:
        return []
    return [f"Version {machine['version']} on {machine['cores']} cores ({machine['architecture']}), with API server and simulated nodes."]


def _sizes() -> str:
    growing = [name for name in OBJECTS if bytes_of(name, _SIZED[-1]) > 2 * bytes_of(name, _SIZED[0])]
    head = ["object, bytes as JSON", *(f"{workers:,} workers" if workers > 1 else "1 worker" for workers in _SIZED)]
    rows = [[name, *(f"{bytes_of(name, workers):,}" for workers in _SIZED)] for name in growing]
    rows.append(["all objects of the job", *(f"{all_bytes(workers):,}" for workers in _SIZED)])
    others = "; ".join(f"{name}: {bytes_of(name, _SIZED[-1]):,}" for name in OBJECTS if name not in growing)
    return f"{table(head, rows)}\n\nThe same for any number of workers, but for a few digits: {others}."


def _limits() -> str:
    rows, unreached = list[list[str]](), list[str]()
    for limit in LIMITS:
        most = [largest(limit, naming) for naming in NAMINGS]
        if any(most):
            rows.append([limit.title, *("any" if each is None else f"{each:,}" for each in most), limit.consequence, limit.moved_by])
        else:
            unreached.append(limit.title)
    head = ["limit", *(naming.title for naming in NAMINGS), "beyond it", "moved by"]
    return f"{table(head, rows)}\n\nOut of reach of {CEILING:,} workers: {'; '.join(unreached)}."


def _laws(model: Model) -> str:
    rows = list[list[str]]()
    for quantity in (each for each in QUANTITIES if each.title in model.laws):
        law = model.laws[quantity.title]
        terms = [shown(term * quantity.scale) for term in (law.a_job, law.a_worker, law.constant)]
        rows.append([quantity.name, *terms, f"{law.deviation:.0%}", f"{len(quantity.points(model.outcomes))}"])
    return table(["", "a job", "a worker", "besides", "worst deviation", "scenarios"], rows)


def _checks(model: Model) -> list[str]:
    """Return how well the laws foretell the scenarios with jobs that none of them was fitted to."""
    lines, fitted = list[str](), {name for quantity in QUANTITIES for name in quantity.scenarios}
    for each in (outcome for outcome in model.outcomes if outcome.ours and outcome.scenario not in fitted):
        told = list[str]()
        for quantity in QUANTITIES:
            law, value = model.laws.get(quantity.title), quantity.value(each)
            if law and value is not None:
                foretold = law.at(each.jobs, each.jobs * each.workers)
                told.append(f"{quantity.name} {foretold * quantity.scale:,.0f} foretold, {value * quantity.scale:,.0f} measured")
        lines.append(f"To {each.scenario} nothing was fitted: {'; '.join(told)}.")
    return lines


def _predictions(model: Model) -> str:
    columns = [predictions(model, load) for load in LOADS]
    names = list(dict.fromkeys(name for column in columns for name in column))
    return table(["foretold", *(load.title for load in LOADS)], [[name, *(column.get(name, "") for column in columns)] for name in names])


def predictions(model: Model, load: Load) -> dict[str, str]:
    """Return what `load` takes, as far as there are laws for it, and the limits that it comes nearest to."""
    found, seconds, workers = dict[str, str](), dict[str, float](), load.jobs * load.workers
    requests, processor, memory = (model.laws.get(quantity.title) for quantity in QUANTITIES)
    if requests:
        found["requests"] = f"{requests.at(load.jobs, workers):,.0f}"
    if requests and model.creates_a_second:
        seconds["API server"] = requests.at(load.jobs, workers) / model.creates_a_second
        found[f"API server, at the {model.creates_a_second:,.0f} creates a second of the floor"] = f"{seconds['API server']:,.0f} s"
    if processor:
        seconds["operator"] = processor.at(load.jobs, workers)
        found["operator's processor time, of which it uses one core"] = f"{seconds['operator']:,.0f} s"
    if seconds:
        slowest = max(seconds, key=lambda name: seconds[name])
        rate = f": {shown(load.jobs / seconds[slowest])} jobs a second" if load.jobs > 1 else ""
        found["takes at least"] = f"{seconds[slowest]:,.0f} s ({slowest}){rate}"
    if memory:
        found["memory, all at the same time"] = f"{memory.at(load.jobs, workers):,.0f} MiB"
    found["objects in one version"] = f"{load.jobs * all_bytes(load.workers) / MIB:,.0f} MiB"
    for place, use in zip(("nearest limit", "next nearest"), uses(model, load), strict=False):
        found[place] = f"{use.limit}: {use.share:.0%}" + (", **cannot be**" if use.share > 1 else "")
    return found


def uses(model: Model, load: Load) -> list[Use]:
    """Return how much of each limit `load` uses, the most first; of memory nothing when there is no law for it."""
    objects, job = load.jobs * all_bytes(load.workers) / MIB, job_of(load.workers)
    found = [
        Use("objects in one version in etcd's quota of 2 GiB (`--quota-backend-bytes`)", objects / ETCD_QUOTA_MIB),
        Use("1 MiB of data in a ConfigMap (no setting)", LIMITS[0].size(job, SHORT.options) / LIMITS[0].most),
    ]
    if law := model.laws.get("memory"):
        share = law.at(load.jobs, load.jobs * load.workers) / memory_limit_mib()
        found.append(Use(f"{memory_limit_mib():,} MiB of memory (`resources.limits.memory` of the Deployment)", share))
    return sorted(found, key=lambda use: use.share, reverse=True)


def memory_limit_mib(deployment: Path = DEPLOYMENT) -> int:
    """Return how much memory the manifests allow the operator."""
    [container] = yaml.safe_load(deployment.read_text(encoding="utf-8"))["spec"]["template"]["spec"]["containers"]
    text: str = container["resources"]["limits"]["memory"]
    return int(text[:-2]) * {"Mi": 1, "Gi": 1024}[text[-2:]]


def written(page: str, text: str) -> str:
    """Return `page` with `text` between the marks.

    Raises:
        ValueError: It lacks them.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/scaling.md must have {BEGIN} and, after it, {END}: what was computed goes between")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> int:
    """Print the model, and with --write put it into the document."""
    parser = argparse.ArgumentParser(
        prog="make bench-scaling", description="What more jobs and workers would take, and which limit is first."
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="what `make bench` stored (default: build/bench/results.json)")
    parser.add_argument("--write", action="store_true", help="put it into docs/scaling.md")
    given = parser.parse_args()
    machine, outcomes = report.read(given.results) if given.results.exists() else (None, [])
    text = rendered(model_of(outcomes), machine)
    print(text)
    if given.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(command.run("bench-scaling", main))
