"""The status of a job, situation by situation, and its transitions."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, with_workers
from mpiop.api import constants as c
from mpiop.api.durations import format_duration
from mpiop.api.status_types import MPIJobStatus, ReplicaStatus, Summary
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.causes import Problem
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.status import current_problem, invalid_status, next_status, transitions

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=35)
RUNNING = observed(worker(0), worker(1), launcher=launcher(), launcher_pods=(launcher_pod(),))
COMPLETE = observed(launcher=launcher(outcome={"type": "Complete"}, succeeded=1, completionTime="2026-01-01T12:00:30Z"))
FAILED = observed(launcher=launcher(outcome={"type": "Failed", "reason": "DeadlineExceeded", "message": "too late"}, failed=1))
QUOTA = Problem("QuotaExceeded", "worker pod created failed: exceeded quota")
FORBIDDEN = Problem("Forbidden", "worker pod created failed: denied")
OOM = Problem("OOMKilled", "too much")


def next_of(job: MPIJob, observation: Observed, problem: Problem | None = None, *, at: datetime = LATER) -> MPIJobStatus:
    return next_status(launcher_attempt(job, observation), problem, at)


def after(job: MPIJob, *observations: Observed, at: datetime = NOON, problem: Problem | None = None) -> MPIJob:
    """Return the job with the status that it has after each observation, a second apart."""
    for number, observation in enumerate(observations):
        job = replace(job, status=next_of(job, observation, problem, at=at + timedelta(seconds=number)))
    return job


def conditions(status: MPIJobStatus) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


SUSPENDED = replace(PI, run_policy=RunPolicy(suspend=True))
BEGUN = after(PI, RUNNING)
"""It runs."""
CREATED = {"Created": ("True", "MPIJobCreated")}
WAITING = CREATED | {"Reconciling": ("True", "Starting")}
RUNS = CREATED | {"Running": ("True", "MPIJobRunning")}
SUSPENDS = CREATED | {"Suspended": ("True", "MPIJobSuspended"), "Running": ("False", "MPIJobSuspended")}
SUCCEEDED = CREATED | {"Finished": ("True", "Succeeded"), "Running": ("False", "MPIJobRunning"), "Succeeded": ("True", "MPIJobSucceeded")}


def failed(reason: str) -> dict[str, tuple[str, str]]:
    """Return the conditions of the end of a job that failed for `reason`."""
    last = {"Stalled": ("True", reason), "Failed": ("True", reason)}
    return CREATED | {"Finished": ("True", "Failed"), "Running": ("False", "MPIJobRunning"), **last}


class Case(NamedTuple):
    id: str
    job: MPIJob
    observation: Observed
    want: Mapping[str, tuple[str, str]]
    problem: Problem | None = None


CASES = [
    Case("new", PI, observed(), WAITING),
    Case("all pods run", PI, RUNNING, RUNS),
    Case(
        "a worker does not run yet",
        PI,
        observed(worker(0), worker(1, "Pending"), launcher=launcher(), launcher_pods=(launcher_pod(),)),
        WAITING,
    ),
    Case(
        "the launcher waits in its gate",
        PI,
        observed(worker(0), worker(1), launcher=launcher(), launcher_pods=(launcher_pod("Pending"),)),
        WAITING,
    ),
    Case(
        "a launcher on its own",
        with_workers(PI, 0),
        observed(launcher=launcher(job=with_workers(PI, 0)), launcher_pods=(launcher_pod(),)),
        RUNS,
    ),
    Case("once running, a lost worker changes nothing", BEGUN, observed(worker(0), launcher=launcher()), RUNS),
    Case("created suspended", SUSPENDED, observed(launcher=launcher(suspend=True)), SUSPENDS),
    Case("suspended while running", replace(BEGUN, run_policy=RunPolicy(suspend=True)), RUNNING, SUSPENDS),
    Case(
        "resumed",
        replace(after(SUSPENDED, observed()), run_policy=RunPolicy()),
        observed(),
        WAITING | {"Suspended": ("False", "MPIJobResumed"), "Running": ("False", "MPIJobSuspended")},
    ),
    Case("succeeded", BEGUN, COMPLETE, SUCCEEDED),
    Case("succeeded before it was seen running", PI, COMPLETE, SUCCEEDED),
    Case("failed for the launcher Job's own reason", BEGUN, FAILED, failed("DeadlineExceeded")),
    Case("failed without a reason", PI, observed(launcher=launcher(outcome={"type": "Failed"})), failed("MPIJobFailed")),
    Case(
        "a worker was evicted",
        BEGUN,
        observed(worker(0), worker(1, "Failed", reason="Evicted"), launcher=launcher()),
        failed("MPIJobEvicted"),
    ),
    Case("the launcher Job is gone unseen", BEGUN, observed(worker(0), worker(1)), failed("LauncherJobNotFound")),
    Case("a problem", PI, observed(), CREATED | {"Reconciling": ("True", "QuotaExceeded")}, QUOTA),
    Case("a worker ended while the job runs", BEGUN, RUNNING, RUNS | {"Degraded": ("True", "OOMKilled")}, OOM),
    Case("no longer degraded", after(PI, RUNNING, problem=OOM), RUNNING, RUNS | {"Degraded": ("False", "Resolved")}),
    Case("a problem while it runs", BEGUN, RUNNING, RUNS | {"Reconciling": ("True", "QuotaExceeded")}, QUOTA),
    Case("no longer stalled", after(PI, observed(), problem=FORBIDDEN), observed(), WAITING | {"Stalled": ("False", "Resolved")}),
    Case("stalled until its end", after(PI, observed(), problem=QUOTA), FAILED, failed("DeadlineExceeded")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_conditions(case: Case) -> None:
    status = next_of(case.job, case.observation, case.problem)
    assert conditions(status) == case.want
    again = next_of(replace(case.job, status=status), case.observation, case.problem, at=LATER + timedelta(minutes=1))
    assert again == status, "a second sync changes nothing"


def test_the_last_condition_is_the_state_of_the_job() -> None:
    assert [row.type for row in after(PI, RUNNING, COMPLETE).status.conditions] == ["Created", "Running", "Finished", "Succeeded"]


def test_another_message_of_the_same_problem_replaces_the_old_one_after_a_while() -> None:
    job = after(PI, observed(), problem=Problem("FailedMount", "secret a not found"))
    other = Problem("FailedMount", "secret b not found")
    soon, later = (next_of(job, observed(), other, at=NOON + timedelta(seconds=seconds)) for seconds in (29, 30))
    assert [current_problem(status) for status in (soon, later)] == [current_problem(job.status), other]
    assert transitions(job.key, job.status, later) == []


def test_times_of_a_job_that_succeeds() -> None:
    job = after(PI, Observed(), RUNNING)
    status = next_of(job, COMPLETE)
    assert status.start_time == NOON
    assert status.completion_time == NOON + timedelta(seconds=30), "the launcher Job's own"
    running = status.condition(c.CONDITION_RUNNING)
    assert running is not None
    assert running.last_transition_time == NOON + timedelta(seconds=1), "dashboards compute durations from it"
    assert status.summary == Summary("Succeeded", "2/2", "30s", "0", slots="1")


def test_a_failed_job_ends_now() -> None:
    assert next_of(after(PI, RUNNING), FAILED).completion_time == LATER


def test_a_job_that_ended_without_a_start_has_no_duration() -> None:
    summary = next_of(SUSPENDED, FAILED).summary
    assert (summary.state, summary.workers, summary.duration) == ("Failed", "0/2", "")


def test_never_seen_running_is_said_with_the_time_of_completion() -> None:
    running = next_of(PI, COMPLETE).condition(c.CONDITION_RUNNING)
    assert running is not None
    assert running.message == "MPIJob default/pi is finished but Running condition was never set."
    assert running.last_transition_time == NOON + timedelta(seconds=30)


@pytest.mark.parametrize(("labels", "state"), [({}, "Suspended"), ({"kueue.x-k8s.io/queue-name": "team-a"}, "Queued")])
def test_a_suspended_job_of_a_queue_is_queued(labels: dict[str, str], state: str) -> None:
    job = replace(SUSPENDED, raw={**SUSPENDED.raw, "metadata": {**SUSPENDED.raw["metadata"], "labels": labels}})
    assert after(job, observed()).status.summary.state == state


def test_messages_are_those_of_the_contract() -> None:
    messages = {condition.type: condition.message for condition in after(PI, RUNNING, COMPLETE).status.conditions}
    assert messages == {
        "Created": "MPIJob default/pi is created.",
        "Running": "MPIJob default/pi is running.",
        "Finished": "MPIJob default/pi successfully completed.",
        "Succeeded": "MPIJob default/pi successfully completed.",
    }


def test_resuming_sets_the_start_anew_and_suspending_keeps_it() -> None:
    suspended = replace(after(PI, Observed(), RUNNING), run_policy=RunPolicy(suspend=True))
    assert next_of(suspended, observed()).start_time == NOON
    resumed = replace(after(suspended, observed()), run_policy=RunPolicy())
    assert next_of(resumed, observed()).start_time == LATER


REPLICAS = [
    ("before the launcher Job exists", observed(worker(0)), {"Worker": ReplicaStatus(active=1)}),
    (
        "by phase",
        observed(worker(0), worker(1, "Failed"), launcher=launcher(), launcher_pods=(launcher_pod(),)),
        {"Launcher": ReplicaStatus(active=1), "Worker": ReplicaStatus(active=1, failed=1)},
    ),
    (
        "terminating pods count until they are gone",
        observed(worker(0, metadata={"deletionTimestamp": "x"}), launcher=launcher()),
        {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(active=1)},
    ),
    (
        "nothing is active once the launcher Job is done, whatever its Pods do",
        observed(worker(0), launcher=launcher(outcome={"type": "Failed"}, failed=1), launcher_pods=(launcher_pod(),)),
        {"Launcher": ReplicaStatus(failed=1), "Worker": ReplicaStatus()},
    ),
]


@pytest.mark.parametrize(("observation", "want"), [row[1:] for row in REPLICAS], ids=[row[0] for row in REPLICAS])
def test_replica_statuses(observation: Observed, want: dict[str, ReplicaStatus]) -> None:
    assert next_of(PI, observation, at=NOON).replica_statuses == want


def test_a_finished_job_keeps_its_counts_when_the_launcher_job_is_gone() -> None:
    job = after(PI, RUNNING, COMPLETE)
    assert next_of(job, observed()) == job.status


def test_the_counts_of_a_finished_job_without_launcher_job_reach_0_and_not_before_its_workers_are_gone() -> None:
    evicted = worker(1, "Failed", reason="Evicted")
    job = after(PI, RUNNING, observed(worker(0), evicted, launcher=launcher(), launcher_pods=(launcher_pod(),)))
    job = after(job, observed(worker(0, metadata={"deletionTimestamp": "x"})))
    assert job.status.replica_statuses == {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(active=1, failed=1)}
    job = after(job, observed())
    assert job.status.replica_statuses == {"Launcher": ReplicaStatus(), "Worker": ReplicaStatus(failed=1)}


def test_a_success_after_a_failure_turns_failed_to_false() -> None:
    failed = after(PI, RUNNING, FAILED)
    unknown = tuple(replace(row, status="Unknown") if row.type == "Failed" else row for row in failed.status.conditions)
    reopened = replace(failed, status=replace(failed.status, conditions=unknown))
    assert conditions(next_of(reopened, COMPLETE))["Failed"] == ("False", "DeadlineExceeded")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (35, "35s"),
        (60, "1m"),
        (303, "5m3s"),
        (3600, "1h"),
        (7500, "2h5m"),
        (86400, "1d"),
        (3 * 86400 + 4 * 3600 + 59, "3d4h"),
        (-5, "0s"),
    ],
)
def test_durations_read_as_in_kubectl(seconds: int, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


def test_an_invalid_job_is_stalled_and_what_it_was_stays() -> None:
    job = after(PI, RUNNING)
    status = invalid_status(job.status, "Found validation errors: x", LATER)
    assert conditions(status) == conditions(job.status) | {"Stalled": ("True", "ValidationError")}
    assert invalid_status(status, "Found validation errors: x", LATER + timedelta(minutes=1)) == status


def test_an_edit_that_was_not_enough_says_what_is_wrong_now() -> None:
    first = invalid_status(MPIJobStatus(), "Found validation errors: x; y", NOON)
    second = invalid_status(first, "Found validation errors: y", LATER)
    assert [condition.message for condition in second.conditions] == ["Found validation errors: y"]
    assert second.conditions[0].last_update_time == NOON
    assert transitions(PI.key, first, second) == []


def test_an_edit_cannot_take_back_an_end() -> None:
    job = after(PI, RUNNING, COMPLETE)
    assert invalid_status(job.status, "Found validation errors: x", LATER) == job.status


IS_CREATED = ("Normal", "MPIJobCreated", "MPIJob default/pi is created.")
TRANSITIONS = [
    ("new", PI, PI, observed(), [IS_CREATED]),
    ("running", after(PI, observed()), PI, RUNNING, [("Normal", "MPIJobRunning", "MPIJob default/pi is running")]),
    ("nothing new", BEGUN, PI, RUNNING, []),
    ("suspended", BEGUN, SUSPENDED, RUNNING, [("Normal", "MPIJobSuspended", "MPIJob suspended")]),
    ("resumed", after(SUSPENDED, observed()), PI, observed(), [("Normal", "MPIJobResumed", "MPIJob resumed")]),
    ("succeeded", BEGUN, PI, COMPLETE, [("Normal", "MPIJobSucceeded", "MPIJob default/pi successfully completed.")]),
    (
        "it never started",
        PI,
        PI,
        observed(launcher=launcher(outcome={"type": "Failed"})),
        [IS_CREATED, ("Warning", "MPIJobFailed", "MPIJob default/pi has failed")],
    ),
    ("failed", BEGUN, PI, FAILED, [("Warning", "DeadlineExceeded", "too late")]),
]


@pytest.mark.parametrize(("before", "spec", "observation", "want"), [row[1:] for row in TRANSITIONS], ids=[row[0] for row in TRANSITIONS])
def test_transitions(before: MPIJob, spec: MPIJob, observation: Observed, want: list[tuple[str, str, str]]) -> None:
    job = replace(spec, status=before.status)
    changes = transitions(job.key, job.status, next_of(job, observation))
    assert [(reported.type, reported.reason, reported.message) for reported in changes] == want


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (QUOTA, "QuotaExceeded"),
        (Problem("ResourceExists", "is there"), "ErrResourceExists"),
        (Problem("ImagePull", "cannot pull"), "ImagePull"),
    ],
)
def test_a_stall_has_one_event_with_the_reason_that_users_know(problem: Problem, reason: str) -> None:
    job = after(PI, observed())
    status = next_of(job, observed(), problem)
    assert [(reported.type, reported.reason) for reported in transitions(job.key, job.status, status)] == [("Warning", reason)]
    resolved = next_of(replace(job, status=status), observed())
    assert transitions(job.key, status, resolved) == []
