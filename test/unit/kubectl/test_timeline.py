"""Pictures of a job's life."""

from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fakes.client_api import FakeApi, container, pod, stored
from mpiop.client.errors import ForbiddenError
from mpiop.client.job import Job
from mpiop.kubectl.drawing import as_html, as_svg
from mpiop.kubectl.picture import Span, as_text
from mpiop.kubectl.timeline import spans

NOW = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)


def second(number: int) -> datetime:
    return datetime(2026, 11, 25, 12, 0, number, tzinfo=UTC)


def failed_pod() -> Any:
    ended = {"exitCode": 1, "startedAt": "2026-11-25T12:00:05Z", "finishedAt": "2026-11-25T12:00:10Z"}
    found = pod("pi-launcher-x", role="launcher", terminated=ended)
    found["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-25T12:00:02Z"
    return found


def test_spans_tell_what_each_pod_did() -> None:
    tries = [{"number": 1, "pod": "gone", "node": "node-2", "startTime": "2026-11-25T12:00:01Z", "endTime": "2026-11-25T12:00:03Z"}]
    job = stored(state="Running", startTime="2026-11-25T12:00:00Z", attempts=tries)
    assert spans(Job(FakeApi(), job), [pod("pi-worker-0", node=""), failed_pod()], NOW) == [
        Span("job", "running", second(0), NOW),
        Span("pi-launcher-x", "scheduling", second(0), second(2), "node-1"),
        Span("gone", "failed", second(1), second(3), "node-2", "attempt 1"),
        Span("pi-launcher-x", "creating", second(2), second(5), "node-1"),
        Span("pi-launcher-x", "failed", second(5), second(10), "node-1"),
        Span("pi-worker-0", "scheduling", second(0), NOW, note="rank 0"),
    ]


EPOCH = "1970-01-01T00:00:00Z"


def test_a_container_that_never_started_takes_no_time() -> None:
    never = pod("pi-launcher-x", role="launcher", terminated={"exitCode": 128, "startedAt": EPOCH, "finishedAt": "2026-11-25T12:00:10Z"})
    tries = [{"number": 1, "pod": "gone", "startTime": EPOCH, "endTime": "2026-11-25T12:00:03Z", "exitCode": 128}]
    job = stored(state="Failed", startTime="2026-11-25T12:00:00Z", completionTime="2026-11-25T12:00:12Z", attempts=tries)
    made = spans(Job(FakeApi(), job), [never], NOW)
    assert [span for span in made if span.phase == "failed"] == [
        Span("job", "failed", second(0), second(12)),
        Span("gone", "failed", second(3), second(3), note="attempt 1"),
        Span("pi-launcher-x", "failed", second(10), second(10), "node-1"),
    ]
    assert (min(span.begun for span in made), max(span.ended for span in made)) == (second(0), second(12))
    assert "x" in as_text("team/pi", made).splitlines()[-3]


def pulling(reason: str, second_: int, uid: str = "uid-pi-launcher-x") -> dict[str, Any]:
    time = f"2026-11-25T12:00:{second_:02}Z"
    return {"reason": reason, "involvedObject": {"uid": uid}, "firstTimestamp": time, "lastTimestamp": time}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([pulling("Pulling", 3), pulling("Pulled", 4)], [Span("pi-launcher-x", "pulling", second(3), second(4), "node-1")]),
        ([pulling("Pulling", 3)], [Span("pi-launcher-x", "pulling", second(3), second(5), "node-1")]),
        ([pulling("Pulled", 3)], []),
        ([pulling("Pulling", 3, "uid-another")], []),
    ],
    ids=["pulled", "still", "there already", "of another Pod"],
)
def test_the_time_that_an_image_takes_is_in_events(events: list[dict[str, Any]], expected: list[Span]) -> None:
    assert [span for span in spans(Job(FakeApi(), stored()), [failed_pod()], NOW, events) if span.phase == "pulling"] == expected


def test_the_picture_in_characters() -> None:
    made = [
        Span("a", "scheduling", second(0), second(10)),
        Span("bb", "running", second(10), second(20), "n1"),
        Span("bb", "failed", second(20), second(20), "n1"),
        Span("cc", "running", second(0), second(20), "n2"),
        Span("dd", "running", second(0), second(20), "n1"),
    ]
    lines = as_text("team/pi", made).splitlines()
    assert lines[0] == "team/pi  from 2026-11-25 12:00:00 to 12:00:20 UTC, 20s"
    assert lines[1].startswith("a       |" + "." * 30 + " ")
    assert lines[3] == "bb      |" + " " * 30 + "=" * 30 + "x|"
    assert [line.split()[0] for line in lines[2:7]] == ["node", "bb", "dd", "node", "cc"]
    assert lines[7].split() == ["0s", "5s", "10s", "15s", "20s"]
    assert as_text("team/pi", []) == "team/pi has not started yet\n"


SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_for_browsers_is_well_formed_and_escaped() -> None:
    root = ET.fromstring(as_svg("<pi> & co", [Span("a", "running", second(0), second(5))]))  # noqa: S314 - our own
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts[:7] == ["<pi> & co", "from 2026-11-25 12:00:00 to 12:00:05 UTC, 5s", "0s", "1.2s", "2.5s", "3.8s", "5s"]
    assert ET.fromstring(as_svg("empty", [])) is not None  # noqa: S314 - our own
    assert "<title>&lt;pi&gt;</title>" in as_html("<pi>", [])


def percent(text: str) -> float:
    assert text.endswith("%")
    return float(text[:-1])


def test_the_picture_is_complete_dark_if_wanted_and_red_where_it_failed() -> None:
    made = [
        Span("job", "failed", second(0), second(40)),
        Span("pi-worker-0", "running", second(0), second(40), "<n>", "ranks 0-3"),
        Span("pi-launcher-x", "failed", second(40), second(40), "<n>", "attempt 1"),
    ]
    root = ET.fromstring(as_svg("team/pi", made))  # noqa: S314 - our own
    bars = [bar for bar in root.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    assert [bar.attrib["fill"] for bar in bars] == ["#d93025", "#3c9d5d", "#d93025"]
    lines = [percent(line.attrib["x1"]) for line in root.iter(f"{SVG}line")]
    ends = [(percent(bar.attrib["x"]), percent(bar.attrib["x"]) + percent(bar.attrib["width"])) for bar in bars]
    assert ends[:2] == [(lines[0], lines[-1])] * 2
    assert lines[-1] - ends[2][0] > 0.5
    assert ends[2][1] == pytest.approx(lines[-1])
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [text for text in texts if text in {"node <n>", "worker-0, ranks 0-3", "launcher-x, attempt 1"}] == texts[8:11]
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    fixed = {each.attrib.get("fill") for each in root.iter() if each.tag != f"{SVG}rect"}
    assert fixed == {None}


@pytest.mark.parametrize(
    ("name", "role", "spec", "status", "args", "expected"),
    [
        ("pi-worker-1", "worker", {"slotsPerWorker": 4}, {}, [], "4-7"),
        ("pi-worker-1", "worker", {"slotsPerWorker": 4}, {"summary": {"slots": "2"}}, [], "2-3"),
        ("pi-worker-1", "worker", {}, {}, [], "1"),
        ("pi-worker-1", "worker", {"slotsPerWorker": 4}, {}, ["mpirun", "-n", "6", "./a"], "4-5"),
        ("pi-worker-1", "worker", {"slotsPerWorker": 4}, {}, ["mpirun", "-n", "4", "./a"], ""),
        ("pi-worker-1", "worker", {"slotsPerWorker": 2, "runLauncherAsWorker": True}, {}, [], "4-5"),
        ("pi-launcher-x", "launcher", {"slotsPerWorker": 2, "runLauncherAsWorker": True}, {}, [], "0-1"),
        ("pi-launcher-x", "launcher", {"slotsPerWorker": 2}, {}, [], ""),
    ],
)
def test_the_ranks_of_a_pod_are_those_of_its_line_in_the_hostfile(
    mpi: Any, api: FakeApi, name: str, role: str, spec: dict[str, Any], status: dict[str, Any], args: list[str], expected: str
) -> None:
    job = stored(**status)
    job["spec"] |= spec
    container(job)["args"] = args
    api.stored["pi"], api.all_pods = job, [pod(name, role=role)]
    api.answers["/api/v1/namespaces/team/events"] = ForbiddenError("events: forbidden")
    row = next(line for line in mpi("describe", "pi")[1].splitlines() if name in line)
    assert row.split("10.0.0.1")[1].strip() == expected
    assert (f", rank{'s' * ('-' in expected)} {expected} |" in mpi("timeline", "pi")[1]) == bool(expected)


def test_a_job_that_waits_does_not_look_as_if_it_ran() -> None:
    job = Job(FakeApi(), stored(state="Starting", startTime="2026-11-25T12:00:00Z"))
    assert spans(job, [], NOW) == [Span("job", "creating", second(0), NOW)]


def test_the_verb_draws(mpi: Any, api: FakeApi) -> None:
    api.stored["pi"] = stored(state="Running", startTime="2026-11-25T12:00:00Z")
    api.answers["/api/v1/namespaces/team/events"] = ForbiddenError("events: forbidden")
    assert mpi("timeline", "pi")[1].startswith("team/pi  from 2026-11-25 12:00:00")
    api.answers["/api/v1/namespaces/team/events"] = {"items": [pulling("Pulling", 3, "uid-pi-worker-0")]}
    api.all_pods = [pod("pi-worker-0", waiting={"reason": "ContainerCreating"})]
    assert "~~~" in mpi("timeline", "pi")[1]
    assert mpi("timeline", "pi", "-o", "svg")[1].startswith("<svg")
