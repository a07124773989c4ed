"""How a launcher has failed, and what that leaves in the job's Failed condition."""

from dataclasses import replace
from typing import Any

import pytest

from example_children import TERMINATING, failures_of, launcher_pod
from example_jobs import PI
from mpiop.api.status_types import Attempt, MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.status.outcomes import failure
from mpiop.kube.objects import Object

BACKOFF = {"type": "Failed", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}


def failed_pod(name: str = "pi-launcher-x", **ended: Any) -> Object:
    return launcher_pod(
        "Failed", name=name, containerStatuses=[{"name": "launcher", "state": {"terminated": {"exitCode": 1, "reason": "Error", **ended}}}]
    )


def test_the_containers_end_is_added_to_a_backoff_limit() -> None:
    pod = failed_pod(exitCode=137, reason="OOMKilled")
    pod["spec"] = {**pod["spec"], "nodeName": "node-1"}
    reason, message = failure(BACKOFF, failures_of(pod).last, "")
    assert reason == "BackoffLimitExceeded/OOMKilled"
    assert message == f"{BACKOFF['message']}: pod pi-launcher-x on node node-1 container launcher exit code 137 (SIGKILL)"


def test_the_newest_failed_pod_counts() -> None:
    found = failures_of(failed_pod("old"), failed_pod("new"), launcher_pod("Succeeded")).last
    assert found is not None
    assert "pod new " in found.message


def test_a_container_that_was_restarted_shows_its_last_end() -> None:
    row = ended("launcher", 3, "05", restarted=True)
    row["lastState"]["terminated"]["message"] = "out of luck"
    reason, message = failure(BACKOFF, failures_of(launcher_pod(containerStatuses=[row])).last, "")
    assert reason == "BackoffLimitExceeded/Error"
    assert message.endswith("container launcher exit code 3: out of luck")


def test_a_pods_own_words_are_kept() -> None:
    pod = launcher_pod("Failed", reason="NodeLost", message="node is gone")
    assert failure(BACKOFF, failures_of(pod).last, "") == (
        "BackoffLimitExceeded/NodeLost",
        f"{BACKOFF['message']}: pod pi-launcher-x failed: node is gone",
    )


def ended(name: str, exit_code: int, finished: str, *, restarted: bool = False) -> dict[str, Any]:
    state = {"terminated": {"exitCode": exit_code, "reason": "Error", "finishedAt": f"2026-01-01T00:00:{finished}Z"}}
    return {"name": name, "state": {"running": {}}, "lastState": state} if restarted else {"name": name, "state": state}


ENDS = [
    ("the first to fail is the cause, others died of it", [ended("a", 137, "09"), ended("b", 3, "08")], {}, "b exit code 3"),
    ("what failed now, not what was restarted long ago", [ended("a", 1, "01", restarted=True), ended("b", 3, "08")], {}, "b exit code 3"),
    (
        "a container that ended well at last is no cause",
        [ended("a", 1, "01") | {"lastState": ended("a", 7, "00")["state"]}],
        {},
        "exit code 1",
    ),
    (
        "what was told to end is no cause",
        [ended("a", 143, "09") | {"lastState": ended("a", 3, "05")["state"]}],
        TERMINATING,
        "a exit code 3",
    ),
]


@pytest.mark.parametrize(("containers", "metadata", "want"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_which_container_is_the_cause(containers: list[dict[str, Any]], metadata: dict[str, Any], want: str) -> None:
    pod = launcher_pod("Running", containerStatuses=containers, metadata=metadata)
    found = failures_of(pod).last
    assert found is not None
    assert found.message.endswith(want)


@pytest.mark.parametrize(
    ("phase", "containers", "metadata"),
    [
        ("Running", [ended("a", 0, "09") | {"lastState": ended("a", 3, "05")["state"]}], {}),
        ("Failed", [ended("a", 143, "09")], TERMINATING),
        ("Running", [], {}),
    ],
    ids=["ended well at last", "suspended: told to end", "no word of its containers"],
)
def test_no_failure_is_no_cause(phase: str, containers: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    assert failures_of(launcher_pod(phase, containerStatuses=containers, metadata=metadata)).last is None


def test_without_a_failed_pod_the_job_speaks() -> None:
    assert failure(BACKOFF, None, "") == ("BackoffLimitExceeded", BACKOFF["message"])
    assert failure({"type": "Failed"}, None, "MPIJob default/pi has failed") == ("MPIJobFailed", "MPIJob default/pi has failed")


def tried(pod: str, second: str, exit_code: int = 1) -> Object:
    """Return a launcher pod that failed so many seconds after the start of the year."""
    return launcher_pod("Failed", name=pod, containerStatuses=[ended("launcher", exit_code, second)])


def known(tries: tuple[Attempt, ...]) -> MPIJob:
    return replace(PI, status=MPIJobStatus(attempts=tries))


def test_the_last_three_tries_are_kept_and_counted() -> None:
    pods = tuple(tried(f"pod-{number}", f"0{number}", number) for number in range(1, 6))
    kept = failures_of(*pods[:2]).attempts
    assert [(each.number, each.pod, each.exit_code) for each in kept] == [(1, "pod-1", 1), (2, "pod-2", 2)]
    kept = failures_of(*pods, job=known(kept)).attempts
    assert [(each.number, each.pod) for each in kept] == [(3, "pod-3"), (4, "pod-4"), (5, "pod-5")]
    assert failures_of(*pods, job=known(kept)).attempts == kept, "each once, though old pods are still there"
    assert failures_of(job=known(kept)).attempts == kept, "though their pods are gone"


def test_a_container_that_is_restarted_in_place_has_a_try_each_time() -> None:
    def pod(second: str) -> Object:
        return launcher_pod(containerStatuses=[ended("launcher", 3, second, restarted=True)])

    kept = failures_of(pod("12"), job=known(failures_of(pod("01")).attempts)).attempts
    assert [(each.number, each.ended.second) for each in kept] == [(1, 1), (2, 12)]
