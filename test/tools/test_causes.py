"""Each cause that a job shows, and each rule for logs, has a case on a real cluster, which measures how soon it is shown."""

import re
from pathlib import Path

import pytest

from e2e.broken import BROKEN
from e2e.ends import ENDS
from e2e.failed_jobs import row_of, rows
from mpiop.api.log_rules import RULES
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
    ends = {row.pattern.message.partition(":")[0] for row in rows()}
    assert reason in measured | ends | {broken.reason for broken in BROKEN}


def test_each_row_of_the_page_is_of_a_job_and_each_job_has_a_row() -> None:
    assert {(row.planted, library) for row in rows() for library in row.libraries} == {(end.planted, end.seen_with) for end in ENDS}
    assert {end.seen_with.removesuffix(" injected") for end in ENDS} == {"Open MPI 4", "Open MPI 5", "MPICH 4", "MPICH 5", "Intel MPI"}
    assert all(row_of(end).pattern.state == "Failed" for end in ENDS)


_OTHER_LOGS = {
    "mpirun lost {host}: {text}": "test_plain.py::test_mpirun_ends_when_a_worker_stops_answering: the network of a worker is cut",
    "mpirun lost its connection to {host}": "test_hangs.py: a node is switched off; the operator, if it runs, knows which worker was lost",
    "mpirun cannot reach {host}, which has ended": "the operator knows the worker, and its cause comes first (WorkerEnded of BROKEN)",
    "mpirun calls {host}, which the job no longer has": "test_ssh_script_runs.py: mpirun must call a worker a minute after it went",
    "mpirun crashed, because its host name {host} has more than 56 characters and no digit": "the operator knows the name",
    "the working directory {file} does not exist on a worker": "test_log_rules.py: MPICH prints it now and then",
    "signal {code} ({text}) ended the program": "test_log_rules.py: MPICH prints it now and then",
    "signal {code} ({text}) ended the program on {host}": "test_log_rules.py: the same",
}
"""Rules whose texts cannot be had from a job alone, or not each time."""


@pytest.mark.parametrize("facts", sorted({rule.facts for rule in RULES} - _OTHER_LOGS.keys()))
def test_a_rule_for_logs_has_a_planted_failure(facts: str) -> None:
    words = [re.sub(r"[^\w ]+", " ", part).split() for part in re.split(r"\{\w+\}", facts)]
    longest = " ".join(max(words, key=len))
    assert any(longest in " ".join(re.sub(r"[^\w ]+", " ", row.pattern.why).split()) for row in rows())
