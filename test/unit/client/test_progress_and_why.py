"""The progress of a job, and its reasons."""

from typing import Any

import pytest

from fakes.client_api import pod, stored
from mpiop.client.progress import progress
from mpiop.client.status import JobStatus, status_of
from mpiop.client.why import why
from mpiop.kube.objects import Object

UNSEEN = "no operator has seen it: none runs, or none watches namespace team; check with: kubectl mpi doctor -n team"
CREATED = [{"type": "Created", "status": "True", "reason": "MPIJobCreated", "message": ""}]


def condition(type_: str, reason: str, message: str) -> dict[str, Any]:
    return {"conditions": [*CREATED, {"type": type_, "status": "True", "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("job", "pods", "line"),
    [
        (stored(), [], f"created: {UNSEEN}"),
        (stored(state="Suspended"), [], "suspended"),
        (stored(state="Queued"), [], "queued: waits for Kueue queue "),
        (stored(state="Starting"), [], "scheduling: 0/2 workers have a node"),
        (stored(state="Starting"), [pod("pi-worker-0"), pod("pi-worker-1", node="")], "scheduling: 1/2 workers have a node"),
        (
            stored(state="Starting"),
            [pod("pi-worker-0"), pod("pi-worker-1", ready=False, waiting={"reason": "ContainerCreating"})],
            "pulling and creating: 1/2 workers",
        ),
        (stored(state="Starting"), [pod("pi-worker-0"), pod("pi-worker-1", ready=False)], "starting: 1/2 workers are ready"),
        (stored(state="Running"), [pod("pi-worker-0"), pod("pi-worker-1")], "running: 2/2 workers"),
        (stored(**condition("Stalled", "ImagePull", "no such image")), [], "ImagePull: no such image"),
        (stored(**condition("Degraded", "OOMKilled", "too much")), [], "OOMKilled: too much"),
        (stored(state="Succeeded"), [], "succeeded"),
    ],
)
def test_where_a_job_stands(job: dict[str, Any], pods: list[Any], line: str) -> None:
    assert progress(job, pods) == line


FAILED = stored(
    **condition("Failed", "BackoffLimitExceeded/OOMKilled", "pod pi-launcher-x exit code 137\nthe log"),
    attempts=[
        {"number": 1, "pod": "pi-launcher-x", "node": "n1", "exitCode": 137, "reason": "OOMKilled", "endTime": "2026-11-25T12:00:09Z"}
    ],
    lastFailure={"reason": "Error", "log": "no input file"},
)
WARNING = {
    "type": "Warning",
    "reason": "FailedMount",
    "message": "no such volume",
    "lastTimestamp": "2026-11-25T12:00:00Z",
    "involvedObject": {"kind": "Pod", "name": "pi-worker-0"},
}


@pytest.mark.parametrize(
    ("job", "events", "words"),
    [
        (stored(state="Succeeded"), [], ["Job pi succeeded."]),
        (stored(state="Running"), [WARNING], ["Job pi: running: 0/2 workers."]),
        (stored(state="Starting"), [WARNING], ["scheduling", "FailedMount (pod pi-worker-0): no such volume"]),
        (stored(), [], ["has been seen by no operator yet", "kubectl mpi doctor"]),
        (stored(**condition("Stalled", "NoSshd", "Install sshd.")), [], ["Job pi waits: NoSshd.\nInstall sshd."]),
        (stored(**condition("Degraded", "OOMKilled", "Raise it.")), [], ["Job pi runs, but not well: OOMKilled.\nRaise it."]),
        (stored(**condition("Restarting", "NodeLost", "restart 1")), [], ["Job pi is restarted: NodeLost.\nrestart 1"]),
        (stored(**condition("Failed", "ReachedMaxRestarts", "2 attempts")), [], ["failed: ReachedMaxRestarts: 2 attempts", "max-restarts"]),
        (
            FAILED,
            [],
            [
                "failed: BackoffLimitExceeded/OOMKilled: pod pi",
                "exit code 137",
                "Attempt 1 failed",
                "Raise the limit",
                "Its log is empty, or its Pod is gone.",
            ],
        ),
    ],
)
def test_why_a_job_is_as_it_is(job: dict[str, Any], events: list[Any], words: list[str]) -> None:
    text = why(job, [], events)
    assert [word for word in words if word not in text] == []


ENDED = condition("Failed", "BackoffLimitExceeded/Error", "Job has reached the specified backoff limit: pod pi-launcher-x exit code 3")
ENDED |= {"summary": {"state": "Failed", "message": "the launcher failed with exit code 3; its log may show the cause"}}
RANK = ["The first process to do so was:", "  Process name: [[5141,1],2]", "  Exit code:    3"]
KNOWN = {
    "summary": {"state": "Failed", "message": "NoSshd: pi-worker-0 has no sshd"},
    "lastFailure": {"reason": "Error", "cause": "NoSshd: pi-worker-0 has no sshd"},
}


WORKER_DEADLINE = "WorkerDeadlineExceeded: worker pi-worker-0 ran longer than the activeDeadlineSeconds of its Pod template. Raise it"
TIME_LIMIT = "kubectl mpi run --time-limit"


@pytest.mark.parametrize(
    ("summary", "cause", "reason", "message", "is_advised"),
    [
        ("Job was active too long", "", "DeadlineExceeded", "Job was active too long", True),
        ("Unschedulable: Insufficient cpu", "", "DeadlineExceeded", "Job was active too long. Cause: Unschedulable", False),
        ("Job was active too long", WORKER_DEADLINE, "DeadlineExceeded", "Job was active too long", True),
        (WORKER_DEADLINE, WORKER_DEADLINE, "BackoffLimitExceeded/Error", f"pod x. Cause: {WORKER_DEADLINE}", False),
    ],
)
def test_a_deadline_is_raised_only_if_it_is_the_cause(summary: str, cause: str, reason: str, message: str, *, is_advised: bool) -> None:
    job = stored(**condition("Failed", reason, message), summary={"message": summary}, lastFailure={"reason": "Error", "cause": cause})
    text = why(job, [], [])
    assert text.startswith(f"Job pi failed: {summary}")
    assert (TIME_LIMIT in text) == is_advised
    assert "Its log" not in text, "nothing ran"


def test_a_job_that_used_no_worker_does_not_just_succeed() -> None:
    unused = condition("WorkersUnused", "NoWorkerReached", "all ranks ran in the launcher")["conditions"][-1]
    job = stored(**condition("Succeeded", "MPIJobSucceeded", "done"))
    job["status"]["conditions"].append(unused)
    assert why(job, [], []) == "Job pi succeeded, but used no worker.\nall ranks ran in the launcher"


@pytest.mark.parametrize(
    ("job", "log", "first"),
    [
        (stored(**ENDED), RANK, "the program exited with code 3 on rank 2. Read what it printed."),
        (stored(**ENDED), ["Bye"], "the launcher failed with exit code 3; its log may show the cause"),
        (stored(**ENDED | KNOWN), RANK, "NoSshd: pi-worker-0 has no sshd"),
        (stored(**condition("Failed", "DeadlineExceeded", "too long")), RANK, "DeadlineExceeded: too long"),
    ],
    ids=["the user may read the log, and the operator may not", "no rule", "what the operator saw counts more", "not the launcher's end"],
)
def test_why_begins_with_the_verdict(job: dict[str, Any], log: list[str], first: str) -> None:
    assert why(job, [], [], log).splitlines()[0] == f"Job pi failed: {first}"


def test_why_a_failed_job_ends_with_the_end_of_its_log() -> None:
    assert why(FAILED, [], [], ["no input file"]).endswith("The end of its log:\nno input file")


def test_a_status_is_read_whole() -> None:
    status = status_of(FAILED)
    assert (status.exit_code, status.is_finished, status.has_succeeded) == (137, True, False)
    failure = status.failure("pi")
    assert (failure.code, failure.reason, failure.job) == (137, "BackoffLimitExceeded/OOMKilled", "pi")
    assert failure.log == "no input file"


@pytest.mark.parametrize(
    ("types", "state"),
    [
        ([], "Pending"),
        (["Created"], "Starting"),
        (["Created", "Running"], "Running"),
        (["Created", "Suspended"], "Suspended"),
        (["Failed"], "Failed"),
    ],
)
def test_without_a_summary_the_conditions_say_the_state(types: list[str], state: str) -> None:
    job = {"status": {"conditions": [{"type": type_, "status": "True"} for type_ in types]}}
    status: JobStatus = status_of(job)
    assert (status.state, status.exit_code) == (state, None)


@pytest.mark.parametrize(
    ("summary", "spec", "slots"), [({"slots": "0"}, {}, 0), ({"slots": "4"}, {}, 4), ({}, {"slotsPerWorker": 2}, 2), ({}, {}, 1)]
)
def test_slots_are_those_of_the_summary_even_if_there_are_none(summary: dict[str, str], spec: dict[str, int], slots: int) -> None:
    job: Object = {"metadata": {"name": "pi"}, "spec": spec, "status": {"summary": summary}}
    assert status_of(job).slots == slots
