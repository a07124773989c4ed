"""The reason why an allocation ended reaches its condition, its event and its summary; it outlives a lost worker."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, with_annotations
from fakes.semantics import projected
from mpiop.api.annotations import ALLOCATION
from mpiop.api.types import MPIJob
from mpiop.controller.objects.ssh_script import MARK
from mpiop.controller.observe import projections
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.status import next_status, transitions
from mpiop.kube.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REASON = "idle: no step ran"
DEV = with_annotations(PI, {ALLOCATION.name: "true"})


def ended(**terminated: Any) -> Object:
    """Return the launcher's pod whose container ended with success, as the store keeps it."""
    state = {"terminated": {"exitCode": 0, **terminated}}
    pod = launcher_pod("Succeeded", containerStatuses=[{"name": "launcher", "state": state}])
    return cast("Object", projected(pod, projections.Pod))


ENDS = [
    ("an allocation", DEV, f"{MARK}\n{REASON}\n", REASON, f"MPIJob {PI.key} successfully completed: {REASON}."),
    ("one that ran no step", DEV, f"{REASON}\n", REASON, f"MPIJob {PI.key} successfully completed: {REASON}."),
    ("one without a reason", DEV, f"{MARK}\n", "", f"MPIJob {PI.key} successfully completed."),
    ("another job", PI, f"{MARK}\n{REASON}\n", "", f"MPIJob {PI.key} successfully completed."),
]


@pytest.mark.parametrize(("job", "text", "summary", "message"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_the_reason_of_the_end_is_reported(job: MPIJob, text: str, summary: str, message: str) -> None:
    seen = observed(worker(0), worker(1), launcher=launcher(outcome={"type": "Complete"}), launcher_pods=[ended(message=text)])
    status = next_status(launcher_attempt(job, seen), None, NOW)
    assert status.summary.message == summary
    [event] = [change for change in transitions(job.key, job.status, status) if change.condition == "Succeeded"]
    assert (event.reason, event.message) == ("MPIJobSucceeded", message)


def test_a_reason_that_is_seen_after_the_end_is_added_to_the_summary() -> None:
    over = launcher(outcome={"type": "Complete"})
    before = next_status(launcher_attempt(DEV, observed(worker(0), worker(1), launcher=over, launcher_pods=[])), None, NOW)
    assert before.summary.message == ""
    seen = observed(worker(0), worker(1), launcher=over, launcher_pods=[ended(message=REASON)])
    assert next_status(launcher_attempt(replace(DEV, status=before), seen), None, NOW).summary.message == REASON


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, True), ({ALLOCATION.name: "true"}, False)],
    ids=["a job", "an allocation"],
)
def test_an_allocation_of_mpich_continues_without_a_worker(annotations: dict[str, str], expected: bool) -> None:  # noqa: FBT001 - a row
    assert replace(with_annotations(PI, annotations), mpi_implementation="MPICH").is_rigid == expected
