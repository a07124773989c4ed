"""The command `hack/invariants`."""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reliability.invariants import CHAPTERS, ROOT, TITLES, Proof, find_proofs, node_ids

_HANG = ("-o", "faulthandler_timeout=60", "-o", "faulthandler_exit_on_timeout=true")


@dataclass
class Result:
    """What became of the cases of one test; a parametrised test has several.

    Attributes:
        seconds: That they took together.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list[str])

    @property
    def is_proof(self) -> bool:
        """Return whether it ran and never failed: a test that is always skipped shows nothing."""
        return self.passed > 0 and self.failed == 0

    def __str__(self) -> str:
        """Render it for a line of the report."""
        if self.failed:
            return f"FAILED {self.failed} of {self.failed + self.passed}"
        if not self.passed:
            return "SKIPPED" if self.skipped else "NOT RUN"
        return "ok" if self.passed == 1 else f"ok x{self.passed}"


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 0, 1 for a gap or a failing test, 2 for what went wrong."""
    parser = argparse.ArgumentParser(
        prog="hack/invariants", description="Run the tests of every invariant and list number → tests → result."
    )
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="only these, such as R4 L64")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="tests at a time")
    options = parser.parse_args(arguments)
    try:
        tests = selected(find_proofs(), options.numbers)
        results = _run_tests(node_ids(tests), options.processes)
    except (ValueError, ET.ParseError, OSError) as error:
        sys.stderr.write(f"hack/invariants: {error}\n")
        return 2
    print(render(tests, results))
    return 1 if problems(tests, results) else 0


def selected(tests: Mapping[str, list[Proof]], numbers: Sequence[str]) -> dict[str, list[Proof]]:
    """Return the rows of `tests` for `numbers`, all when there are none.

    Raises:
        ValueError: There is no such number.
    """
    if unknown := [number for number in numbers if number not in tests]:
        raise ValueError(f"there is no invariant {', '.join(unknown)}; they run from {next(iter(TITLES))} to {list(TITLES)[-1]}")
    return {number: found for number, found in tests.items() if not numbers or number in numbers}


def _run_tests(ids: Sequence[str], processes: int) -> dict[Proof, Result]:
    """Run `ids` in one pytest and return what became of each."""
    if not ids:
        return {}
    with tempfile.TemporaryDirectory(prefix="mpiop-invariants-") as directory:
        report = Path(directory, "report.xml")
        options = [f"--junitxml={report}", "-p", "no:cacheprovider", f"--numprocesses={processes}", *_HANG]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--quiet", "--tb=no", *options, *ids],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not report.exists():
            raise ValueError(f"pytest ended with {done.returncode} and without a report:\n{done.stdout[-3000:]}")
        return parse(report.read_text(encoding="utf-8"))


def parse(report: str) -> dict[Proof, Result]:
    """Return the results in a JUnit report of pytest, by test function or class."""
    results: dict[Proof, Result] = defaultdict(Result)
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - pytest wrote it just now
        result = results[_test_of(case)]
        result.seconds += float(case.get("time", "0"))
        problem = next((child for child in case if child.tag in {"failure", "error"}), None)
        if problem is not None:
            result.failed += 1
            result.failures.append(f"{case.get('name')}: {(problem.get('message') or 'no message').splitlines()[0]}")
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
    return dict(results)


def _test_of(case: ET.Element) -> Proof:
    """Return what a case belongs to: `classname` is the path of the file with dots, and then the class if there is one."""
    *path, last = case.get("classname", "").split(".")
    if last.startswith("Test"):
        return Proof(f"{'/'.join(path)}.py", last)
    return Proof(f"{'/'.join([*path, last])}.py", case.get("name", "").partition("[")[0])


def problems(tests: Mapping[str, Sequence[Proof]], results: Mapping[Proof, Result]) -> list[str]:
    """Return what is missing or fails, one line each."""
    lines = [f"{number}: no test has this number: {TITLES[number]}" for number, found in tests.items() if not found]
    for test in dict.fromkeys(test for found in tests.values() for test in found):
        result = results.get(test, Result())
        if not result.is_proof:
            lines.append(f"{test.node_id}: {result} {' '.join(result.failures)}".rstrip())
    return lines


def render(tests: Mapping[str, Sequence[Proof]], results: Mapping[Proof, Result]) -> str:
    """Return the report: for each number its title, its tests and what became of them; then the sum."""
    lines: list[str] = []
    chapter = ""
    for number, found in tests.items():
        if number[0] != chapter:
            chapter = number[0]
            lines += ["", f"{chapter} - {CHAPTERS[chapter]}"]
        lines.append(f"{number:>4}  {TITLES[number]}{'' if found else '  GAP'}")
        lines += [f"        {results.get(test, Result())!s:>6}  {test.node_id}" for test in found]
    wrong = problems(tests, results)
    cases, seconds = sum(result.passed for result in results.values()), sum(result.seconds for result in results.values())
    lines += [
        "",
        *wrong,
        f"{len(tests)} invariants, {len(node_ids(tests))} tests, {cases} cases passed in {seconds:.0f} s of processor time",
    ]
    lines.append(f"{len(wrong)} problems" if wrong else "no gap, no failure")
    return "\n".join(lines)
