"""Why a job does not get on."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle
from typing import Any, NamedTuple

import pytest

from example_children import launcher, launcher_pod, observed, worker
from example_jobs import PI, container, template, with_worker, with_workers
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
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import PODS, SECRETS, SERVICES


def refused(code: int, message: str = "no", **status: Any) -> StatusError:
    return StatusError("create pods default/pi-worker-0", {"code": code, "message": message, **status})


def terminated(exit_code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    ended = {"exitCode": exit_code, "reason": reason, "message": message}
    return {"name": "worker", "image": "example.com/pi", "state": {"terminated": ended}}


def waiting(reason: str, message: str = "", /, **last: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "worker", "image": "example.com/pi", "state": state, "lastState": {"terminated": last} if last else {}}


def pod_refused(code: int, message: str = "no", **status: Any) -> tuple[FailedWrite]:
    return (FailedWrite("Pod", refused(code, message, **status)),)


def ended(*rows: dict[str, Any], phase: str = "Failed", launcher_pods: tuple[Object, ...] = (), **status: Any) -> Observed:
    """Return an observation in which the first worker has ended."""
    return observed(worker(0, phase, containerStatuses=list(rows), **status), launcher_pods=launcher_pods)


def unready(*rows: dict[str, Any]) -> Observed:
    """Return an observation in which the first worker runs, and is not Ready."""
    return observed(worker(0, containerStatuses=list(rows), conditions=[NOT_READY]))


def launching(phase: str, **status: Any) -> Observed:
    return observed(launcher_pods=(launcher_pod(phase, **status),))


def disrupted(**condition: str) -> Observed:
    """Return an observation in which the first worker is taken away."""
    row = {"type": "DisruptionTarget", "status": "True", **condition}
    return observed(worker(0, metadata={"deletionTimestamp": "x"}, conditions=[row]))


def with_command(command: str) -> MPIJob:
    return with_worker(PI, template(container(command=[command])))


def running(job: MPIJob) -> MPIJob:
    row = Condition("Running", "True", "MPIJobRunning", "", EPOCH, EPOCH)
    return replace(job, status=replace(job.status, conditions=(row,)))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOT_READY = {"type": "Ready", "status": "False"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


CONTAINER = "container worker of pod pi-worker-0"
MEMORY = (
    f"{CONTAINER} was killed, because it used more memory than its limit. "
    "Raise its memory limit. If ranks run in it, more workers may help too."
)
SSHD = (
    "Correct the command of the workers, install sshd in the image with the job's key as host key (docs/images.md), or use "
    "`mpiop.kubeflow.org/ssh: Injected`."
)
TERMINATING_NAMESPACE = {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}
NOTHING = observed()
PUBLISHED = launcher_pod(metadata={"annotations": {"mpiop.kubeflow.org/addresses": "0 10.0.0.1\n1 10.0.0.2\n"}})


class Case(NamedTuple):
    id: str
    reason: str | None
    message: str = ""
    seen: Observed = NOTHING
    failed: tuple[FailedWrite, ...] = ()
    job: MPIJob = PI


CASES = [
    Case("all is well", None, seen=observed(worker(0), worker(1))),
    Case(
        "quota",
        "QuotaExceeded",
        "worker pod created failed: exceeded quota: pods. Use less, free some, or ask for a larger quota.",
        failed=pod_refused(403, "exceeded quota: pods"),
    ),
    Case(
        "forbidden otherwise",
        "Forbidden",
        "launcher pod created failed: denied by policy. "
        "Change what the message names: the Pod template, the policy, or the operator's rights.",
        failed=(FailedWrite("Job", refused(403, "denied by policy")),),
    ),
    Case(
        "a policy that answers 422",
        "Forbidden",
        failed=pod_refused(422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no root"),
    ),
    Case(
        "invalid pod",
        "ValidationError",
        "worker pod created failed: bad volume. Correct the field.",
        failed=pod_refused(422, "bad volume"),
    ),
    Case(
        "too large",
        "ValidationError",
        "ConfigMap: too large. Correct the field.",
        failed=(FailedWrite("ConfigMap", refused(413, "too large")),),
    ),
    Case(
        "in the way",
        "ResourceExists",
        'Resource "pi" of Kind "Service" already exists and is not managed by MPIJob. '
        "Delete or rename that object; the job continues within 60 s.",
        failed=(FailedWrite("Service", ResourceExistsError("Service", "pi")),),
    ),
    Case(
        "a refused change of a pod is no failed creation",
        "Forbidden",
        "Pod: denied. Change what the message names: the Pod template, the policy, or the operator's rights.",
        failed=(FailedWrite("Pod", refused(403, "denied"), is_create=False),),
    ),
    Case("server busy passes", None, failed=pod_refused(503)),
    Case("no connection passes", None, failed=(FailedWrite("Pod", TransportError("refused")),)),
    Case("namespace on its way out passes", None, failed=pod_refused(403, **TERMINATING_NAMESPACE)),
    Case("the first that needs somebody counts", "ValidationError", failed=(*pod_refused(500), *pod_refused(422, "bad"))),
    Case(
        "unschedulable",
        "Unschedulable",
        "pod pi-worker-0 cannot be scheduled: 0/1 nodes. "
        "A cluster autoscaler may add a node. Else request less, free resources, "
        "or correct the node selector, the tolerations or the volume claim.",
        observed(worker(0, "Pending", conditions=[UNSCHEDULABLE])),
    ),
    Case(
        "scheduling gated is no fault",
        None,
        seen=observed(worker(0, "Pending", conditions=[UNSCHEDULABLE | {"reason": "SchedulingGated"}])),
    ),
    Case(
        "image",
        "ImagePull",
        "pod pi-worker-0 cannot get image example.com/pi: not found. "
        "Correct the name of the image, add the pull secret of its registry (imagePullSecrets), or check that the node reaches it.",
        observed(worker(0, "Pending", containerStatuses=[waiting("ErrImagePull", "not found")])),
    ),
    Case("image of an init container", "ImagePull", seen=launching("Pending", initContainerStatuses=[waiting("ErrImagePull")])),
    Case("creating is no fault", None, seen=observed(worker(0, "Pending", containerStatuses=[waiting("ContainerCreating")]))),
    Case(
        "a Secret that does not exist",
        "CreateContainerConfigError",
        'container worker of pod pi-launcher-x cannot be created: secret "s" not found. '
        "Create it, and the container starts; or correct the Pod template.",
        launching("Pending", containerStatuses=[waiting("CreateContainerConfigError", 'secret "s" not found')]),
    ),
    Case(
        "a launcher without a shell",
        "StartError",
        seen=launching("Pending", containerStatuses=[waiting("RunContainerError", "exec: sh: not found")]),
    ),
    Case(
        "an init container that fails",
        "InitContainerFailed",
        "container worker of pod pi-worker-0 ended: exit code 3, Error. Read its log: kubectl logs POD -c CONTAINER.",
        observed(worker(0, "Pending", initContainerStatuses=[waiting("CrashLoopBackOff", exitCode=3, reason="Error")])),
    ),
    Case("no sshd in PATH", "NoSshd", f"{CONTAINER} did not start, exit code 127 (command not found). {SSHD}", ended(terminated(127))),
    Case("no sshd at all", "NoSshd", seen=ended(terminated(128, "StartError", 'exec: "/usr/sbin/sshd": no such file'))),
    Case("a start that fails for another reason", "StartError", seen=ended(terminated(128, "StartError", "cannot set capability"))),
    Case("a command of the user's that does not exist", "StartError", seen=ended(terminated(127)), job=with_command("prepare")),
    Case("no sshd, restarted", "NoSshd", seen=unready(waiting("CrashLoopBackOff", exitCode=127))),
    Case(
        "a worker that crashes over and over",
        "CrashLoopBackOff",
        f"{CONTAINER} ended: exit code 139 (SIGSEGV), Error. Read its log: kubectl logs POD -c CONTAINER --previous.",
        unready(waiting("CrashLoopBackOff", exitCode=139, reason="Error")),
    ),
    Case(
        "a worker that crashed again a moment ago",
        "CrashLoopBackOff",
        seen=unready(terminated(3) | {"lastState": {"terminated": {"exitCode": 3}}}),
    ),
    Case("a worker that crashed once", None, seen=unready(terminated(3))),
    Case(
        "a launcher that crashes over and over",
        "CrashLoopBackOff",
        seen=launching("Running", containerStatuses=[waiting("CrashLoopBackOff", exitCode=1)]),
    ),
    Case("out of memory over and over", "OOMKilled", MEMORY, unready(waiting("CrashLoopBackOff", exitCode=137, reason="OOMKilled"))),
    Case(
        "no sshd at first, Ready now",
        None,
        seen=observed(
            worker(0, containerStatuses=[{"name": "w", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 127}}}])
        ),
    ),
    Case(
        "an sshd that ends while the launcher waits for it",
        "NoSshd",
        f"{CONTAINER} ended: exit code 1, Error. {SSHD}",
        ended(terminated(1), launcher_pods=(launcher_pod(),)),
    ),
    Case(
        "a worker of another kind that ends while the launcher waits for it",
        "WorkerEnded",
        seen=ended(terminated(1), launcher_pods=(launcher_pod(),)),
        job=with_command("serve"),
    ),
    Case(
        "a worker that ends before the job runs and after mpirun could reach it",
        None,
        seen=ended(terminated(1), launcher_pods=(PUBLISHED,)),
    ),
    Case(
        "a worker that ends while the job runs",
        "WorkerEnded",
        seen=ended(terminated(1), launcher_pods=(PUBLISHED,)),
        job=running(PI),
    ),
    Case(
        "an sshd that ends well while the job runs",
        "WorkerEnded",
        seen=ended(terminated(0, "Completed"), phase="Succeeded", launcher_pods=(PUBLISHED,)),
        job=running(PI),
    ),
    Case(
        "a worker of another kind that has done its part",
        None,
        seen=ended(terminated(0, "Completed"), phase="Succeeded", launcher_pods=(PUBLISHED,)),
        job=running(with_command("serve")),
    ),
    Case(
        "out of memory while the job runs",
        "OOMKilled",
        MEMORY,
        ended(terminated(137, "OOMKilled"), launcher_pods=(PUBLISHED,)),
        job=running(PI),
    ),
    Case(
        "a worker that its node refused",
        "WorkerRejected",
        seen=observed(worker(0, "Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")),
    ),
    Case(
        "a worker whose own deadline passed before it started",
        "WorkerDeadlineExceeded",
        "worker pi-worker-0 ran longer than the activeDeadlineSeconds of its Pod template. Raise it, or remove it: "
        "spec.runPolicy.activeDeadlineSeconds limits the whole job.",
        observed(worker(0, "Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline")),
    ),
    Case("a worker on a lost node", "NodeLost", seen=disrupted(reason="DeletionByTaintManager")),
    Case(
        "a worker that is preempted",
        "Disrupted",
        "pod pi-worker-0 is taken from node : preempting. "
        "The operator replaces it; a higher priority (priorityClassName) or a PodDisruptionBudget protects it.",
        disrupted(reason="PreemptionByScheduler", message="preempting"),
    ),
    Case("a worker that is deleted", None, seen=observed(worker(0, metadata={"deletionTimestamp": "x"}))),
    Case(
        "an evicted worker has an end of its own",
        None,
        seen=ended(terminated(1), reason="Evicted", launcher_pods=(launcher_pod(),)),
    ),
    Case("the launcher's 127 is not about sshd", None, seen=launching("Failed", containerStatuses=[terminated(127)])),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_problem(case: Case) -> None:
    found = find_problem(launcher_attempt(case.job, case.seen), case.failed, None)
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


PASSING = pod_refused(500, "failed calling webhook: deadline exceeded")


class Tries(NamedTuple):
    """Syncs at these seconds, each of which failed so; and what the last one reports."""

    id: str
    failed: tuple[tuple[FailedWrite, ...], ...]
    message: str | None = None
    reason: str = "WriteFailed"
    at: tuple[float, ...] = (0, 5, 11)


TRIES = [
    Tries("a few tries for long enough", (PASSING,), "worker pod created failed: failed calling webhook: deadline exceeded"),
    Tries("many tries in a short time", (PASSING,), at=(0, 0.5, 1, 2, 2.9)),
    Tries("two tries", (PASSING,), at=(0, 60)),
    Tries("one that went well in between", (PASSING, PASSING, (), PASSING), at=(0, 5, 11, 12)),
    Tries("not always the same", (PASSING, pod_refused(429))),
    Tries(
        "a lost request",
        ((FailedWrite("ConfigMap", TransportError("create configmaps: timed out"), is_create=False),),),
        "ConfigMap: create configmaps: timed out",
    ),
    Tries(
        "a busy server",
        ((FailedWrite("Job", refused(429, "too many requests")),),),
        "launcher pod created failed: too many requests",
    ),
    Tries(
        "an answer without words",
        ((FailedWrite("Service", refused(500, "")),),),
        "Service: create pods default/pi-worker-0: 500: no message",
    ),
    Tries("conflicts", ((FailedWrite("Job", refused(409, reason="Conflict"), is_create=False),),)),
    Tries("a namespace on its way out", (pod_refused(403, **TERMINATING_NAMESPACE),)),
    Tries(
        "an object of a former job that stays",
        ((FailedWrite("Secret", PredecessorError(SECRETS, Key("default", "pi-ssh"))),),),
        "Secret: Secret default/pi-ssh of a former owner is still being deleted",
        "PredecessorExists",
    ),
    Tries(
        "objects of a former job that go one by one",
        tuple((FailedWrite(left.kind, PredecessorError(left, Key("default", "pi"))),) for left in (SERVICES, PODS, SECRETS)),
        "Secret: Secret default/pi of a former owner is still being deleted",
        "PredecessorExists",
        at=(0, 2.6, 5.1),
    ),
    Tries("what is reported anyway", (pod_refused(403, "exceeded quota"),)),
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
