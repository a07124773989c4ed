"""The matrix itself: which cases the rows make of a life, and what the oracle sees in a trace."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faults.__main__ import E2E_ROWS
from faults.case import Faultless
from faults.lease_rows import THIEF, wrote_after_loss
from faults.lifecycles import LIFECYCLES
from faults.matrix import ROWS
from faults.meaning import Target
from faults.oracle import NOTHING_DIFFERS, Reference, miscounts, relapses, resent, unguarded
from faults.rows import Row
from faults.suite import Choice, chosen, spread
from faults.time_travel import went_back
from faults.trace import Entry, Trace

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "faults.md"
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


def lifecycles() -> dict[str, Faultless]:
    return {lifecycle: Faultless(Reference({}), trace_of(*REQUESTS)) for lifecycle in LIFECYCLES}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_row_makes_cases_of_different_names(row: Row) -> None:
    names = [case.name for case in chosen(lifecycles(), Choice(frozenset({row.number})))]
    assert names
    assert len(set(names)) == len(names)
    assert all(name.startswith(f"{row.number}/") for name in names)


def test_each_request_is_tried_once_though_three_lives_have_it() -> None:
    cases = chosen(lifecycles(), Choice(frozenset({"F12"})))
    assert [case.name for case in cases] == [
        f"F12/succeed/{name} #1/reset-before" for name in REQUESTS if name.split()[0] not in {"watch", "event"}
    ]


def test_one_case_is_found_again_by_its_name() -> None:
    [case] = chosen(lifecycles(), Choice(names=frozenset({"F13/succeed/create pods/pi-worker-0 #1/reset-after"})))
    assert case.row == "F13"


def test_a_sample_is_spread_and_always_the_same() -> None:
    cases = chosen(lifecycles(), Choice(frozenset({"F8"})))
    assert spread(cases, 3) == spread(cases, 3)
    assert len(set(map(id, spread(cases, 3)))) == 3
    assert spread(cases[:2], 3) == cases[:2]


def test_every_row_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [row.number for row in ROWS if f"| {row.number} |" not in text] == []


@pytest.mark.parametrize("number", sorted(E2E_ROWS))
def test_a_row_that_needs_nodes_has_a_test_with_its_number(number: str) -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "test" / "e2e").glob("test_*.py"))
    assert f"def test_{number}_" in tests
    assert f"| {number}: " in DOCUMENT.read_text(encoding="utf-8")


def counted(trace: Trace, *expected: str) -> list[str]:
    reference = Reference({}, trace_of(*expected).effects("create", "delete"))
    return list(miscounts(trace, reference, NOTHING_DIFFERS))


@pytest.mark.parametrize(
    ("requests", "expected", "complaints"),
    [
        (["create pods/a"], ["create pods/a"], []),
        (["create pods/a"] * 2, ["create pods/a"], ["create pods/a: took effect 2 times instead of 1"]),
        (["create jobs/a", "create jobs/b"], ["create jobs/a", "create jobs/b"], ["two launcher Jobs at a time"]),
        (["create jobs/a", "delete jobs/a", "create jobs/a"], ["create jobs/a", "delete jobs/a", "create jobs/a"], []),
        (["patch secrets/a"], [], ["an SSH Secret was changed"]),
    ],
)
def test_a_write_too_many_is_seen(requests: list[str], expected: list[str], complaints: list[str]) -> None:
    found = counted(trace_of(*requests), *expected)
    assert [line.startswith(complaint) for line, complaint in zip(found, complaints, strict=True)] == [True] * len(complaints)


@pytest.mark.parametrize(("code", "was_sent", "is_wrong"), [(504, True, False), (0, True, False), (0, False, True), (409, True, True)])
def test_a_write_may_have_taken_effect_when_the_server_did_not_say(code: int, *, was_sent: bool, is_wrong: bool) -> None:
    trace = trace_of("create pods/a", code=code)
    trace.entries[0].was_sent = was_sent
    assert bool(counted(trace, "create pods/a")) is is_wrong


def test_a_pod_that_is_deleted_twice_is_gone_once() -> None:
    trace = trace_of("delete pods/a", "delete pods/a")
    for entry in trace.entries:
        entry.answer = {"uid": "1"}
    assert counted(trace, "delete pods/a") == []
    trace.entries[0].answer = {"uid": "0"}
    assert counted(trace, "delete pods/a") == ["delete pods/a: took effect 2 times instead of 1"]


@pytest.mark.parametrize(
    ("request_", "asked", "is_wrong"),
    [
        ("delete pods/a", {"uid": "1"}, False),
        ("delete pods/a", {}, True),
        ("delete pods/a", {"resourceVersion": "7"}, True),
        ("update leases/a", {"resourceVersion": "7"}, False),
        ("update leases/a", {"uid": "1"}, True),
        ("patch mpijobs.status/pi", {"uid": "1", "resourceVersion": "7"}, False),
        ("patch mpijobs.status/pi", {"resourceVersion": "7"}, True),
        ("patch mpijobs.status/pi", {"uid": "1"}, True),
        ("patch pods/pi-launcher-pod", {"uid": "1"}, False),
        ("patch pods/pi-launcher-pod", {}, True),
        ("patch events", {}, False),
        ("create pods/a", {}, False),
    ],
)
def test_a_write_without_precondition_is_seen(request_: str, asked: dict[str, str], is_wrong: bool) -> None:  # noqa: FBT001 - a case
    trace = trace_of(request_)
    trace.entries[0].asked = asked
    assert bool(list(unguarded(trace))) is is_wrong


@pytest.mark.parametrize(
    ("code", "delivered", "version", "is_wrong"),
    [(409, True, "7", True), (409, True, "8", False), (409, False, "7", False), (200, True, "7", False), (0, True, "7", False)],
    ids=["the same", "a newer one", "the refusal never came", "it was not refused", "the server was not asked"],
)
def test_what_is_sent_again_after_a_conflict_is_seen(code: int, version: str, *, delivered: bool, is_wrong: bool) -> None:
    trace = trace_of("patch pods/a", "patch pods/a")
    first, second = trace.entries
    first.code, first.delivered, first.asked = code, delivered, {"uid": "1", "resourceVersion": "7"}
    second.asked = {"uid": "1", "resourceVersion": version}
    assert bool(list(resent(trace, [trace.since(0)]))) is is_wrong


def test_a_new_process_does_not_know_what_was_refused_to_the_one_before() -> None:
    trace = trace_of("patch pods/a", "patch pods/a")
    for entry in trace.entries:
        entry.code, entry.delivered, entry.asked = 409, True, {"uid": "1", "resourceVersion": "7"}
    trace.entries[0].at, trace.entries[1].at = 1.0, 3.0
    begun = -trace.since(0)
    assert len(list(resent(trace, [begun]))) == 1
    assert list(resent(trace, [begun, begun + 2])) == []


def test_a_conflict_whose_reading_has_no_answer_excuses_the_next_patch() -> None:
    trace = trace_of("patch mpijobs.status/pi", "get mpijobs/pi", "patch mpijobs.status/pi")
    for entry in trace.entries:
        entry.code, entry.asked = 409, {"uid": "1", "resourceVersion": "7"}
    first, read, _ = trace.entries
    first.delivered = True
    assert list(resent(trace, [trace.since(0)])) == []
    read.delivered = True
    assert len(list(resent(trace, [trace.since(0)]))) == 1


@pytest.mark.parametrize(
    ("entries", "end", "complaints"),
    [
        ([], 1.5, []),
        ([Entry(1.1, Target.parse("patch pods/a #1"))], 1.5, []),
        ([Entry(1.7, Target.parse("patch pods/a #1"))], 1.8, ["written after"]),
        ([Entry(1.7, Target.parse("create events/Made #1"))], 1.8, ["written after"]),
        ([Entry(2.1, Target.parse("patch pods/a #1"))], 1.5, []),
        ([], 3.6, ["did not end"]),
    ],
    ids=["nothing written", "under way", "a write", "an Event", "a new process", "too slow to end"],
)
def test_what_is_written_after_the_lease_is_lost_is_seen(entries: list[Entry], end: float, complaints: list[str]) -> None:
    trace = Trace()
    stolen = Entry(0.9, Target.parse("create pods/b #1"), fault="lease-stolen")
    target = Target.parse("get leases/mpi-operator #1")
    noticed = Entry(1.0, target, code=200, delivered=True, delivered_at=1.0, answer={"holder": THIEF})
    trace.entries = [stolen, noticed, *entries]
    replica = SimpleNamespace(ends=[end - trace.since(0)])
    run: Any = SimpleNamespace(
        proxy=SimpleNamespace(trace=trace), replicas=[replica], testbed=SimpleNamespace(lease_seconds=2, patience=1.0)
    )
    found = wrote_after_loss(run)
    assert len(found) == len(complaints)
    assert all(phrase in line for phrase, line in zip(complaints, found, strict=True))


def asking(request_: str, version: str, answered: str = "") -> Entry:
    answer = {"resourceVersion": answered} if answered else {}
    return Entry(1.0, Target.parse(f"{request_} pods #1"), code=200, delivered=True, asked={"resourceVersion": version}, answer=answer)


@pytest.mark.parametrize(
    ("entries", "is_wrong"),
    [
        ([asking("list", "0", "5"), asking("watch", "5")], False),
        ([asking("list", "0", "5"), asking("watch", "9"), asking("list", "9"), asking("list", "")], False),
        ([asking("list", "0", "5"), asking("patch", "9"), asking("watch", "5")], True),
        ([asking("list", "0", "5"), asking("list", "0")], True),
    ],
)
def test_whoever_asks_for_less_than_it_has_seen_is_seen(entries: list[Entry], is_wrong: bool) -> None:  # noqa: FBT001 - a case
    trace = Trace()
    trace.entries = entries
    run: Any = SimpleNamespace(proxy=SimpleNamespace(trace=trace), replicas=[SimpleNamespace(starts=[-trace.since(0)])])
    assert bool(went_back(run)) is is_wrong


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
