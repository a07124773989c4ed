"""What an attempt of the launcher has lost can be seen by an operator that has watched nothing."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from example_children import TERMINATING, launcher, launcher_pod, observed, worker
from example_jobs import PI, container, template, with_worker, with_workers
from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.clock import parse_time
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import Beginning, launcher_attempt, noted_beginning
from mpiop.controller.status import conditions as cond
from mpiop.kube.objects import Object

BEGAN = "2026-01-01T00:00:00Z"
LATER = {"creationTimestamp": "2026-01-01T00:00:09Z"}
NOT_READY = {"type": "Ready", "status": "False"}
UNREACHABLE = [NOT_READY, {"type": "ContainersReady", "status": "True"}]
NOW = parse_time("2026-01-01T00:01:00Z")
STARTED = tuple(cond.make(type_, "True", f"MPIJob{type_}", "", NOW) for type_ in (c.CONDITION_CREATED, c.CONDITION_RUNNING))
RUNNING = replace(PI, status=replace(PI.status, conditions=STARTED))


def disrupted(reason: str) -> list[dict[str, str]]:
    return [NOT_READY, {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": f"by {reason}"}]


def published(noted: str = f"0 2 {BEGAN}", **status: Any) -> Object:
    """Return the launcher's pod, in which an attempt began with those workers."""
    pod = launcher_pod("Running", **status)
    pod["metadata"]["annotations"] = {"mpiop.kubeflow.org/began-with": noted} if noted else {}
    return pod


def on_node(pod: Object) -> Object:
    pod["spec"] = {"nodeName": "node-7"}
    return pod


def seen(*workers: Object, pod: Object | None = None) -> Observed:
    """Return an observation of a launcher that runs, of workers, and of its pod; by default one in which an attempt has begun."""
    return observed(*workers, launcher=launcher(), launcher_pods=(pod or published(),))


class Case(NamedTuple):
    """What is left of the second worker, and what is reported of it."""

    id: str
    workers: tuple[Object, ...]
    reason: str
    words: str = ""


CASES = [
    Case("it runs", (worker(1),), ""),
    Case("its probe fails", (worker(1, conditions=[NOT_READY | {"reason": "ContainersNotReady"}]),), ""),
    Case("its readiness gate is closed", (worker(1, conditions=[NOT_READY | {"reason": "ReadinessGatesNotReady"}, UNREACHABLE[1]]),), ""),
    Case("its sshd was told to end", (worker(1, "Succeeded"),), "WorkerEnded", "worker pi-worker-1 ended"),
    Case("it is gone", (), "WorkerDeleted", "worker pi-worker-1 was deleted"),
    Case("it was replaced", (worker(1, metadata=LATER),), "WorkerDeleted"),
    Case(
        "it is being deleted", (on_node(worker(1, metadata=TERMINATING)),), "WorkerDeleted", "worker pi-worker-1 on node node-7 was deleted"
    ),
    Case("it failed", (on_node(worker(1, "Failed")),), "WorkerEnded", "worker pi-worker-1 on node node-7 ended"),
    Case("it was evicted", (on_node(worker(1, "Failed", reason="Evicted", message="disk")),), "Disrupted", "taken from node node-7: disk"),
    Case("its node does not answer", (on_node(worker(1, conditions=UNREACHABLE)),), "NodeLost", "its node node-7 does not answer"),
    Case(
        "its node does not answer, and it is to be deleted",
        (on_node(worker(1, metadata=TERMINATING, conditions=disrupted("DeletionByTaintManager"))),),
        "NodeLost",
        "cannot be deleted, because its node node-7 does not answer",
    ),
    Case(
        "it is preempted",
        (on_node(worker(1, metadata=TERMINATING, conditions=disrupted("PreemptionByScheduler"))),),
        "Disrupted",
        "taken from node node-7: by PreemptionByScheduler",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_lost_worker_is_seen_and_named(case: Case) -> None:
    found = [loss.problem for loss in launcher_attempt(RUNNING, seen(worker(0), *case.workers)).lost]
    assert [problem.reason for problem in found] == [case.reason] * bool(case.reason)
    assert all(case.words in problem.message for problem in found)


def test_a_worker_that_ran_a_command_of_its_own_to_its_end_is_not_lost() -> None:
    job = with_worker(RUNNING, template(container(command=["prepare"])))
    assert launcher_attempt(job, seen(worker(0), worker(1, "Succeeded"))).lost == ()


def test_the_last_state_of_a_worker_that_is_gone_says_why_and_where() -> None:
    gone = on_node(worker(1, conditions=disrupted("DeletionByPodGC")))
    [loss] = launcher_attempt(RUNNING, replace(seen(worker(0)), deleted_workers={"pi-worker-1": gone})).lost
    assert loss.problem.reason == "Disrupted"
    assert "taken from node node-7" in loss.problem.message


@pytest.mark.parametrize("noted", ["", "nonsense", "0 two 3", "0 2", "-1 2 x"])
def test_before_the_addresses_are_published_no_worker_is_lost(noted: str) -> None:
    assert noted_beginning(published(noted)) is None
    assert launcher_attempt(RUNNING, seen(worker(0), pod=published(noted))).lost == ()


BOTH = (worker(0), worker(1, metadata=LATER))
RESTARTED = {"containerStatuses": [{"name": "launcher", "restartCount": 3}]}


@pytest.mark.parametrize(
    ("job", "workers", "pod", "noted"),
    [
        (PI, BOTH, published(""), Beginning(0, 2, LATER["creationTimestamp"])),
        (PI, (worker(0),), published(""), None),
        (PI, (worker(0), worker(1, conditions=[NOT_READY])), published(""), None),
        (PI, BOTH, published(), None),
        (PI, BOTH, published(**RESTARTED), Beginning(3, 2, LATER["creationTimestamp"])),
        (PI, (worker(0),), published(**RESTARTED), None),
        (with_workers(PI, 3), (*BOTH, worker(2)), published(), None),
        (with_workers(PI, 1), (worker(0),), published(), Beginning(0, 1, BEGAN)),
    ],
    ids=["all", "one missing", "one unready", "noted", "container restarted", "… and one missing", "scaled up", "scaled down"],
)
def test_with_which_workers_an_attempt_begins(job: MPIJob, workers: tuple[Object, ...], pod: Object, noted: Beginning | None) -> None:
    assert launcher_attempt(job, observed(*workers, job=job, launcher=launcher(), launcher_pods=(pod,))).beginning_to_note == noted


TERMINATED = {"state": {"terminated": {"exitCode": 1}}}
ATTEMPTS = [
    ("the first", RUNNING, launcher(), published(), "pi-launcher-x/0"),
    ("the fourth", RUNNING, launcher(), published(f"3 2 {BEGAN}", **RESTARTED), "pi-launcher-x/3"),
    ("one that did not begin", RUNNING, launcher(), published(**RESTARTED), None),
    ("none has begun", RUNNING, launcher(), published(""), None),
    ("it has ended", RUNNING, launcher(), published(containerStatuses=[{"name": "launcher"} | TERMINATED]), None),
    ("a sidecar has", RUNNING, launcher(), published(containerStatuses=[{"name": "sidecar"} | TERMINATED]), "pi-launcher-x/0"),
    ("its Job is suspended", RUNNING, launcher(suspend=True), published(), None),
    ("its Job is done", RUNNING, launcher(outcome={"type": "Complete"}), published(), None),
    ("its Job fails", RUNNING, launcher(outcome={"type": "FailureTarget"}), published(), None),
    ("its Job is gone", RUNNING, None, published(), None),
    ("the MPIJob does not run", PI, launcher(), published(), None),
    ("the MPIJob is suspended", replace(RUNNING, run_policy=replace(PI.run_policy, suspend=True)), launcher(), published(), None),
    ("it restarts", replace(RUNNING, status=replace(RUNNING.status, restarts=1)), launcher(), published(), None),
]


@pytest.mark.parametrize(("job", "launcher_job", "pod", "name"), [row[1:] for row in ATTEMPTS], ids=[row[0] for row in ATTEMPTS])
def test_which_attempt_runs(job: MPIJob, launcher_job: Object | None, pod: Object, name: str | None) -> None:
    attempt = launcher_attempt(job, observed(*BOTH, launcher=launcher_job, launcher_pods=(pod,)))
    assert (attempt.name if attempt.is_running else None) == name
