"""Why an attempt of the launcher failed: which evidence counts, and which is of another time."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI
from mpiop.api import constants as c
from mpiop.api.log_findings import Finding
from mpiop.api.status_types import LostWorker, MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.clock import parse_time
from mpiop.controller.causes import Problem
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.restarts import loss_problem
from mpiop.controller.status.status import Findings, next_status
from mpiop.controller.status.verdict import NO_WORDS, LastWords, judged
from mpiop.kube.objects import Object

MARKED = {"message": "mpirun calls ssh\n"}
LOG = LastWords("end", Finding("ProgramFailed", "the program exited with code 3 on rank 1", "Read what it printed."))


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def failed_launcher(*, exit_code: int = 255, ended: int = 100, began: bool = True, restarts: int = 0, **more: Any) -> Object:
    """Return a launcher pod whose attempt ran from second 10 until `ended`."""
    end = {"exitCode": exit_code, "reason": "Error", "startedAt": at(10), "finishedAt": at(ended), **more}
    row = {"name": "launcher", "state": {"terminated": end}, "restartCount": restarts}
    pod = launcher_pod("Failed", containerStatuses=[row])
    note = f"{restarts} {PI.worker_replicas} {at(0)}" if began else ""
    pod["metadata"] = {**pod["metadata"], "annotations": {"mpiop.kubeflow.org/began-with": note}}
    return pod


def restarted_launcher() -> Object:
    """Return a launcher pod whose container failed and runs again: the pod still notes the beginning of the failed attempt."""
    pod = failed_launcher()
    (row,) = pod["status"]["containerStatuses"]
    again = {**row, "state": {"running": {}}, "lastState": row["state"], "restartCount": 1}
    return {**pod, "status": {**pod["status"], "phase": "Running", "containerStatuses": [again]}}


def ended_worker(index: int = 1, *, second: int, reason: str = "Error", exit_code: int = 1, **status: Any) -> Object:
    end = {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": at(0), "finishedAt": at(second)}}
    return worker(index, "Failed", containerStatuses=[{"name": "worker", "state": end}], **status)


def deleted_worker(index: int = 1, *, second: int) -> Object:
    return worker(index, metadata={"deletionTimestamp": at(second + 30), "deletionGracePeriodSeconds": 30})


def past_deadline(second: int) -> Object:
    pod = ended_worker(second=second)
    pod["status"] = {**pod["status"], "reason": "DeadlineExceeded"}
    return pod


def crashed(**more: Any) -> Object:
    return failed_launcher(exit_code=139, **more)


@dataclass
class Case:
    """An attempt that ended at second 100; `cause` begins the verdict, "" is none."""

    id: str
    cause: str
    workers: tuple[Object, ...] = ()
    gone: tuple[Object, ...] = ()
    launcher: Object = field(default_factory=failed_launcher)
    job: MPIJob = PI
    words: LastWords = NO_WORDS


LAYERS = "failed to create containerd task: OCI runtime create failed: runc create failed: unable to start container process: "
ALL = (worker(0), worker(1))
NO_SSHD = worker(0, "Failed", containerStatuses=[{"name": "worker", "state": {"terminated": {"exitCode": 127, "reason": "StartError"}}}])
ONE = replace(PI, worker=replace(PI.worker, replicas=1)) if PI.worker else PI
LONG_NAMED = replace(PI, name="x" * 48)
HYDRA = replace(PI, mpi_implementation="Intel")


def with_loss(job: MPIJob, second: int) -> MPIJob:
    lost = LostWorker("pi-worker-1", "", "NodeLost", "pod pi-worker-1 cannot be reached", parse_time(at(second)), "pi-launcher-x/0")
    return replace(job, status=MPIJobStatus(lost_worker=lost))


CASES = [
    Case("all is well but the program", "", ALL),
    Case("the log counts if nothing else is known", "the program exited with code 3 on rank 1. Read", ALL, words=LOG),
    Case("a deleted worker", "WorkerDeleted: worker pi-worker-1", (worker(0), deleted_worker(second=98)), words=LOG),
    Case(
        "a deleted worker, and the launcher runs again in its pod",
        "WorkerDeleted: worker pi-worker-1",
        (worker(0), deleted_worker(second=98)),
        launcher=restarted_launcher(),
    ),
    Case("a deleted worker that is gone", "WorkerDeleted: worker pi-worker-1", (worker(0),), (deleted_worker(second=98),)),
    Case("a worker deleted long before: the program went on", "", (worker(0),), (deleted_worker(second=20),)),
    Case("a worker deleted after the end", "", (worker(0), deleted_worker(second=110))),
    Case("a worker deleted before the attempt began", "", ALL, (deleted_worker(second=2),), launcher=failed_launcher(ended=20)),
    Case("a replacement was deleted", "", (worker(0),), (worker(1, metadata={"creationTimestamp": at(30), "deletionTimestamp": at(99)}),)),
    Case(
        "scaled down",
        "ScaledDown: worker pi-worker-1 was removed, because the job was",
        (worker(0),),
        (deleted_worker(second=98),),
        job=ONE,
    ),
    Case("scaled down long before", "", (worker(0),), (deleted_worker(second=20),), job=ONE),
    Case(
        "out of memory",
        "OOMKilled: container worker of pod pi-worker-1 was killed, because it used more memory than its limit",
        (worker(0), ended_worker(second=99, reason="OOMKilled", exit_code=137)),
    ),
    Case("a worker that ended by itself", "WorkerEnded: worker pi-worker-1", (worker(0), ended_worker(second=99))),
    Case("a worker that ended after the attempt", "", (worker(0), ended_worker(second=105))),
    Case(
        "a worker past its own deadline", "WorkerDeadlineExceeded: worker pi-worker-1 ran longer than the", (worker(0), past_deadline(99))
    ),
    Case("the first of two", "WorkerEnded: worker pi-worker-1", (ended_worker(0, second=100), ended_worker(1, second=98))),
    Case("no sshd", "NoSshd: container worker of pod pi-worker-0", (NO_SSHD, worker(1)), launcher=failed_launcher(began=False, **MARKED)),
    Case(
        "no sshd, and the launcher fails before it calls one", "", (NO_SSHD, worker(1)), launcher=failed_launcher(began=False, exit_code=2)
    ),
    Case(
        "a launcher without memory", "OOMKilled: container launcher of pod pi-launcher-x", ALL, launcher=failed_launcher(reason="OOMKilled")
    ),
    Case(
        "a command that does not exist",
        'StartError: container launcher of pod pi-launcher-x could not be started: exec: "nothing"',
        ALL,
        launcher=failed_launcher(exit_code=128, reason="StartError", message='exec: "nothing"', startedAt="1970-01-01T00:00:00Z"),
    ),
    Case(
        "a command that does not exist, in the words of runc",
        'StartError: container launcher of pod pi-launcher-x could not be started: exec: "nothing"',
        ALL,
        launcher=failed_launcher(exit_code=128, reason="StartError", message=f'{LAYERS}exec: "nothing"', startedAt="1970-01-01T00:00:00Z"),
    ),
    Case(
        "an init container",
        "InitContainerFailed: container prepare of pod pi-launcher-x ended: exit code 3. Read its log",
        ALL,
        launcher=launcher_pod("Failed", initContainerStatuses=[{"name": "prepare", "state": {"terminated": {"exitCode": 3}}}]),
    ),
    Case(
        "the log in the termination message",
        "Python finds no module named numpy",
        ALL,
        launcher=failed_launcher(message="ModuleNotFoundError: No module named 'numpy'"),
    ),
    Case("a name that Open MPI 4.1 does not survive", "mpirun crashed before it called a worker", ALL, launcher=crashed(), job=LONG_NAMED),
    Case("the same under a shell", "mpirun crashed before it called a worker", ALL, launcher=crashed(exitCode=134), job=LONG_NAMED),
    Case("a crash in a job with a long name that has a digit", "", ALL, launcher=crashed(), job=replace(LONG_NAMED, name="x" * 48 + "1")),
    Case("a program that crashes in a job with that name", "", ALL, launcher=crashed(**MARKED), job=LONG_NAMED),
    Case("a crash in a job with another name", "", ALL, launcher=crashed()),
    Case("Hydra hangs for minutes after a loss", "NodeLost: pod pi-worker-1 cannot", ALL, job=with_loss(HYDRA, 20)),
    Case("Open MPI went on after a loss", "", ALL, job=with_loss(PI, 20)),
    Case("a loss in this attempt", "NodeLost: pod pi-worker-1 cannot", ALL, job=with_loss(PI, 59), launcher=failed_launcher(ended=70)),
    Case("a loss in another attempt", "", ALL, job=with_loss(HYDRA, 59), launcher=failed_launcher(restarts=1, ended=70)),
]


def seen(case: Case) -> Observed:
    found = observed(*case.workers, job=case.job, launcher=launcher(job=case.job), launcher_pods=(case.launcher,))
    return replace(found, deleted_workers={pod["metadata"]["name"]: pod for pod in case.gone})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_cause_of_a_failed_attempt(case: Case) -> None:
    found = judged(launcher_attempt(case.job, seen(case)), case.words)
    assert found is not None
    assert found.cause.startswith(case.cause) if case.cause else found.cause == ""


def after(job: MPIJob, seen_now: Observed, words: LastWords = NO_WORDS, *, problem: Problem | None = None, second: int = 101) -> MPIJob:
    """Return the job with its next status, at that second."""
    now = parse_time(at(second))
    return replace(job, status=next_status(launcher_attempt(job, seen_now), problem, now, Findings(words=words)))


BACKOFF = {"type": "Failed", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
LATE = {"type": "Failed", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
OOM = ended_worker(second=99, reason="OOMKilled", exit_code=137)


def ended_with(*workers: Object, pod: Object) -> Observed:
    return observed(*workers, launcher=launcher(outcome=BACKOFF), launcher_pods=(pod,))


def failed_condition(job: MPIJob) -> tuple[str, str]:
    row = job.status.true_condition(c.CONDITION_FAILED)
    return (row.reason, row.message) if row is not None else ("", "")


def test_the_summary_begins_with_the_verdict_and_the_condition_as_the_reference_writes_it() -> None:
    job = after(PI, ended_with(*ALL, pod=failed_launcher(exit_code=3)), LOG)
    reason, message = failed_condition(job)
    assert reason == "BackoffLimitExceeded/Error"
    assert message == (
        "Job has reached the specified backoff limit: pod pi-launcher-x container launcher exit code 3. "
        "Cause: the program exited with code 3 on rank 1. Read what it printed.\nend"
    )
    assert job.status.summary.state == "Failed"
    assert job.status.summary.message.startswith("the program exited with code 3 on rank 1. Read what it printed. Last attempt: pod pi-")
    assert after(job, observed(), second=900).status.summary.message == job.status.summary.message, "it outlives the pods"


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (3, "the launcher failed with exit code 3; its log may show the cause. Last attempt: pod pi-launcher-x container launcher"),
        (137, "the launcher failed with exit code 137 (SIGKILL); its log may show the cause. Often a program has used more memory than"),
        (139, "the launcher failed with exit code 139 (SIGSEGV)"),
        (213, "the launcher failed with exit code 213; its log"),
        (255, "the launcher failed with exit code 255 (ssh or mpirun failed, or the program returned -1)"),
    ],
)
def test_without_a_cause_the_exit_code_is_all_that_is_reported(exit_code: int, words: str) -> None:
    job = after(PI, ended_with(*ALL, pod=failed_launcher(exit_code=exit_code)))
    assert job.status.summary.message.startswith(words)
    assert "Cause" not in failed_condition(job)[1]
    assert "SIGABRT" not in job.status.summary.message + failed_condition(job)[1]


def test_a_loss_that_is_seen_after_the_end_of_the_launcher_is_added() -> None:
    pod = failed_launcher()
    for first in (observed(*ALL, launcher=launcher(), launcher_pods=(pod,)), ended_with(*ALL, pod=pod)):
        job = after(PI, first, LOG)
        job = after(job, ended_with(worker(0), OOM, pod=pod), second=102)
        assert "Cause: OOMKilled: container worker of pod pi-worker-1" in failed_condition(job)[1]
        assert job.status.summary.message.startswith("OOMKilled: container worker of pod pi-worker-1 was killed, because it used more")


def test_a_worker_that_ends_while_the_next_attempt_runs_is_no_cause_of_the_first() -> None:
    job = after(PI, observed(*ALL, launcher=launcher(), launcher_pods=(failed_launcher(exit_code=3, **MARKED),)), LOG)
    pod = failed_launcher(exit_code=3, restarts=1, **MARKED)
    [row] = pod["status"]["containerStatuses"]
    row |= {"state": {"running": {}}, "lastState": row["state"]}
    pod["status"]["phase"] = "Running"
    later = observed(worker(0), ended_worker(second=130, reason="OOMKilled"), launcher=launcher(), launcher_pods=(pod,))
    assert after(job, later).status.last_failure == job.status.last_failure


def test_what_happens_to_workers_after_the_end_of_the_job_is_no_cause() -> None:
    pod = failed_launcher()
    ended = after(PI, ended_with(*ALL, pod=pod))
    unreachable = worker(1, conditions=[{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}])
    for later in (deleted_worker(second=101), unreachable):
        assert after(ended, ended_with(worker(0), later, pod=pod), second=103).status.last_failure == ended.status.last_failure


def test_another_attempt_that_ends_in_the_same_way_has_a_cause_of_its_own() -> None:
    job = after(PI, observed(worker(0), launcher=launcher(), launcher_pods=(failed_launcher(),)))
    assert job.status.last_failure is not None
    job = replace(job, status=replace(job.status, last_failure=replace(job.status.last_failure, cause="WorkerDeleted: gone")))
    again = failed_launcher(ended=200, restarts=1, startedAt=at(190))
    job = after(job, observed(*ALL, launcher=launcher(), launcher_pods=(again,)), LOG, second=201)
    assert job.status.last_failure is not None
    assert job.status.last_failure.cause.startswith("the program exited with code 3")


def test_what_a_job_still_waited_for_is_not_reported_as_resolved() -> None:
    pod = failed_launcher(began=False, **MARKED)
    waiting = observed(NO_SSHD, worker(1), launcher=launcher(), launcher_pods=())
    job = after(PI, waiting, problem=Problem("NoSshd", "no sshd. Install it."), second=60)
    job = after(job, ended_with(NO_SSHD, worker(1), pod=pod))
    rows = {row.type: (row.status, row.reason, row.message) for row in job.status.conditions}
    assert rows["Stalled"] == rows["Failed"] == ("True", *failed_condition(job))
    assert "Cause: NoSshd: " in failed_condition(job)[1]
    assert job.status.summary.message.startswith("NoSshd: container worker of pod pi-worker-0 did not start")


def test_a_deadline_is_explained_by_what_the_job_waited_for() -> None:
    job = after(PI, observed(launcher=launcher()), problem=Problem("Unschedulable", "no room"), second=60)
    job = after(job, observed(launcher=launcher(outcome=LATE)))
    assert failed_condition(job) == ("DeadlineExceeded", f"{LATE['message']}. Cause: Unschedulable: no room")
    assert job.status.summary.message == "Unschedulable: no room"


def test_a_deadline_of_a_job_that_ran_is_explained_by_the_field_that_sets_it() -> None:
    job = after(PI, observed(*ALL, launcher=launcher(outcome=LATE)))
    assert failed_condition(job) == ("DeadlineExceeded", LATE["message"])
    assert job.status.summary.message.startswith("the job took longer than spec.runPolicy.activeDeadlineSeconds allows. Raise it, or")


def test_an_evicted_worker_is_named() -> None:
    evicted = worker(1, "Failed", reason="Evicted", message="The node was low on resource: memory.")
    job = after(PI, observed(worker(0), evicted, launcher=launcher(), launcher_pods=(launcher_pod(),)))
    assert failed_condition(job) == ("MPIJobEvicted", "1/2 workers are evicted")
    words = job.status.summary.message
    assert words.endswith(": The node was low on resource: memory. That ends a job without the annotation mpiop.kubeflow.org/max-restarts.")


GOING = launcher_pod("Running", metadata={"deletionTimestamp": at(130)})


@pytest.mark.parametrize(
    ("launcher_pods", "words"),
    [
        ((GOING,), "the launcher's Pod did not end by itself: it was deleted, evicted or preempted, "),
        ((), "the launcher's Pod did not end by itself: it was deleted, evicted or preempted, "),
        ((failed_launcher(exit_code=3),), "the launcher failed with exit code 3; "),
    ],
    ids=["it goes", "it is gone", "it failed by itself"],
)
def test_a_launcher_whose_pod_was_taken_away_is_reported(launcher_pods: tuple[Object, ...], words: str) -> None:
    job = after(PI, observed(*ALL, launcher=launcher(outcome=BACKOFF), launcher_pods=launcher_pods))
    assert job.status.summary.message.startswith(words)
    assert after(job, observed(launcher=launcher(outcome=BACKOFF)), second=131).status.summary.message.startswith(words)
    assert failed_condition(job)[1].startswith(BACKOFF["message"])


def test_the_end_of_an_attempt_does_not_resolve_its_loss() -> None:
    degraded = Problem("WorkerDeleted", "worker pi-worker-1 was deleted")
    job = after(PI, observed(*ALL, launcher=launcher(), launcher_pods=(launcher_pod(),)), problem=degraded)
    assert loss_problem(launcher_attempt(job, observed(worker(0), launcher=launcher(), launcher_pods=(failed_launcher(),)))) == degraded
    next_attempt = launcher_attempt(job, observed(*ALL, launcher=launcher(), launcher_pods=(failed_launcher(), launcher_pod())))
    assert loss_problem(next_attempt) is None
