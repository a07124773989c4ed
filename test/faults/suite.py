"""All chosen cases, side by side, with one line that reports how far they are, and a report of those that failed."""

import asyncio
import logging
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from demonstration.cluster import ROOT
from faults.case import Case, Faultless, Verdict, run_case, run_faultless
from faults.lifecycles import LIFECYCLES
from faults.matrix import ROWS
from faults.oracle import Reference
from faults.testbed import FaultTestbed, prepared
from faults.trace import Trace
from mpiop.kube.errors import KubeError

FOLDER = ROOT / "build" / "faults"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases run.

    Attributes:
        rows: Numbers of rows; empty is all.
        names: Names of cases; empty selects all.
        sample: At most so many cases, spread over the rows; 0 is all.
        is_list: Whether to print names only.
    """

    rows: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    sample: int = 0
    is_list: bool = False


@dataclass(slots=True)
class Progress:
    """What has been done so far."""

    total: int
    begun: float = field(default_factory=time.monotonic)
    verdicts: list[Verdict] = field(default_factory=list[Verdict])

    def add(self, verdict: Verdict) -> None:
        """Record a verdict and print the progress."""
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
    """Run the chosen cases and print what failed; return 0 if nothing did, 1 if something did, 2 if a case is unknown."""
    # A report needs nothing from the driver's own informers.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    # A cluster that is kept has several of these, one after another: each has namespaces and a folder of its own.
    prefix = f"f{os.getpid()}"
    folder = FOLDER / prefix
    folder.mkdir(parents=True)
    async with prepared(cluster, folder, lease_seconds=lease_seconds, keep=keep) as testbed, testbed.change_feed.running():
        lifecycles = await _faultless(testbed, prefix)
        cases = chosen(lifecycles, choice)
        if choice.is_list:
            sys.stdout.writelines(f"{case.name}\n" for case in cases)
            return 0
        if unknown := sorted(choice.names - {case.name for case in cases}) or ([] if cases else sorted(choice.rows)):
            sys.stdout.write(f"no such case or row: {', '.join(unknown)}; --list prints them all\n")
            return 2
        verdicts = await _run_all(testbed, cases, lifecycles, parallel)
    return _report(verdicts, lease_seconds)


async def _faultless(testbed: FaultTestbed, prefix: str) -> dict[str, Faultless]:
    async with asyncio.TaskGroup() as group:  # one that fails ends the others, before the cluster goes
        tasks = {lifecycle: group.create_task(run_faultless(testbed, f"{prefix}-{lifecycle}", lifecycle)) for lifecycle in LIFECYCLES}
    lifecycles = {lifecycle: task.result() for lifecycle, task in tasks.items()}
    for lifecycle, faultless in lifecycles.items():
        (testbed.folder / f"{prefix}-{lifecycle}" / "trace.txt").write_text(f"{faultless.trace}\n", encoding="utf-8")
    return lifecycles


def chosen(lifecycles: dict[str, Faultless], choice: Choice) -> list[Case]:
    """Return the cases of the choice."""
    by_row = [list(row.cases(lifecycles)) for row in ROWS if not choice.rows or row.number in choice.rows]
    if choice.sample:
        share = max(1, choice.sample // max(1, len(by_row)))
        by_row = [spread(cases, share) for cases in by_row]
    cases = [case for row in by_row for case in row]
    return [case for case in cases if not choice.names or case.name in choice.names]


def spread(cases: Sequence[Case], count: int) -> list[Case]:
    """Return `count` cases at even distances, always the same."""
    count = min(count, len(cases))
    return [cases[(2 * n + 1) * len(cases) // (2 * count)] for n in range(count)]


async def _run_all(testbed: FaultTestbed, cases: Sequence[Case], lifecycles: dict[str, Faultless], parallel: int) -> list[Verdict]:
    progress = Progress(len(cases))
    # Those that wait for minutes need no processor meanwhile: they have places of their own.
    busy, idle = asyncio.Semaphore(parallel), asyncio.Semaphore(parallel)
    numbers = {case.name: number for number, case in enumerate(cases)}

    async def run(case: Case) -> None:
        namespace = f"{testbed.folder.name}-{numbers[case.name]:04d}"
        progress.add(await _run_one(testbed, namespace, case, None if case.own else lifecycles[case.lifecycle].reference))

    async def run_in_turn(case: Case) -> None:
        async with idle if case.is_idle else busy:
            await run(case)

    await asyncio.gather(*(run_in_turn(case) for case in cases if case.disturbance is None))
    for disturbance in dict.fromkeys(case.disturbance for case in cases if case.disturbance is not None):
        concerned = [case for case in cases if case.disturbance is disturbance]
        disturbance.parties, disturbance.starting = len(concerned), sum("begin" in dict(case.stages) for case in concerned)
        await asyncio.gather(*map(run, concerned))
        await disturbance.end()
    sys.stderr.write("\n")
    return progress.verdicts


async def _run_one(testbed: FaultTestbed, namespace: str, case: Case, reference: Reference | None) -> Verdict:
    begun = time.monotonic()
    try:
        verdict = await run_case(testbed, namespace, case, reference)
    except KubeError as error:  # the driver's own requests: the testbed is lost, and that is a failure too
        wrong = [f"the driver could not go on: {error}"]
        verdict = Verdict(case.name, wrong, Trace(), was_reached=True, seconds=time.monotonic() - begun)
    folder = testbed.folder / namespace
    if verdict.complaints:
        folder.mkdir(exist_ok=True)
        text = "\n".join([verdict.name, *(f"  {line}" for line in verdict.complaints), str(verdict.trace), ""])
        (folder / "trace.txt").write_text(text, encoding="utf-8")
        sys.stderr.write(f"\n{_failure(verdict, testbed.lease_seconds)}  logs: {folder.relative_to(ROOT)}\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return verdict


def _failure(verdict: Verdict, lease_seconds: int) -> str:
    requests = [entry for entry in verdict.trace.entries if entry.target.meaning.resource != "leases" or entry.fault]
    lines = [f"FAILED {verdict.name} after {verdict.seconds:.0f} s", *(f"  {line}" for line in verdict.complaints)]
    lines += ["  requests (renewals of the lease left out):", *(f"  {entry}" for entry in requests)]
    return "\n".join([*lines, f"  again: {again(verdict.name, lease_seconds)}", ""])


def again(name: str, lease_seconds: int) -> str:
    """Return the command that runs the case of that name once more."""
    return f"make faults LEASE={lease_seconds} CASE={shlex.quote(name)}"


def _report(verdicts: Sequence[Verdict], lease_seconds: int) -> int:
    for row in ROWS:
        if own := [verdict for verdict in verdicts if verdict.name.partition("/")[0] == row.number]:
            failed, missed = sum(bool(each.complaints) for each in own), sum(not each.was_reached for each in own)
            seconds = sum(each.seconds for each in own) / len(own)
            counts = f"{len(own):4} cases of {seconds:5.1f} s, {failed:3} failed, {missed:3} not met"
            sys.stdout.write(f"{row.number:>4} {counts}  {row.title}\n")
    wrong = [verdict for verdict in verdicts if verdict.complaints]
    sys.stdout.writelines(f"FAILED: {again(each.name, lease_seconds)}\n" for each in wrong)
    return 1 if wrong else 0
