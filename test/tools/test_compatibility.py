"""The comparison with the Go operator: no row without a test that exists."""

import re

import pytest

from generators.compatibility import check, compatibility_page, exists, numbered
from generators.compatibility_rows import ABSENT, BETTER, SAME, Row

HERE = "tools/test_compatibility.py::test_the_page_has_every_row_and_counts_them"


@pytest.mark.parametrize(
    ("test", "is_there"),
    [
        (HERE, True),
        (f"{HERE}_not", False),
        ("tools/test_compatibility.py::", False),
        ("tools/test_nothing.py::test_nothing", False),
        ("tools/images", False),
    ],
)
def test_a_test_exists_or_not(test: str, *, is_there: bool) -> None:
    assert exists(test) == is_there


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (Row("What", SAME, "", (HERE,)), ""),
        (Row("What", SAME, "", ()), "has no test"),
        (Row("What", SAME, "", ("unit/x.py::test_x",)), "there is no test unit/x.py::test_x"),
        (Row("What", BETTER, "", (HERE,)), "does not describe mpiop"),
        (Row("What", ABSENT, "", (HERE,)), "does not describe mpiop"),
        (Row("What", "worse", "how", (HERE,)), "does not describe mpiop"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_row_is_said(row: Row, complaint: str) -> None:
    found = check("7.1", row)
    assert [line.startswith("row 7.1 of the comparison") and complaint in line for line in found] == ([True] if complaint else [])


def test_the_page_has_every_row_and_counts_them() -> None:
    page = compatibility_page()
    assert re.findall(r"^\| (\d+\.\d+) \|", page, re.MULTILINE) == [number for number, _ in numbered()]
    counts = re.search(r"Of (\d+) rows, (\d+) are the same, (\d+) are better, (\d+) are missing", page)
    assert counts is not None
    total, *parts = map(int, counts.groups())
    assert total == sum(parts) == len(numbered())
