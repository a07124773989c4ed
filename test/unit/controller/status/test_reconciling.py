"""What kstatus reads of a job (Flux, Helm, kpt): whether it waits, is stalled, or is as desired."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI
from fakes.world import new
from mpiop.api.status import parse_status, status_to_wire
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.causes import CAUSES, Problem
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.reconciling import current_problem, seconds_to_stalled, with_generation
from mpiop.controller.status.status import invalid_status, next_status, transitions
from mpiop.kube.resources import MPIJOBS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUNNING = observed(worker(0), worker(1), launcher=launcher(), launcher_pods=(launcher_pod(),))
COMPLETE = observed(launcher=launcher(outcome={"type": "Complete"}, succeeded=1, completionTime="2026-01-01T12:00:30Z"))
FAILED = observed(launcher=launcher(outcome={"type": "Failed", "reason": "DeadlineExceeded", "message": "too late"}, failed=1))
NO_NODE = Problem("Unschedulable", "no node")
NO_IMAGE = Problem("ImagePull", "no image")
IN_PROGRESS, STALLED, CURRENT = "InProgress", "Failed", "Current"


def kstatus(status: MPIJobStatus, generation: int = 0) -> str:
    """Return the health as cli-utils' generic rules compute it; test/e2e/test_gitops.py runs the real ones."""
    if status.observed_generation and status.observed_generation != generation:
        return IN_PROGRESS
    for row in status.conditions:
        if row.status == "True" and row.type in {"Reconciling", "Stalled"}:
            return IN_PROGRESS if row.type == "Reconciling" else STALLED
    return CURRENT


def at(job: MPIJob, seconds: float, observation: Observed, problem: Problem | None = None) -> MPIJob:
    return replace(job, status=next_status(launcher_attempt(job, observation), problem, NOON + timedelta(seconds=seconds)))


def events(old: MPIJob, new: MPIJob) -> list[str]:
    return [each.reason for each in transitions(old.key, old.status, new.status)]


def test_a_job_is_in_progress_until_it_runs_and_current_then() -> None:
    created = at(PI, 0, observed())
    running = at(created, 9, RUNNING)
    done = at(running, 30, COMPLETE)
    assert [kstatus(job.status) for job in (created, running, done)] == [IN_PROGRESS, CURRENT, CURRENT]
    assert [row.type for row in created.status.conditions] == ["Reconciling", "Created"], "the last one is the reference's"
    assert [row.type for row in running.status.conditions] == ["Created", "Running"]
    assert events(PI, created) == ["MPIJobCreated"]
    assert created.status.summary.state == "Starting"


def test_a_job_that_waits_for_a_node_is_stalled_only_after_the_autoscaler_gave_up() -> None:
    created = at(PI, 0, observed())
    waits = at(created, 60, observed(), NO_NODE)
    assert (kstatus(waits.status), waits.status.summary.state, waits.status.summary.message) == (IN_PROGRESS, "Unschedulable", "no node")
    assert events(created, waits) == ["Unschedulable"]
    assert seconds_to_stalled(waits.status, NOON + timedelta(seconds=70)) == 890
    later = at(waits, 959, observed(), NO_NODE)
    assert later == waits, "no write in between"
    stalled = at(later, 960, observed(), NO_NODE)
    assert (kstatus(stalled.status), stalled.status.summary) == (STALLED, waits.status.summary)
    assert events(later, stalled) == [], "its event was recorded once"
    assert seconds_to_stalled(stalled.status, NOON + timedelta(seconds=961)) is None
    assert kstatus(at(stalled, 970, observed()).status) == IN_PROGRESS
    assert kstatus(at(stalled, 970, RUNNING).status) == CURRENT


def test_another_cause_begins_another_grace_period() -> None:
    waits = at(at(PI, 0, observed(), NO_NODE), 899, observed(), NO_IMAGE)
    assert kstatus(at(waits, 899 + 299, observed(), NO_IMAGE).status) == IN_PROGRESS
    assert kstatus(at(waits, 899 + 300, observed(), NO_IMAGE).status) == STALLED
    repaired = at(at(PI, 0, observed(), Problem("Forbidden", "no")), 60, observed(), NO_NODE)
    assert kstatus(repaired.status) == IN_PROGRESS


def test_a_reworded_message_does_not_prolong_the_grace_period() -> None:
    reworded = at(at(PI, 0, observed(), NO_NODE), 600, observed(), Problem("Unschedulable", "0/9 nodes"))
    assert reworded.status.summary.message == "0/9 nodes"
    assert kstatus(at(reworded, 900, observed(), NO_NODE).status) == STALLED


@pytest.mark.parametrize("reason", CAUSES)
def test_each_cause_has_a_grace_period(reason: str) -> None:
    grace, found = CAUSES[reason].grace_seconds, Problem(reason, "")
    job = at(PI, 0, observed(), found)
    assert (kstatus(job.status) == STALLED) == (grace == 0)
    assert kstatus(at(job, grace, observed(), found).status) == STALLED
    assert current_problem(job.status) == found
    assert events(PI, job)[0] == "MPIJobCreated"


def test_the_guide_has_the_grace_period_of_each_cause() -> None:
    rows = re.findall(r"^\| (none|\d+ min) \| (.+) \|$", Path("docs/gitops.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {reason: row for row, words in rows for reason in re.findall(r"`(\w+)`", words)}
    [others] = [row for row, words in rows if words == "all others"]
    shown = {reason: f"{cause.grace_seconds / 60:.0f} min" if cause.grace_seconds else "none" for reason, cause in CAUSES.items()}
    assert {reason: named.get(reason, others) for reason in CAUSES} == shown
    assert named.keys() <= CAUSES.keys()


def test_the_reason_of_an_unknown_event_gets_a_grace_period() -> None:
    assert kstatus(at(PI, 0, observed(), Problem("SomethingNew", "")).status) == IN_PROGRESS


def test_a_failed_job_is_failed_with_the_same_words_and_one_event() -> None:
    for before, message in ((at(PI, 0, observed(), NO_NODE), "too late. Cause: Unschedulable: no node"), (at(PI, 0, RUNNING), "too late")):
        failed = at(before, 30, FAILED)
        rows = {row.type: (row.status, row.reason, row.message) for row in failed.status.conditions}
        assert kstatus(failed.status) == STALLED
        assert rows["Stalled"] == rows["Failed"] == ("True", "DeadlineExceeded", message)
        assert "Reconciling" not in rows
        assert failed.status.conditions[-1].type == "Failed", "many programs read the last one"
        assert events(before, failed) == ["DeadlineExceeded"]
        assert failed.status.summary.state == "Failed"
        assert at(failed, 60, FAILED) == failed


def test_an_invalid_job_is_stalled_at_once() -> None:
    waits = at(PI, 0, observed(), NO_NODE)
    status = invalid_status(waits.status, "spec.x is wrong", NOON)
    assert (kstatus(status), current_problem(status)) == (STALLED, Problem("ValidationError", "spec.x is wrong"))


def generation(stored: MPIJobStatus, new: MPIJobStatus) -> int:
    written = with_generation(stored, new, 2)
    assert parse_status(status_to_wire(written)) == written
    return written.observed_generation


def test_the_observed_generation_is_stored_with_other_changes_while_the_job_waits_and_goes_when_it_does_not() -> None:
    waits, runs, ends = (at(PI, 0, each).status for each in (observed(), RUNNING, COMPLETE))
    assert generation(PI.status, waits) == 2, "a write that happens anyway"
    old = replace(waits, observed_generation=1)
    assert generation(old, old) == 1, "an edit alone costs no write; kstatus has a waiting job InProgress anyway"
    assert generation(old, at(replace(PI, status=old), 5, observed(), NO_NODE).status) == 2
    unseen = replace(runs, observed_generation=-1)
    assert generation(unseen, unseen) == 0, "an older operator leaves it, and kstatus would wait for ever"
    assert generation(old, runs) == generation(old, ends) == 0, "a later edit does not make it InProgress for ever"


async def test_an_edit_that_repairs_a_job_is_observed_with_the_write_that_ends_its_stall() -> None:
    world = await new(slotsPerWorker=-1)
    await world.sync()
    assert (kstatus(world.status, 1), world.status.observed_generation) == (STALLED, 1)
    await world.edit({"metadata": {"generation": 2}, "spec": {"slotsPerWorker": 1}})
    assert kstatus(world.status, 2) == IN_PROGRESS, "the old failure does not count for the new spec"
    await world.sync_until_idle()
    assert (kstatus(world.status, 2), world.status.observed_generation) == (IN_PROGRESS, 2)
    await world.run_job()
    assert (kstatus(world.status, 2), world.status.observed_generation) == (CURRENT, 0)


async def test_a_job_that_does_not_wait_loses_the_generation_that_the_definition_gave_it() -> None:
    world = await new(runPolicy={"suspend": True})
    assert kstatus(world.status, 1) == IN_PROGRESS
    await world.sync_until_idle()
    assert world.status.observed_generation == 0
    assert "observedGeneration" not in world.one(MPIJOBS, "pi")["status"]
