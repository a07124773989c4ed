"""`hack/mutants --random`: small changes of random lines, and whether a test that runs the line notices each."""

import ast
import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coverage import CoverageData

from reliability.copies import MODULES, TESTS_FAILED, Copy

MOST_TESTS: Final = 60
"""A defect that so many tests do not notice has survived; those that run the fewest lines come first."""
SECONDS: Final = 120.0
"""Tests that a defect makes hang have noticed it after so long."""
_OPPOSITE: Final[Mapping[type[ast.AST], type[ast.AST]]] = {
    one: other
    for pair in (
        (ast.Eq, ast.NotEq),
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.In, ast.NotIn),
        (ast.Is, ast.IsNot),
        (ast.And, ast.Or),
    )
    for one, other in (pair, pair[::-1])
}


@dataclass(frozen=True, order=True)
class Change:
    """The bytes from `start` to `end` of a module become `new`.

    Attributes:
        file: Relative to src/mpiop.
        line: Where the change begins, from 1.
    """

    file: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, content: bytes) -> bytes:
        """Return the module with the change."""
        return content[: self.start] + self.new.encode() + content[self.end :]

    def describe(self, content: bytes) -> str:
        """Return the place, and the source before and after."""
        old = " ".join(content[self.start : self.end].decode().split())
        return f"{self.file}:{self.line}: {old[:60]} -> {self.new[:60]}"


def possible_changes(file: str, content: bytes) -> list[Change]:
    """Return the changes of a module: comparisons, and/or, conditions, numbers, truths and returned values.

    What is in an f-string is left out, because Python 3.11 does not know where it is.
    """
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set[Change]()
    tree = ast.parse(content)
    unknown = {inner for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        for place, new in () if node in unknown else _replacements(node):
            end_line, end_column = place.end_lineno or 0, place.end_col_offset or 0  # always there in what was parsed
            start, end = starts[place.lineno - 1] + place.col_offset, starts[end_line - 1] + end_column
            found.add(Change(file, place.lineno, start, end, new))
    return sorted(found)


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(left=left, ops=[first, *others], comparators=values):
            yield node, f"({ast.unparse(ast.Compare(left, [_OPPOSITE[type(first)](), *others], values))})"  # type: ignore[list-item]
        case ast.BoolOp(op=op, values=values):
            yield node, f"({ast.unparse(ast.BoolOp(_OPPOSITE[type(op)](), values))})"  # type: ignore[arg-type]
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(number) | float(number)):
            yield node, str(number + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, "return None"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"


@dataclass(frozen=True)
class Coverage:
    """Which tests run which lines: by file relative to src/mpiop, then by line."""

    tests: Mapping[str, Mapping[int, frozenset[str]]]

    @classmethod
    def read(cls, data: Path, root: Path) -> "Coverage":
        """Read what pytest-cov has written below `root`."""
        stored = CoverageData(str(data))
        stored.read()
        files = {path: Path(path).relative_to(root / MODULES).as_posix() for path in stored.measured_files()}
        return cls({
            files[path]: {
                line: frozenset(test.partition("|")[0].partition("[")[0] for test in tests if test)
                for line, tests in stored.contexts_by_lineno(path).items()
            }
            for path in files
        })

    def chosen(self, change: Change) -> list[str]:
        """Return the tests that run the line of `change`, those that run the fewest lines first."""
        sizes = dict.fromkeys(self.tests[change.file].get(change.line, ()), 0)
        for lines in self.tests.values():
            for tests in lines.values():
                for test in tests & sizes.keys():
                    sizes[test] += 1
        return sorted(sizes, key=lambda test: (sizes[test], test))[:MOST_TESTS]


def picked(coverage: Coverage, root: Path, count: int, seed: int) -> list[Change]:
    """Return up to `count` changes of lines that tests run; the same for the same seed, source and tests."""
    possible = [
        change
        for file, lines in sorted(coverage.tests.items())
        for change in possible_changes(file, (root / MODULES / file).read_bytes())
        if lines.get(change.line)
    ]
    return random.Random(seed).sample(possible, min(count, len(possible)))  # noqa: S311 - chance, not secrets


async def run_random(paths: Sequence[str], count: int, seed: int) -> int:
    """Try `count` random defects of lines that the tests at `paths` run, one at a time; print each, and how many were caught.

    Raises:
        RuntimeError: The tests fail without a defect.
    """
    with tempfile.TemporaryDirectory(prefix="mpiop-mutants-") as directory:
        copy = Copy(Path(directory))
        coverage = await _measured(copy, paths)
        changes, caught = picked(coverage, copy.root, count, seed), 0
        for number, change in enumerate(changes, 1):
            path = copy.root / MODULES / change.file
            whole = path.read_bytes()
            path.write_bytes(change.apply(whole))
            status, _ = await copy.test(coverage.chosen(change), SECONDS)
            path.write_bytes(whole)
            is_caught = status is None or status == TESTS_FAILED
            caught += is_caught
            print(f"[{number:>3}/{len(changes)}] {'caught' if is_caught else 'SURVIVED':>8}  {change.describe(whole)}", flush=True)
    print(f"{caught} of {len(changes)} random defects caught (seed {seed})")
    return 0


async def _measured(copy: Copy, paths: Sequence[str]) -> Coverage:
    """Run the tests once without a defect, and return which lines each runs."""
    data = copy.root / ".coverage"
    arguments = ("--quiet", "--tb=short", "-p", "no:cacheprovider", "--cov=mpiop", "--cov-context=test", "--cov-report=", *paths)
    environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(copy.root / "src")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", *arguments, cwd=copy.root, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the tests fail without any defect\n{output.decode(errors='replace')[-2000:]}")
    return Coverage.read(data, copy.root)
