"""The threat model: each test that it names exists, and each claim of its tables names one or names who is responsible."""

import re
from pathlib import Path

from generators.compatibility import exists

PAGE = Path(__file__).resolve().parents[2] / "docs" / "threat-model.md"
TEST = re.compile(r"`([a-z0-9_/]+\.(?:py|go)::\w+)`")
ELSEWHERE = {
    "use ServiceAccounts or Secrets of other namespaces",
    "make it run a program or read a file",
    "interfere with another user's step",
}
"""What Kubernetes does, what no test can show, and what the page calls possible."""


def test_every_test_that_it_names_exists() -> None:
    named = TEST.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [test for test in named if not (is_in_go(test) if ".go" in test else exists(test))] == []


def is_in_go(test: str) -> bool:
    """Return whether there is such a Go test; it is named by its path from the project's folder."""
    path, _, name = test.partition("::")
    return f"func {name}(" in (PAGE.parents[1] / path).read_text(encoding="utf-8")


def test_every_claim_has_a_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    heads = {"can", "cannot", "threat", "Pod of"}
    claims = [row for row in rows if row.split("|")[1].strip() not in heads]
    assert len(claims) > 15
    assert {row.split("|")[1].strip() for row in claims if not TEST.search(row)} == ELSEWHERE
