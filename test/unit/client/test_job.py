"""A submitted job: waiting, logs, what becomes of it when things go wrong."""

import asyncio
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from fakes.client_api import TAGGED, FakeApi, pod, raises, stored
from mpiop.client import MPI, AsyncJob, Files, ForbiddenError, InvalidError, JobFailed, JobTimeoutError, NotFoundError, UnreachableError
from mpiop.client.api import LogOptions
from mpiop.client.job import Job
from mpiop.client.logs import Reader, read_lines


def no_pause(_seconds: float) -> None:
    """Wait for nothing."""


def job_of(api: FakeApi, *, is_tagged: bool = False) -> Job:
    if is_tagged:
        api.stored["pi"]["metadata"]["annotations"] = TAGGED
    return Job(api, api.stored["pi"], pause=no_pause)


def becomes(api: FakeApi, state: str) -> Callable[[], None]:
    annotations = api.stored["pi"]["metadata"].get("annotations", {})

    def step() -> None:
        api.stored["pi"] = stored(state=state, annotations=annotations)

    return step


def ended(name: str) -> Any:
    """Return the Pod of a launcher that has ended."""
    return pod(name, role="launcher", terminated={"exitCode": 0})


def test_waiting_reports_each_stage_and_ends_with_success() -> None:
    api = FakeApi(stored())
    api.steps = [becomes(api, state) for state in ("Starting", "Running", "Succeeded")]
    reported: list[str] = []
    assert job_of(api).wait(report=reported.append).has_succeeded
    assert reported == ["scheduling: 0/2 workers have a node", "running: 0/2 workers", "succeeded"]


LOG = [f"2026-11-25T12:00:00.{number:02}Z line {number}\n".encode() for number in range(30)]
END = "The end of its log:\n" + "\n".join(f"line {number}" for number in range(10, 30))
KEPT = {"lastFailure": {"reason": "Error", "log": "kept"}}


@pytest.mark.parametrize(
    ("log", "end"),
    [
        pytest.param(LOG, END, id="the log, which the user may read"),
        pytest.param(
            [ForbiddenError("you may not")], "Its log cannot be read: you may not\nThe end of its log:\nkept", id="the user may not read it"
        ),
        pytest.param([UnreachableError("no answer")] * 30, "Its log cannot be read: no answer\nThe end of its log:\nkept", id="no answer"),
        pytest.param([NotFoundError("gone")], "MPIJobFailed: \nThe end of its log:\nkept", id="the Pod is gone"),
    ],
)
async def test_a_failure_ends_with_the_end_of_the_log(log: list[Any], end: str) -> None:
    api = FakeApi(stored(state="Failed", **KEPT))
    for wait in (lambda: asyncio.to_thread(job_of(api).wait), AsyncJob(job_of(api)).wait):
        api.all_pods, api.logs = [ended("pi-launcher-a")], {"pi-launcher-a": [*log]}
        with pytest.raises(JobFailed) as caught:
            await wait()
        assert str(caught.value).endswith(end)
    assert caught.value.log.splitlines()[-1] == end.splitlines()[-1]


def test_a_job_that_takes_too_long_goes_on() -> None:
    api = FakeApi(stored(state="Running"))
    with pytest.raises(JobTimeoutError, match=r"job pi has not ended within 0 s: running: 0/2 workers"):
        job_of(api).wait(timeout=0)
    assert "pi" in api.stored


def test_a_deleted_job_is_an_end() -> None:
    api = FakeApi(stored(state="Running"))
    api.steps = [lambda: None, api.stored.clear]
    with pytest.raises(JobFailed, match="somebody deleted it"):
        job_of(api).wait()


def test_another_job_of_the_same_name_is_not_taken_for_it() -> None:
    api = FakeApi(stored(state="Running"))
    job = job_of(api)
    api.stored["pi"] = stored(state="Running")
    api.stored["pi"]["metadata"]["uid"] = "another"
    with pytest.raises(NotFoundError, match="another has its name now"):
        job.refresh()


def test_waiting_outlives_an_api_server_that_is_away() -> None:
    api = FakeApi(stored(state="Running"))
    api.steps = [raises(UnreachableError("no answer")), becomes(api, "Succeeded")]
    reported: list[str] = []
    job_of(api).wait(report=reported.append)
    assert reported == ["waits for the API server: no answer", "succeeded"]


def test_logs_of_each_try_follow_one_another() -> None:
    api = FakeApi(stored(state="Running"))
    first, second = pod("pi-launcher-a", role="launcher"), ended("pi-launcher-b")
    second["metadata"]["creationTimestamp"] = "2026-11-25T12:01:00Z"
    api.logs = {"pi-launcher-a": [b"1 [1,0]<stdout>:one\n2 [1,1]<stderr>: two\n"], "pi-launcher-b": [b"3 thr", b"ee"]}
    api.all_pods = [first]
    job = job_of(api, is_tagged=True)
    api.steps = [lambda: None, lambda: api.all_pods.append(second), becomes(api, "Succeeded")]
    assert [(line.rank, line.text) for line in job.tagged_logs(follow=True)] == [(0, b"one"), (1, b" two"), (None, b"three")]


@pytest.mark.parametrize(
    ("state", "pods"),
    [("Failed", []), ("Running", [pod("pi-launcher-a", role="launcher")])],
    ids=["before", "while its log is asked for"],
)
def test_the_kept_end_of_a_log_is_shown_when_the_pod_has_gone(state: str, pods: list[Any]) -> None:
    api = FakeApi(stored(state=state, lastFailure={"reason": "Error", "log": "the\nend"}))
    api.all_pods, api.logs = pods, {"pi-launcher-a": [NotFoundError("gone")]}
    assert list(job_of(api).logs()) == ["the", "end"]


OWNER = {"kind": "MPIJob", "name": "pi", "uid": "uid-pi", "controller": True}
STRAYS = {
    "no owner": (pod("pi-worker-0"), []),
    "not a worker's name": (pod("x-0"), [OWNER]),
    "another form of the number": (pod("pi-worker-00"), [OWNER]),
    "of a job before with the name": (pod("pi-worker-0"), [OWNER | {"uid": "before"}]),
    "an owner that does not control it": (pod("pi-worker-0"), [OWNER | {"controller": False}]),
    "a launcher without owner": (pod("pi-launcher-x", role="launcher"), []),
    "a launcher of the job itself": (pod("pi-launcher-x", role="launcher"), [OWNER]),
    "a launcher of another Job": (pod("pi-launcher-x", role="launcher"), [OWNER | {"kind": "Job", "name": "x-launcher"}]),
    "without a role": (pod("x", role=""), []),
}


@pytest.mark.parametrize(("stray", "owners"), STRAYS.values(), ids=STRAYS)
def test_a_pod_that_only_has_the_labels_of_the_job_is_none_of_its_pods(stray: Any, owners: list[Any]) -> None:
    api = FakeApi(stored(state="Running"))
    own = [pod("pi-launcher-a", role="launcher"), pod("pi-worker-1")]
    stray = {**stray, "metadata": {**stray["metadata"], "creationTimestamp": "2027-01-01T00:00:00Z", "ownerReferences": owners}}
    api.all_pods = [*own, stray]
    job = job_of(api)
    assert [found["metadata"]["name"] for found in job.pods()] == ["pi-launcher-a", "pi-worker-1"]
    assert job.launcher is not None
    assert job.launcher["metadata"]["name"] == "pi-launcher-a"


ONE, TWO, THREE = (f"2026-11-25T12:00:00.{number}Z {word}\n".encode() for number, word in ((1, "one"), (2, "two"), (3, "three")))
LATE = b"2026-11-25T12:00:00.15Z late\n"
CUT = UnreachableError("cut")


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        pytest.param([ONE, TWO, LATE, CUT], [TWO, THREE], ["one", "two", "late", "three"], id="stamps of stdout and stderr mixed"),
        pytest.param([ONE, TWO, CUT], [ONE, LATE, TWO], ["one", "two", "late"], id="a line of the last second that was not sent before"),
        pytest.param([ONE, ONE, CUT], [ONE, ONE, ONE, TWO], ["one", "one", "one", "two"], id="equal lines are as many as they are"),
        pytest.param([ONE, TWO[:-3], CUT], [ONE, TWO], ["one", "two"], id="half a line"),
        pytest.param([ONE, CUT], [ONE, TWO[:-1]], ["one", "two"], id="the last line has no end"),
        pytest.param([ONE, CUT], [b"unable to retrieve container logs"], ["one"], id="the kubelet has removed the log"),
    ],
)
def test_a_log_goes_on_after_the_last_line_when_the_connection_breaks(first: list[Any], second: list[Any], texts: list[str]) -> None:
    api = FakeApi()
    api.all_pods, api.logs = [ended("pod")], {"pod": [*first, *second]}
    lines = read_lines(api, "pod", "launcher", LogOptions(follow=True, since_seconds=60, tail=5), pause=no_pause)
    assert [line.text.decode() for line in lines] == texts
    asked_first, asked_second = (request[3] for request in api.requests)
    assert asked_first == LogOptions(follow=True, since_seconds=60, tail=5)
    last = max(piece for piece in first if isinstance(piece, bytes) and piece.endswith(b"\n")).decode().split()[0]
    assert asked_second == LogOptions(follow=True, since_time=last)


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiop.client.logs.MOST_BYTES", 30)
    api = FakeApi()
    api.logs = {"pod": [ONE, TWO[:-1], *[b"x" * 1000] * 1000, b"\n" + ONE, TWO[:-1], b"y" * 1000]}
    found = [line.text.decode() for line in read_lines(api, "pod", "launcher")]
    assert [(text[:3], len(text) <= 30) for text in found] == [("one", True), ("two", True), ("one", True), ("two", True)]


def test_a_log_that_is_not_followed_must_be_whole() -> None:
    api = FakeApi()
    api.logs = {"pod": [ONE, CUT]}
    with pytest.raises(UnreachableError):
        list(read_lines(api, "pod", "launcher"))


@pytest.mark.parametrize("then", [[ended("pod")], []], ids=["it ends", "it is deleted"])
def test_a_followed_log_goes_on_as_long_as_its_container_runs(then: list[Any]) -> None:
    api = FakeApi()
    api.all_pods, api.logs = [pod("pod", role="launcher")], {"pod": [ONE, TWO[:-3]]}

    def pause(_seconds: float) -> None:
        api.all_pods, api.logs = then, {"pod": [ONE, TWO]}

    lines = read_lines(api, "pod", "launcher", LogOptions(follow=True), pause=pause)
    assert [line.text for line in lines] == ([b"one", b"two"] if then else [b"one"])


def test_a_followed_log_of_a_job_goes_on_when_its_stream_ends_early() -> None:
    api = FakeApi(stored(state="Running"))
    api.all_pods, api.logs = [pod("pi-launcher-a", role="launcher")], {"pi-launcher-a": [ONE, TWO[:-3]]}

    def succeeds() -> None:
        becomes(api, "Succeeded")()
        api.all_pods, api.logs = [ended("pi-launcher-a")], {"pi-launcher-a": [ONE, TWO, THREE]}

    api.steps = [lambda: None, lambda: None, succeeds]
    assert list(job_of(api).logs(follow=True)) == ["one", "two", "three"]


def test_a_try_that_ended_while_the_api_server_was_away_is_read_to_its_end() -> None:
    api = FakeApi(stored(state="Running"))
    first, second = pod("pi-launcher-a", role="launcher"), ended("pi-launcher-b")
    second["metadata"]["creationTimestamp"] = "2026-11-25T12:01:00Z"
    api.all_pods, api.logs = [first], {"pi-launcher-a": [ONE, CUT, ONE, TWO], "pi-launcher-b": [THREE]}

    def fails_and_succeeds() -> None:
        becomes(api, "Succeeded")()
        api.all_pods = [second, ended("pi-launcher-a")]

    api.steps = [lambda: None, fails_and_succeeds]
    assert list(job_of(api).logs(follow=True)) == ["one", "two", "three"]


def test_the_log_of_a_job_that_has_ended_is_asked_for_until_it_comes() -> None:
    api = FakeApi(stored(state="Succeeded"))
    api.all_pods, api.logs = [ended("pi-launcher-a")], {"pi-launcher-a": [CUT, ONE, CUT, ONE, TWO]}
    assert list(job_of(api).logs(follow=True)) == ["one", "two"]


def test_a_log_that_never_comes_is_an_error() -> None:
    api = FakeApi(stored(state="Failed", lastFailure={"reason": "Error", "log": "kept"}))
    api.all_pods, api.logs = [pod("pi-launcher-a", role="launcher")], {"pi-launcher-a": [CUT] * 1000}
    with pytest.raises(UnreachableError, match="cut"):
        list(job_of(api).logs(follow=True))
    asked = len(api.requests)
    with pytest.raises(UnreachableError, match="cut"):
        list(job_of(api).logs())
    assert len(api.requests) == asked + 1


def test_files_travel_in_a_config_map_that_belongs_to_the_job() -> None:
    api = FakeApi()
    job = MPI(api=api, image="i").submit(["./a"], files=Files({"a": b"1", "lib/b": b"2"}), ranks=2)
    kinds = [request[0] for request in api.requests]
    assert kinds == ["create configmap", "create", "patch configmap"]
    assert api.requests[0][1]["binaryData"] == {"file-0": "MQ==", "file-1": "Mg=="}
    [owner] = api.requests[2][2]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("MPIJob", job.name, f"uid-{job.name}")


def test_a_job_of_a_with_block_is_deleted_at_its_end() -> None:
    api = FakeApi()
    with MPI(api=api, image="i").job(["./a"], name="a") as job:
        assert job.name in api.stored
        assert repr(job) == "<Job team/a: Pending>"
    assert api.stored == {}


def test_a_job_can_be_changed() -> None:
    api = FakeApi(stored())
    job = MPI(api=api).get("pi")
    job.suspend()
    job.resume()
    job.scale(3)
    assert [request[2]["spec"] for request in api.requests] == [
        {"runPolicy": {"suspend": True}},
        {"runPolicy": {"suspend": False}},
        {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}},
    ]
    assert [each.name for each in MPI(api=api).jobs()] == ["pi"]
    assert job.why().startswith("Job pi has been seen by no operator yet")


def test_a_failed_job_says_why_with_the_end_of_its_log() -> None:
    api = FakeApi(stored(state="Failed", lastFailure={"reason": "Error", "log": "\n".join(f"line {number}" for number in range(30))}))
    assert job_of(api).why().endswith("The end of its log:\n" + "\n".join(f"line {number}" for number in range(10, 30)))
    api.all_pods, api.logs = [pod("pi-launcher-x", role="launcher")], {"pi-launcher-x": [b"1 [1,0]<stderr>:no input file\n"]}
    assert job_of(api, is_tagged=True).why().endswith("The end of its log:\nno input file")
    assert api.requests[-1][-1] == LogOptions(tail=200)
    assert "the end of its log" not in job_of(api).why(with_log=False).lower()


def test_a_job_of_another_namespace_is_asked_for_there() -> None:
    other = stored(state="Succeeded")
    other["metadata"]["namespace"] = "other"
    [job] = MPI(api=FakeApi(other)).jobs(everywhere=True)
    assert job.namespace == "other"
    assert job.refresh().has_succeeded
    assert job.wait().has_succeeded
    job.scale(3)
    assert job.why() == "Job pi succeeded."


@pytest.mark.parametrize("name", ["pi", "mpijob.kubeflow.org/pi", "mpijobs.kubeflow.org/pi", "mpijob/pi"])
def test_a_job_is_found_by_what_kubectl_calls_it(name: str) -> None:
    assert MPI(api=FakeApi(stored())).get(name).name == "pi"


@pytest.mark.parametrize("name", ["", "pi/scale", "..", "mpijob.kubeflow.org/", "pod/pi", "pi?x=1"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=f"^invalid job name '{re.escape(name)}'"):
        MPI(api=FakeApi(stored())).get(name)


def test_a_sentence_of_the_kubelet_is_no_line_to_go_on_from() -> None:
    api = FakeApi()
    api.logs = {
        "p": [b"failed to try resolving symlinks\n", UnreachableError("lost"), b"2026-11-25T12:00:01.0Z one\n2026-11-25T12:00:02.0Z two\n"]
    }
    reader = Reader(api, "p", "c")
    with pytest.raises(UnreachableError):
        list(reader.read(LogOptions(follow=True), is_last=False))
    assert [line.text for line in reader.read(LogOptions(follow=True), is_last=False)] == [b"one", b"two"]


@pytest.mark.parametrize(("follows", "is_reported"), [(True, True), (False, False)])
def test_a_log_that_is_longer_than_a_file_of_the_kubelet_is_reported_once(follows: bool, is_reported: bool) -> None:  # noqa: FBT001
    api = FakeApi()
    line = b"2026-11-25T12:00:01.0Z " + b"a" * 1_000_000 + b"\n"
    api.all_pods, api.logs = [ended("pod")], {"pod": [line * 12]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(list(read_lines(api, "pod", "launcher", LogOptions(follow=follows), pause=no_pause))) == 12
    sentence = "pod pod: its log has more than 10 MiB. The kubelet may rotate it, so lines may be missing"
    assert [str(each.message) for each in caught] == ([sentence] if is_reported else [])


LATER = b"2026-11-25T12:00:05.0Z later\n"


@pytest.mark.parametrize(
    ("second", "is_rotated"),
    [
        pytest.param([LATER], True, id="the lines of the last second are gone"),
        pytest.param([TWO, LATER], True, id="one of them is gone"),
        pytest.param([ONE, TWO, LATER], False, id="all are there"),
        pytest.param([ONE, TWO], False, id="there is nothing new"),
        pytest.param([], False, id="nothing arrives"),
    ],
)
def test_a_log_that_was_rotated_before_it_was_read_is_reported(second: list[Any], is_rotated: bool) -> None:  # noqa: FBT001
    api = FakeApi()
    api.all_pods, api.logs = [ended("pod")], {"pod": [ONE, TWO, CUT, *second]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(read_lines(api, "pod", "launcher", LogOptions(follow=True), pause=no_pause))
    sentence = "pod pod: lines of its log after 2026-11-25T12:00:00.2Z are missing: the kubelet rotated it meanwhile"
    assert [str(each.message) for each in caught] == ([sentence] if is_rotated else [])
