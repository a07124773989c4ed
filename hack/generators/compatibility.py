"""The page that compares with the Go operator, row by row, each with its tests; a test that does not exist is an error."""

import ast
from collections import Counter
from functools import cache

from generators.compatibility_rows import ABSENT, BETTER, CHAPTERS, SAME, Row
from generators.manifests import ROOT, GenerateError

_HEAD = """# Compatibility with Kubeflow's MPI Operator

<!-- Made by hack/generate from hack/generators/compatibility_rows.py, which fails when a test of a row does not exist; edit those. -->

This page lists the behaviour that users of release 0.8.2 rely on, and the corresponding behaviour of mpiop. {counts}
"""
_VERDICTS = {SAME: "are the same", BETTER: "are better", ABSENT: "are missing"}


def compatibility_page() -> str:
    """Return the page as Markdown.

    Raises:
        GenerateError: A row has no test, or one that does not exist.
    """
    if complaints := [complaint for number, row in numbered() for complaint in check(number, row)]:
        raise GenerateError("; ".join(complaints))
    verdicts = Counter(row.verdict for _, row in numbered())
    counts = ", ".join(f"{verdicts[verdict]} {words}" for verdict, words in _VERDICTS.items())
    tests = {test for _, row in numbered() for test in row.tests}
    lines = [_HEAD.format(counts=f"Of {verdicts.total()} rows, {counts}. {len(tests)} tests cover them.")]
    for chapter, (title, rows) in enumerate(CHAPTERS.items(), 1):
        lines += [f"## {chapter}. {title}", "", "| no. | Kubeflow's operator | mpiop | tests |", "|---|---|---|---|"]
        lines += [_line(f"{chapter}.{number}", row) for number, row in enumerate(rows, 1)]
        lines.append("")
    return "\n".join(lines)


def numbered() -> list[tuple[str, Row]]:
    """Return all rows with their numbers, `<chapter>.<row>`."""
    return [(f"{chapter}.{number}", row) for chapter, rows in enumerate(CHAPTERS.values(), 1) for number, row in enumerate(rows, 1)]


def check(number: str, row: Row) -> list[str]:
    """Return what is wrong with a row."""
    complaints = [] if row.tests else [f"row {number} of the comparison has no test"]
    if row.verdict not in _VERDICTS or bool(row.how) < (row.verdict != SAME):
        complaints.append(f"row {number} of the comparison does not describe mpiop")
    missing = [test for test in row.tests if not exists(test)]
    return complaints + [f"row {number} of the comparison: there is no test {test}" for test in missing]


def exists(test: str) -> bool:
    """Return whether there is a test `<path below test/>::<name>`."""
    path, _, name = test.partition("::")
    return name in _functions(path)


@cache
def _functions(path: str) -> frozenset[str]:
    file = ROOT / "test" / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _line(number: str, row: Row) -> str:
    here = f"{row.verdict}: {row.how}" if row.how else row.verdict
    mark = f'<a id="{row.anchor}"></a>' if row.anchor else ""
    return f"| {number} | {mark}{row.what} | {here} | {'; '.join(map(_link, row.tests))} |"


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{path.rpartition('/')[2]}](../test/{path})::{name}"
