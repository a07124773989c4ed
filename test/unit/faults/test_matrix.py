"""The matrix itself: which cases the rows make of a life, and what the oracle sees in a trace."""

from pathlib import Path

import pytest

from faults.case import Faultless
from faults.matrix import ROWS
from faults.meaning import Target
from faults.oracle import NOTHING_DIFFERS, Reference, miscounts, relapses
from faults.rows import Row
from faults.suite import Choice, chosen, spread
from faults.trace import Entry, Trace

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "faults.md"
REQUESTS = [
    "create leases/mpi-operator",
    "watch pods",
    "event pods",
    "create secrets/pi-ssh",
    "create pods/pi-worker-0",
    "create jobs/pi-launcher",
    "patch mpijobs.status/pi",
    "delete pods/pi-worker-0",
]


def trace_of(*requests: str, code: int = 200) -> Trace:
    trace = Trace()
    for request in requests:
        trace.begin(Target.parse(f"{request} #1")).code = code
    return trace


def lives() -> dict[str, Faultless]:
    return {life: Faultless(Reference({}), trace_of(*REQUESTS)) for life in ("succeed", "fail", "suspend")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_row_makes_cases_of_different_names(row: Row) -> None:
    names = [case.name for case in chosen(lives(), Choice(frozenset({row.number})))]
    assert names
    assert len(set(names)) == len(names)
    assert all(name.startswith(f"{row.number}/") for name in names)


def test_each_request_is_tried_once_though_three_lives_have_it() -> None:
    cases = chosen(lives(), Choice(frozenset({"F12"})))
    assert [case.name for case in cases] == [
        f"F12/succeed/{name} #1/reset-before" for name in REQUESTS if name.split()[0] not in {"watch", "event"}
    ]


def test_one_case_is_found_again_by_its_name() -> None:
    [case] = chosen(lives(), Choice(case="F13/succeed/create pods/pi-worker-0 #1/reset-after"))
    assert case.row == "F13"


def test_a_sample_is_spread_and_always_the_same() -> None:
    cases = chosen(lives(), Choice(frozenset({"F8"})))
    assert spread(cases, 3) == spread(cases, 3)
    assert len(set(map(id, spread(cases, 3)))) == 3
    assert spread(cases[:2], 3) == cases[:2]


def test_every_row_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [row.number for row in ROWS if f"| {row.number} |" not in text] == []


def counted(trace: Trace, *expected: str) -> list[str]:
    reference = Reference({}, trace_of(*expected).effects("create", "delete"))
    return list(miscounts(trace, reference, NOTHING_DIFFERS))


def test_a_write_too_many_is_seen_and_a_refused_one_is_none() -> None:
    assert counted(trace_of("create pods/a"), "create pods/a") == []
    assert counted(trace_of("create pods/a", code=409)) == []
    assert counted(trace_of("create pods/a", "create pods/a"), "create pods/a") == ["create pods/a: took effect 2 times instead of 1"]


def test_a_pod_that_is_deleted_twice_is_gone_once() -> None:
    trace = trace_of("delete pods/a", "delete pods/a")
    for entry in trace.entries:
        entry.answer = {"uid": "1"}
    assert counted(trace, "delete pods/a") == []
    trace.entries[0].answer = {"uid": "0"}
    assert counted(trace, "delete pods/a") == ["delete pods/a: took effect 2 times instead of 1"]


def test_two_launchers_are_seen() -> None:
    assert "two launcher Jobs at a time" in counted(trace_of("create jobs/a", "create jobs/b"))
    assert counted(trace_of("create jobs/a", "delete jobs/a", "create jobs/a"), "create jobs/a", "create jobs/a", "delete jobs/a") == []


def test_a_changed_secret_is_seen() -> None:
    assert any("SSH Secret was changed" in line for line in counted(trace_of("patch secrets/a")))


def status(version: int, **conditions: str) -> Entry:
    rows = [{"type": type_, "status": value} for type_, value in conditions.items()]
    answer = {"uid": "1", "resourceVersion": str(version), "status": {"conditions": rows}}
    return Entry(0.0, Target.parse("patch mpijobs.status/pi #1"), code=200, answer=answer)


@pytest.mark.parametrize(
    ("later", "is_wrong"),
    [
        ({"Succeeded": "True"}, False),
        ({"Succeeded": "True", "Running": "True"}, True),
        ({"Running": "True"}, True),
        ({"Failed": "True"}, True),
    ],
)
def test_a_finished_job_that_goes_back_is_seen(later: dict[str, str], is_wrong: bool) -> None:  # noqa: FBT001 - a case
    trace = Trace()
    trace.entries = [status(10, **later), status(9, Succeeded="True"), status(8, Running="True")]
    assert bool(list(relapses(trace))) is is_wrong
