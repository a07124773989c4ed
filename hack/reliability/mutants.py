"""The command `hack/mutants`: does a test of an invariant notice when the invariant is broken?"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from reliability.copies import MODULES, TESTS_FAILED, Copy
from reliability.defects import DEFECTS, Defect
from reliability.invariants import ROOT, TEST_DIRECTORIES, Proof, find_proofs, node_ids
from reliability.random_defects import run_random
from reliability.report import selected

TIMEOUT_SECONDS = 300.0
HANG_SECONDS = 20.0
"""A defect that makes its tests hang counts as caught after so long; one that is not known to do so after the longer time does not."""


class Verdict(Enum):
    """What became of a defect."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    NOT_FOUND = "NOT FOUND"
    UNTESTED = "NO TEST"
    BROKEN = "BROKEN"


@dataclass(frozen=True)
class Outcome:
    """A defect and its verdict.

    Attributes:
        detail: What the reader needs to continue.
    """

    defect: Defect
    verdict: Verdict
    detail: str = ""

    def __str__(self) -> str:
        """Render it as a line."""
        return (
            f"{self.verdict.value:>9}  {self.defect.number:>4}  {self.defect.file}: {self.defect.why}{self.detail and f' ({self.detail})'}"
        )


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 0, 1 for a defect that was not caught, 2 for what went wrong."""
    parser = argparse.ArgumentParser(
        prog="hack/mutants",
        description="Put each defect of hack/reliability/defects.py into a copy of the source, and see that a test of its invariant fails.",
    )
    parser.add_argument(
        "numbers", nargs="*", metavar="NUMBER", help="only the defects of these invariants, such as R4 L64; with --random, paths of tests"
    )
    parser.add_argument("--random", type=int, metavar="COUNT", help="instead, make so many small changes of random lines that tests run")
    parser.add_argument("--seed", type=int, default=1, help="which random lines")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="defects at a time")
    options = parser.parse_args(arguments)
    try:
        if options.random is not None:
            return asyncio.run(run_random(options.numbers or TEST_DIRECTORIES, options.random, options.seed))
        tests = selected(find_proofs(), options.numbers)
        outcomes = asyncio.run(_try_all([defect for defect in DEFECTS if defect.number in tests], tests, options.processes))
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"hack/mutants: {error}\n")
        return 2
    missing = [number for number in tests if number not in {defect.number for defect in DEFECTS}]
    wrong = [outcome for outcome in outcomes if outcome.verdict is not Verdict.CAUGHT]
    print("\n".join(["", *map(str, wrong), *(f"{number}: no defect shows that its tests can fail" for number in missing)]))
    print(f"{len(outcomes) - len(wrong)} of {len(outcomes)} defects caught, {len(tests) - len(missing)} of {len(tests)} invariants covered")
    return 1 if wrong or missing else 0


async def _try_all(defects: Sequence[Defect], tests: Mapping[str, Sequence[Proof]], processes: int) -> list[Outcome]:
    begun = time.monotonic()
    pending = list(reversed(list(enumerate(defects))))
    outcomes: dict[int, Outcome] = {}

    async def work(copy: Copy) -> None:
        while pending:
            index, defect = pending.pop()
            outcomes[index] = await try_one(copy, defect, [test.node_id for test in tests[defect.number]])
            print(f"[{len(outcomes):>3}/{len(defects)} {time.monotonic() - begun:4.0f} s] {outcomes[index]}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mpiop-mutants-") as directory:
        copies = [Copy(Path(directory, str(number))) for number in range(min(processes, len(defects)))]
        if copies:
            await _assert_sound(copies[0], node_ids({defect.number: tests[defect.number] for defect in defects}))
        await asyncio.gather(*map(work, copies))
    return [outcomes[index] for index in sorted(outcomes)]


async def _assert_sound(copy: Copy, ids: Sequence[str]) -> None:
    """Check that the tests pass in a copy without defect: else every defect would seem caught."""
    status, output = await copy.test(ids, TIMEOUT_SECONDS * 5)
    if status != 0:
        raise RuntimeError(f"the tests fail without any defect (status {status}); run hack/invariants first\n{output[-2000:]}")


def broken(defect: Defect) -> str:
    """Return the module of `defect` with it.

    Raises:
        LookupError: The text to replace is not there, or more than once.
    """
    path = ROOT / MODULES / defect.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if (count := text.count(defect.old)) != 1:
        raise LookupError(
            f"its text is there {count} times: {defect.old!r}; follow the change of the source in hack/reliability/defects.py"
        )
    return text.replace(defect.old, defect.new)


async def try_one(copy: Copy, defect: Defect, ids: Sequence[str]) -> Outcome:
    """Put `defect` into `copy`, run the tests `ids`, and take it out again."""
    if not ids:
        return Outcome(defect, Verdict.UNTESTED)
    try:
        copy.write(defect.file, broken(defect))
    except LookupError as error:
        return Outcome(defect, Verdict.NOT_FOUND, str(error))
    try:
        status, output = await copy.test(ids, HANG_SECONDS if defect.hangs else TIMEOUT_SECONDS)
    finally:
        copy.restore(defect.file)
    if status == TESTS_FAILED:
        return Outcome(defect, Verdict.CAUGHT)
    if status == 0:
        return Outcome(defect, Verdict.SURVIVED, f"{len(ids)} tests passed")
    if status is None and defect.hangs:
        return Outcome(defect, Verdict.CAUGHT, "its tests hang")
    what = "its tests hang; mark it so if that is meant" if status is None else f"pytest ended with {status}: {output[-300:]}"
    return Outcome(defect, Verdict.BROKEN, what)
