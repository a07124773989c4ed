"""Why a job does not get on."""

from dataclasses import replace
from itertools import cycle
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, with_workers
from mpiop.api import constants as c
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status.stalled import (
    FailedWrite,
    PersistentFailures,
    Problem,
    ResourceExistsError,
    ended_worker_problem,
    find_problem,
)
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key


def refused(code: int, message: str = "no", **status: Any) -> StatusError:
    return StatusError("create pods default/pi-worker-0", {"code": code, "message": message, **status})


def terminated(exit_code: int, reason: str = "Error") -> dict[str, Any]:
    return {"name": "worker", "image": "example.com/pi", "state": {"terminated": {"exitCode": exit_code, "reason": reason}}}


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "worker", "image": "example.com/pi", "state": {"waiting": {"reason": reason}}}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


TOLD = launcher_pod(metadata={"annotations": {"mpiop.kubeflow.org/addresses": "0 10.0.0.1\n1 10.0.0.2\n"}})


class Case(NamedTuple):
    id: str
    look: Observed
    failed: tuple[FailedWrite, ...]
    reason: str | None
    message: str = ""


CASES = [
    Case("all is well", observed(worker(0), worker(1)), (), None),
    Case(
        "quota",
        observed(),
        (FailedWrite("Pod", refused(403, "exceeded quota: pods")),),
        "QuotaExceeded",
        "worker pod created failed: exceeded quota: pods",
    ),
    Case(
        "forbidden otherwise",
        observed(),
        (FailedWrite("Job", refused(403, "denied by policy")),),
        "Forbidden",
        "launcher pod created failed: denied by policy",
    ),
    Case(
        "invalid pod",
        observed(),
        (FailedWrite("Pod", refused(422, "bad volume")),),
        "ValidationError",
        "worker pod created failed: bad volume",
    ),
    Case("too large", observed(), (FailedWrite("ConfigMap", refused(413, "too large")),), "ValidationError", "too large"),
    Case(
        "in the way",
        observed(),
        (FailedWrite("Service", ResourceExistsError("Service", "pi")),),
        "ResourceExists",
        'Resource "pi" of Kind "Service" already exists and is not managed by MPIJob',
    ),
    Case(
        "a refused change of a pod is no failed creation",
        observed(),
        (FailedWrite("Pod", refused(403, "denied"), is_create=False),),
        "Forbidden",
        "denied",
    ),
    Case("server busy passes", observed(), (FailedWrite("Pod", refused(503)),), None),
    Case("no connection passes", observed(), (FailedWrite("Pod", TransportError("refused")),), None),
    Case(
        "namespace on its way out passes",
        observed(),
        (FailedWrite("Pod", refused(403, details={"causes": [{"reason": "NamespaceTerminating"}]})),),
        None,
    ),
    Case(
        "the first that needs somebody counts",
        observed(),
        (FailedWrite("Pod", refused(500)), FailedWrite("Pod", refused(422, "bad"))),
        "ValidationError",
    ),
    Case(
        "unschedulable",
        observed(worker(0, "Pending", conditions=[UNSCHEDULABLE])),
        (),
        "Unschedulable",
        "pod pi-worker-0 cannot be scheduled: 0/1 nodes",
    ),
    Case(
        "scheduling gated is no fault", observed(worker(0, "Pending", conditions=[UNSCHEDULABLE | {"reason": "SchedulingGated"}])), (), None
    ),
    Case(
        "image",
        observed(worker(0, "Pending", containerStatuses=[waiting("ImagePullBackOff")])),
        (),
        "ImagePull",
        "pod pi-worker-0 cannot get image example.com/pi: ImagePullBackOff",
    ),
    Case(
        "image of an init container",
        observed(launcher_pods=(launcher_pod("Pending", initContainerStatuses=[waiting("ErrImagePull")]),)),
        (),
        "ImagePull",
    ),
    Case("creating is no fault", observed(worker(0, "Pending", containerStatuses=[waiting("ContainerCreating")])), (), None),
    Case(
        "no sshd in PATH",
        observed(worker(0, "Failed", containerStatuses=[terminated(127)])),
        (),
        "NoSshd",
        "container worker of worker pi-worker-0 did not start (exit code 127): has image example.com/pi an sshd?",
    ),
    Case("no sshd at all", observed(worker(0, "Failed", containerStatuses=[terminated(128, "StartError")])), (), "NoSshd"),
    Case(
        "no sshd, restarted",
        observed(
            worker(
                0,
                containerStatuses=[
                    {"name": "w", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 127}}}
                ],
                conditions=[{"type": "Ready", "status": "False"}],
            )
        ),
        (),
        "NoSshd",
    ),
    Case(
        "no sshd at first, Ready now",
        observed(worker(0, containerStatuses=[{"name": "w", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 127}}}])),
        (),
        None,
    ),
    Case("another exit code is the user's program", observed(worker(0, "Failed", containerStatuses=[terminated(1)])), (), None),
    Case(
        "an sshd that ends while the launcher waits for it",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(launcher_pod(),)),
        (),
        "NoSshd",
        "container worker of worker pi-worker-0 ended (exit code 1) before mpirun could reach it: its log says why; "
        "sshd needs a host key and may need another port",
    ),
    Case(
        "a worker that fails once mpirun could reach it is the user's",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(TOLD,)),
        (),
        None,
    ),
    Case(
        "an evicted worker has an end of its own",
        observed(worker(0, "Failed", reason="Evicted", containerStatuses=[terminated(1)]), launcher_pods=(launcher_pod(),)),
        (),
        None,
    ),
    Case(
        "the launcher's 127 is not about sshd",
        observed(launcher_pods=(launcher_pod("Failed", containerStatuses=[terminated(127)]),)),
        (),
        None,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_problem(case: Case) -> None:
    problem = find_problem(case.look, case.failed)
    assert (problem.reason if problem else None) == case.reason
    if problem and case.message:
        assert problem.message == case.message


PATIENT = replace(PI, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY)
ENDED = (worker(0), worker(1, "Failed"))
IN_VAIN = [
    ("a worker has ended before the launcher was made", PATIENT, observed(*ENDED), True),
    ("or while it is held", PATIENT, observed(*ENDED, launcher=launcher(suspend=True)), True),
    ("a worker that has ended well is not Ready either", PATIENT, observed(worker(0), worker(1, "Succeeded")), True),
    ("the launcher runs", PATIENT, observed(*ENDED, launcher=launcher()), False),
    ("workers are yet to come", PATIENT, observed(worker(0), worker(1, "Pending")), False),
    ("the worker is on its way out", PATIENT, observed(worker(0), worker(1, "Failed", metadata={"deletionTimestamp": "x"})), False),
    ("the job is suspended", replace(PATIENT, run_policy=RunPolicy(suspend=True)), observed(*ENDED), False),
    ("the launcher waits for nobody", PI, observed(*ENDED, launcher=launcher(suspend=True)), False),
    ("the worker is not wanted any more", with_workers(PATIENT, 1), observed(*ENDED), False),
]


@pytest.mark.parametrize(("job", "look", "is_in_vain"), [row[1:] for row in IN_VAIN], ids=[row[0] for row in IN_VAIN])
def test_a_launcher_waits_in_vain_when(job: MPIJob, look: Observed, *, is_in_vain: bool) -> None:
    problem = ended_worker_problem(job, look)
    assert (problem is not None and problem.reason == "WorkerEnded") == is_in_vain


PASSING = (FailedWrite("Pod", refused(500, "failed calling webhook: deadline exceeded")),)


class Tries(NamedTuple):
    """Syncs at these seconds, each of which failed so; and what the last one tells."""

    id: str
    at: tuple[float, ...]
    failed: tuple[tuple[FailedWrite, ...], ...]
    message: str | None


TRIES = [
    Tries("a few tries for long enough", (0, 5, 11), (PASSING,), "worker pod created failed: failed calling webhook: deadline exceeded"),
    Tries("many tries in a short time", (0, 1, 2, 3, 4, 5, 6), (PASSING,), None),
    Tries("two tries", (0, 60), (PASSING,), None),
    Tries("one that went well in between", (0, 5, 11, 12), (PASSING, PASSING, (), PASSING), None),
    Tries("not always the same", (0, 5, 11), (PASSING, (FailedWrite("Pod", refused(429)),)), None),
    Tries(
        "a lost request",
        (0, 5, 11),
        ((FailedWrite("ConfigMap", TransportError("create configmaps: timed out"), is_create=False),),),
        "ConfigMap: create configmaps: timed out",
    ),
    Tries(
        "a busy server",
        (0, 5, 11),
        ((FailedWrite("Job", refused(429, "too many requests")),),),
        "launcher pod created failed: too many requests",
    ),
    Tries(
        "an answer without words",
        (0, 5, 11),
        ((FailedWrite("Service", refused(500, "")),),),
        "Service: create pods default/pi-worker-0: 500: no message",
    ),
    Tries("conflicts", (0, 5, 11), ((FailedWrite("Job", refused(409, reason="Conflict"), is_create=False),),), None),
    Tries(
        "a namespace on its way out",
        (0, 5, 11),
        ((FailedWrite("Pod", refused(403, details={"causes": [{"reason": "NamespaceTerminating"}]})),),),
        None,
    ),
    Tries("what is told anyway", (0, 5, 11), ((FailedWrite("Pod", refused(403, "exceeded quota")),),), None),
]


@pytest.mark.parametrize("tries", TRIES, ids=lambda tries: tries.id)
def test_failures_that_should_pass_are_told_when_they_do_not(tries: Tries) -> None:
    lasting, told = PersistentFailures(), None
    for seconds, failed in zip(tries.at, cycle(tries.failed), strict=False):
        told = lasting.problem(PI.key, failed, seconds)
    assert told == (tries.message and Problem("WriteFailed", tries.message))


def test_another_job_has_failures_of_its_own() -> None:
    lasting = PersistentFailures()
    for seconds in (0, 5, 11):
        assert lasting.problem(Key("default", str(seconds)), PASSING, seconds) is None
    for seconds in (0, 5):
        lasting.problem(PI.key, PASSING, seconds)
    lasting.forget(PI.key)
    assert lasting.problem(PI.key, PASSING, 11) is None
