"""Each cause that a job shows has a case on a real cluster which measures how soon it is shown."""

import re
from pathlib import Path

import pytest

from e2e.broken import BROKEN
from e2e.ends import ENDS
from mpiop.controller.causes import CAUSES

_MEASURED = re.compile(r"(?:check_shown_soon|stalled_for)\((?:\"?\w+\"?, )?\"(\w+)\"")
_PARAMETER = re.compile(r"\}, \"(\w+)\"\)")

_ELSEWHERE = {
    "Unreadable": "test_invalid.py, F54: the API server must hold an object of an earlier CRD",
    "ChangedBack": "row F63 of the fault matrix: it is shown after the sixth restore",
    "SecondOperator": "row F63 of the fault matrix: as before",
}
"""Causes that are shown on a real API server by other tests, which do not measure how soon."""


@pytest.mark.parametrize("reason", sorted(CAUSES.keys() - _ELSEWHERE.keys()))
def test_a_cause_is_measured_on_a_cluster(reason: str) -> None:
    texts = [path.read_text() for path in Path("test/e2e").glob("test_*.py")]
    measured = {reason for text in texts for reason in (*_MEASURED.findall(text), *_PARAMETER.findall(text))}
    ends = {end.verdict.partition(":")[0] for end in ENDS}
    assert reason in measured | ends | {broken.reason for broken in BROKEN}
