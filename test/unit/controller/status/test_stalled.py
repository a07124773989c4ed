"""Why a job does not get on."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, with_workers
from mpiop.api import constants as c
from mpiop.api.status_types import Condition
from mpiop.api.types import MPIJob, RunPolicy
from mpiop.controller.causes import problem
from mpiop.controller.errors import PredecessorError, ResourceExistsError
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.refusals import FailedWrite, PersistentFailures
from mpiop.controller.status.stalled import ended_worker_problem, find_problem
from mpiop.kube import resources
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key
from mpiop.kube.resources import SECRETS


def refused(code: int, message: str = "no", **status: Any) -> StatusError:
    return StatusError("create pods default/pi-worker-0", {"code": code, "message": message, **status})


def terminated(exit_code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    ended = {"exitCode": exit_code, "reason": reason, "message": message}
    return {"name": "worker", "image": "example.com/pi", "state": {"terminated": ended}}


def waiting(reason: str, message: str = "", /, **last: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "worker", "image": "example.com/pi", "state": state, "lastState": {"terminated": last} if last else {}}


def with_command(*command: str) -> MPIJob:
    assert PI.worker is not None
    template = {"spec": {"containers": [{"name": "worker", "image": "example.com/pi", "command": list(command)}]}}
    return replace(PI, worker=replace(PI.worker, template=template))


def running(job: MPIJob) -> MPIJob:
    row = Condition("Running", "True", "MPIJobRunning", "", EPOCH, EPOCH)
    return replace(job, status=replace(job.status, conditions=(row,)))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""Not too long after the deletion of children that are Terminating."""
NOT_READY = {"type": "Ready", "status": "False"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


MEMORY = (
    "container worker of pod pi-worker-0 was killed, because it used more memory than its limit. "
    "Raise its memory limit. If ranks run in it, more workers may help too."
)
PUBLISHED = launcher_pod(metadata={"annotations": {"mpiop.kubeflow.org/addresses": "0 10.0.0.1\n1 10.0.0.2\n"}})


class Case(NamedTuple):
    id: str
    observation: Observed
    failed: tuple[FailedWrite, ...]
    reason: str | None
    message: str = ""
    job: MPIJob = PI


REFUSALS = [
    Case("all is well", observed(worker(0), worker(1)), (), None),
    Case(
        "quota",
        observed(),
        (FailedWrite("Pod", refused(403, "exceeded quota: pods")),),
        "QuotaExceeded",
        "worker pod created failed: exceeded quota: pods. Use less, free some, or ask for a larger quota.",
    ),
    Case(
        "forbidden otherwise",
        observed(),
        (FailedWrite("Job", refused(403, "denied by policy")),),
        "Forbidden",
        "launcher pod created failed: denied by policy. "
        "Change what the message names: the Pod template, the policy, or the operator's rights.",
    ),
    Case(
        "a policy that answers 422",
        observed(),
        (FailedWrite("Pod", refused(422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no root")),),
        "Forbidden",
    ),
    Case(
        "invalid pod",
        observed(),
        (FailedWrite("Pod", refused(422, "bad volume")),),
        "ValidationError",
        "worker pod created failed: bad volume. Correct the field.",
    ),
    Case(
        "too large",
        observed(),
        (FailedWrite("ConfigMap", refused(413, "too large")),),
        "ValidationError",
        "ConfigMap: too large. Correct the field.",
    ),
    Case(
        "in the way",
        observed(),
        (FailedWrite("Service", ResourceExistsError("Service", "pi")),),
        "ResourceExists",
        'Resource "pi" of Kind "Service" already exists and is not managed by MPIJob. '
        "Delete or rename that object; the job continues within 60 s.",
    ),
    Case(
        "a refused change of a pod is no failed creation",
        observed(),
        (FailedWrite("Pod", refused(403, "denied"), is_create=False),),
        "Forbidden",
        "Pod: denied. Change what the message names: the Pod template, the policy, or the operator's rights.",
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
]

PODS = [
    Case(
        "unschedulable",
        observed(worker(0, "Pending", conditions=[UNSCHEDULABLE])),
        (),
        "Unschedulable",
        "pod pi-worker-0 cannot be scheduled: 0/1 nodes. "
        "A cluster autoscaler may add a node. Else request less, free resources, "
        "or correct the node selector, the tolerations or the volume claim.",
    ),
    Case(
        "scheduling gated is no fault", observed(worker(0, "Pending", conditions=[UNSCHEDULABLE | {"reason": "SchedulingGated"}])), (), None
    ),
    Case(
        "image",
        observed(worker(0, "Pending", containerStatuses=[waiting("ErrImagePull", "not found")])),
        (),
        "ImagePull",
        "pod pi-worker-0 cannot get image example.com/pi: not found. "
        "Correct the name of the image, add the pull secret of its registry (imagePullSecrets), or check that the node reaches it.",
    ),
    Case(
        "image of an init container",
        observed(launcher_pods=(launcher_pod("Pending", initContainerStatuses=[waiting("ErrImagePull")]),)),
        (),
        "ImagePull",
    ),
    Case("creating is no fault", observed(worker(0, "Pending", containerStatuses=[waiting("ContainerCreating")])), (), None),
    Case(
        "a Secret that does not exist",
        observed(
            launcher_pods=(launcher_pod("Pending", containerStatuses=[waiting("CreateContainerConfigError", 'secret "s" not found')]),)
        ),
        (),
        "CreateContainerConfigError",
        'container worker of pod pi-launcher-x cannot be created: secret "s" not found. '
        "Create it, and the container starts; or correct the Pod template.",
    ),
    Case(
        "a launcher without a shell",
        observed(launcher_pods=(launcher_pod("Pending", containerStatuses=[waiting("RunContainerError", "exec: sh: not found")]),)),
        (),
        "StartError",
    ),
    Case(
        "an init container that fails",
        observed(worker(0, "Pending", initContainerStatuses=[waiting("CrashLoopBackOff", exitCode=3, reason="Error")])),
        (),
        "InitContainerFailed",
        "container worker of pod pi-worker-0 ended: exit code 3, Error. Read its log: kubectl logs POD -c CONTAINER.",
    ),
    Case(
        "no sshd in PATH",
        observed(worker(0, "Failed", containerStatuses=[terminated(127)])),
        (),
        "NoSshd",
        "container worker of pod pi-worker-0 did not start, exit code 127 (command not found). "
        "Correct the command of the workers, install sshd in the image with the job's key as host key (docs/images.md), or use "
        "`mpiop.kubeflow.org/ssh: Injected`.",
    ),
    Case(
        "no sshd at all",
        observed(worker(0, "Failed", containerStatuses=[terminated(128, "StartError", 'exec: "/usr/sbin/sshd": no such file')])),
        (),
        "NoSshd",
    ),
    Case(
        "a start that fails for another reason",
        observed(worker(0, "Failed", containerStatuses=[terminated(128, "StartError", "cannot set capability")])),
        (),
        "StartError",
    ),
    Case(
        "a command of the user's that does not exist",
        observed(worker(0, "Failed", containerStatuses=[terminated(127)])),
        (),
        "StartError",
        job=with_command("prepare"),
    ),
    Case(
        "no sshd, restarted",
        observed(worker(0, containerStatuses=[waiting("CrashLoopBackOff", exitCode=127)], conditions=[NOT_READY])),
        (),
        "NoSshd",
    ),
    Case(
        "a worker that crashes over and over",
        observed(worker(0, containerStatuses=[waiting("CrashLoopBackOff", exitCode=139, reason="Error")], conditions=[NOT_READY])),
        (),
        "CrashLoopBackOff",
        "container worker of pod pi-worker-0 ended: exit code 139 (SIGSEGV), Error. "
        "Read its log: kubectl logs POD -c CONTAINER --previous.",
    ),
    Case(
        "a worker that crashed again a moment ago",
        observed(
            worker(
                0,
                containerStatuses=[terminated(3) | {"lastState": {"terminated": {"exitCode": 3}}}],
                conditions=[NOT_READY],
            )
        ),
        (),
        "CrashLoopBackOff",
    ),
    Case(
        "a worker that crashed once",
        observed(worker(0, containerStatuses=[terminated(3)], conditions=[NOT_READY])),
        (),
        None,
    ),
    Case(
        "a launcher that crashes over and over",
        observed(launcher_pods=(launcher_pod(containerStatuses=[waiting("CrashLoopBackOff", exitCode=1)]),)),
        (),
        "CrashLoopBackOff",
    ),
    Case(
        "out of memory over and over",
        observed(worker(0, containerStatuses=[waiting("CrashLoopBackOff", exitCode=137, reason="OOMKilled")], conditions=[NOT_READY])),
        (),
        "OOMKilled",
        MEMORY,
    ),
    Case(
        "no sshd at first, Ready now",
        observed(worker(0, containerStatuses=[{"name": "w", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 127}}}])),
        (),
        None,
    ),
    Case(
        "an sshd that ends while the launcher waits for it",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(launcher_pod(),)),
        (),
        "NoSshd",
        "container worker of pod pi-worker-0 ended: exit code 1, Error. "
        "Correct the command of the workers, install sshd in the image with the job's key as host key (docs/images.md), or use "
        "`mpiop.kubeflow.org/ssh: Injected`.",
    ),
    Case(
        "a worker of another kind that ends while the launcher waits for it",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(launcher_pod(),)),
        (),
        "WorkerEnded",
        job=with_command("serve"),
    ),
    Case(
        "a worker that ends before the job runs and after mpirun could reach it",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(PUBLISHED,)),
        (),
        None,
    ),
    Case(
        "a worker that ends while the job runs",
        observed(worker(0, "Failed", containerStatuses=[terminated(1)]), launcher_pods=(PUBLISHED,)),
        (),
        "WorkerEnded",
        job=running(PI),
    ),
    Case(
        "an sshd that ends well while the job runs",
        observed(worker(0, "Succeeded", containerStatuses=[terminated(0, "Completed")]), launcher_pods=(PUBLISHED,)),
        (),
        "WorkerEnded",
        job=running(PI),
    ),
    Case(
        "a worker of another kind that has done its part",
        observed(worker(0, "Succeeded", containerStatuses=[terminated(0, "Completed")]), launcher_pods=(PUBLISHED,)),
        (),
        None,
        job=running(with_command("serve")),
    ),
    Case(
        "out of memory while the job runs",
        observed(worker(0, "Failed", containerStatuses=[terminated(137, "OOMKilled")]), launcher_pods=(PUBLISHED,)),
        (),
        "OOMKilled",
        MEMORY,
        job=running(PI),
    ),
    Case(
        "a worker that its node refused",
        observed(worker(0, "Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")),
        (),
        "WorkerRejected",
    ),
    Case(
        "a worker whose own deadline passed before it started",
        observed(worker(0, "Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline")),
        (),
        "WorkerDeadlineExceeded",
        "worker pi-worker-0 ran longer than the activeDeadlineSeconds of its Pod template. Raise it, or remove it: "
        "spec.runPolicy.activeDeadlineSeconds limits the whole job.",
    ),
    Case(
        "a worker on a lost node",
        observed(
            worker(
                0,
                metadata={"deletionTimestamp": "x"},
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}],
            )
        ),
        (),
        "NodeLost",
    ),
    Case(
        "a worker that is preempted",
        observed(
            worker(
                0,
                metadata={"deletionTimestamp": "x"},
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempting"}],
            )
        ),
        (),
        "Disrupted",
        "pod pi-worker-0 is taken from node : preempting. "
        "The operator replaces it; a higher priority (priorityClassName) or a PodDisruptionBudget protects it.",
    ),
    Case("a worker that is deleted", observed(worker(0, metadata={"deletionTimestamp": "x"})), (), None),
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
CASES = [*REFUSALS, *PODS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_problem(case: Case) -> None:
    found = find_problem(launcher_attempt(case.job, case.observation), case.failed, None)
    assert (found.reason if found else None) == case.reason
    if found and case.message:
        assert found.message == case.message


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
    ("the worker is not desired any more", with_workers(PATIENT, 1), observed(*ENDED), False),
]


@pytest.mark.parametrize(("job", "observation", "is_in_vain"), [row[1:] for row in IN_VAIN], ids=[row[0] for row in IN_VAIN])
def test_a_launcher_waits_in_vain_when(job: MPIJob, observation: Observed, *, is_in_vain: bool) -> None:
    found = ended_worker_problem(job, observation)
    assert (found is not None and found.reason == "WorkerEnded") == is_in_vain


PASSING = (FailedWrite("Pod", refused(500, "failed calling webhook: deadline exceeded")),)


class Tries(NamedTuple):
    """Syncs at these seconds, each of which failed so; and what the last one reports."""

    id: str
    at: tuple[float, ...]
    failed: tuple[tuple[FailedWrite, ...], ...]
    message: str | None
    reason: str = "WriteFailed"


TRIES = [
    Tries("a few tries for long enough", (0, 5, 11), (PASSING,), "worker pod created failed: failed calling webhook: deadline exceeded"),
    Tries("many tries in a short time", (0, 0.5, 1, 2, 2.9), (PASSING,), None),
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
    Tries(
        "an object of a former job that stays",
        (0, 5, 11),
        ((FailedWrite("Secret", PredecessorError(SECRETS, Key("default", "pi-ssh"))),),),
        "Secret: Secret default/pi-ssh of a former owner is still being deleted",
        "PredecessorExists",
    ),
    Tries(
        "objects of a former job that go one by one",
        (0, 2.6, 5.1),
        tuple(
            (FailedWrite(left.kind, PredecessorError(left, Key("default", "pi"))),)
            for left in (resources.SERVICES, resources.PODS, SECRETS)
        ),
        "Secret: Secret default/pi of a former owner is still being deleted",
        "PredecessorExists",
    ),
    Tries("what is reported anyway", (0, 5, 11), ((FailedWrite("Pod", refused(403, "exceeded quota")),),), None),
]


@pytest.mark.parametrize("tries", TRIES, ids=lambda tries: tries.id)
def test_failures_that_should_pass_are_reported_when_they_persist(tries: Tries) -> None:
    lasting, reported = PersistentFailures(JobMemory()), None
    for seconds, failed in zip(tries.at, cycle(tries.failed), strict=False):
        reported = lasting.problem(PI.key, failed, seconds)
    assert reported == (tries.message and problem(tries.reason, tries.message))


def test_another_job_has_failures_of_its_own() -> None:
    memory = JobMemory()
    lasting = PersistentFailures(memory)
    for seconds in (0, 5, 11):
        assert lasting.problem(Key("default", str(seconds)), PASSING, seconds) is None
    for seconds in (0, 5):
        lasting.problem(PI.key, PASSING, seconds)
    memory.forget(PI.key)
    assert lasting.problem(PI.key, PASSING, 11) is None
