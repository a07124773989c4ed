"""All chosen cases, side by side, with one line that says how far they are, and a report of those that failed."""

import asyncio
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from demonstration.cluster import ROOT
from faults.case import Case, Faultless, Verdict, run_case, run_faultless
from faults.ground import Ground, prepared
from faults.lives import LIVES
from faults.matrix import ROWS
from mpiop.kube.errors import KubeError

FOLDER = ROOT / "build" / "faults"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases run.

    Attributes:
        rows: Numbers of rows; empty is all.
        case: Name of one case; "" is no such choice.
        sample: At most so many cases, spread over the rows; 0 is all.
        is_list: Whether to print names only.
    """

    rows: frozenset[str] = frozenset()
    case: str = ""
    sample: int = 0
    is_list: bool = False


@dataclass(slots=True)
class Progress:
    """What has been done so far."""

    total: int
    begun: float = field(default_factory=time.monotonic)
    verdicts: list[Verdict] = field(default_factory=list[Verdict])

    def add(self, verdict: Verdict) -> None:
        """Note a verdict and say how far things are."""
        self.verdicts.append(verdict)
        done, failed = len(self.verdicts), sum(1 for each in self.verdicts if each.complaints)
        seconds = time.monotonic() - self.begun
        line = f"{done}/{self.total} cases, {failed} failed, {seconds:.0f} s"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line}")
        elif done % 25 == 0 or done == self.total:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


async def run_suite(choice: Choice, *, cluster: str, parallel: int, lease_seconds: int = 2, keep: bool = False) -> int:
    """Run the chosen cases and print what failed; return 0 if nothing did, 1 if something did, 2 if nothing was chosen."""
    # Several of these may run on one cluster: each has namespaces and a folder of its own.
    prefix = f"f{os.getpid()}"
    folder = FOLDER / prefix
    folder.mkdir(parents=True)
    async with prepared(cluster, folder, lease_seconds=lease_seconds, keep=keep) as ground:
        lives = await _faultless(ground, prefix)
        cases = chosen(lives, choice)
        if not cases or choice.is_list:
            sys.stdout.write("".join(f"{case.name}\n" for case in cases) or "no case of that name or row; --list prints them all\n")
            return 0 if cases else 2
        verdicts = await _run_all(ground, cases, lives, parallel)
    return _report(verdicts)


async def _faultless(ground: Ground, prefix: str) -> dict[str, Faultless]:
    found = await asyncio.gather(*(run_faultless(ground, f"{prefix}-{life}", life) for life in LIVES))
    lives = dict(zip(LIVES, found, strict=True))
    for life, faultless in lives.items():
        (ground.folder / f"{prefix}-{life}" / "trace.txt").write_text(f"{faultless.trace}\n", encoding="utf-8")
    return lives


def chosen(lives: dict[str, Faultless], choice: Choice) -> list[Case]:
    """Return the cases of the choice."""
    by_row = [list(row.cases(lives)) for row in ROWS if not choice.rows or row.number in choice.rows]
    if choice.sample:
        share = max(1, choice.sample // max(1, len(by_row)))
        by_row = [spread(cases, share) for cases in by_row]
    cases = [case for row in by_row for case in row]
    return [case for case in cases if choice.case in {"", case.name}]


def spread(cases: Sequence[Case], count: int) -> list[Case]:
    """Return `count` cases at even distances, always the same."""
    count = min(count, len(cases))
    return [cases[(2 * n + 1) * len(cases) // (2 * count)] for n in range(count)]


async def _run_all(ground: Ground, cases: Sequence[Case], lives: dict[str, Faultless], parallel: int) -> list[Verdict]:
    progress = Progress(len(cases))
    places = asyncio.Semaphore(parallel)

    async def run(number: int, case: Case) -> None:
        async with places:
            progress.add(await _run_one(ground, f"{ground.folder.name}-{number:04d}", case, lives[case.life]))

    together = [(number, case) for number, case in enumerate(cases) if not case.on_server]
    await asyncio.gather(*(run(number, case) for number, case in together))
    for number, case in enumerate(cases):
        if case.on_server:
            await run(number, case)
    sys.stderr.write("\n")
    return progress.verdicts


async def _run_one(ground: Ground, namespace: str, case: Case, faultless: Faultless) -> Verdict:
    begun = time.monotonic()
    try:
        verdict = await run_case(ground, namespace, case, faultless.reference)
    except KubeError as error:  # the driver's own requests: the ground is lost, and that is a failure too
        return Verdict(
            case.name, [f"the driver could not go on: {error}"], faultless.trace, was_reached=True, seconds=time.monotonic() - begun
        )
    folder = ground.folder / namespace
    if verdict.complaints:
        text = "\n".join([verdict.name, *(f"  {line}" for line in verdict.complaints), str(verdict.trace), ""])
        (folder / "trace.txt").write_text(text, encoding="utf-8")
        sys.stderr.write(f"\n{_failure(verdict)}  logs: {folder.relative_to(ROOT)}\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return verdict


def _failure(verdict: Verdict) -> str:
    requests = [entry for entry in verdict.trace.entries if entry.target.meaning.resource != "leases" or entry.fault]
    lines = [f"FAILED {verdict.name} after {verdict.seconds:.0f} s", *(f"  {line}" for line in verdict.complaints)]
    lines += ["  requests (renewals of the lease left out):", *(f"  {entry}" for entry in requests)]
    return "\n".join([*lines, f"  again: make faults CASE={shlex.quote(verdict.name)}", ""])


def _report(verdicts: Sequence[Verdict]) -> int:
    rows = Counter(verdict.name.partition("/")[0] for verdict in verdicts)
    reached = Counter(verdict.name.partition("/")[0] for verdict in verdicts if verdict.was_reached)
    failed = Counter(verdict.name.partition("/")[0] for verdict in verdicts if verdict.complaints)
    for row in ROWS:
        if count := rows[row.number]:
            sys.stdout.write(
                f"{row.number:>4}  {count:4} cases, {failed[row.number]:3} failed, {count - reached[row.number]:3} not met  {row.title}\n"
            )
    sys.stdout.writelines(f"FAILED: make faults CASE={shlex.quote(each.name)}\n" for each in verdicts if each.complaints)
    return 1 if failed else 0
