"""The causes that stop a job, or slow it down: the reason that users see, when it occurs, and what to do.

docs/reference/causes.md is made of this table. What to do after the end of a job is in `client.why`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from mpiop.kube.text import MAX_MESSAGE_BYTES, truncated

VALIDATION_ERROR: Final = "ValidationError"
ANNOTATION_IGNORED: Final = "AnnotationIgnored"
UNREADABLE: Final = "Unreadable"
RESOURCE_EXISTS: Final = "ResourceExists"
PREDECESSOR_EXISTS: Final = "PredecessorExists"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
FORBIDDEN: Final = "Forbidden"
WRITE_FAILED: Final = "WriteFailed"
CHANGED_BACK: Final = "ChangedBack"
SECOND_OPERATOR: Final = "SecondOperator"
SECRET_LOST: Final = "SecretLost"  # noqa: S105 - the reason of a condition
GANG_API_MISSING: Final = "GangApiMissing"
UNSCHEDULABLE: Final = "Unschedulable"
IMAGE_PULL: Final = "ImagePull"
CONFIG_ERROR: Final = "CreateContainerConfigError"
START_ERROR: Final = "StartError"
INIT_FAILED: Final = "InitContainerFailed"
NO_SSHD: Final = "NoSshd"
WORKER_ENDED: Final = "WorkerEnded"
CRASH_LOOP: Final = "CrashLoopBackOff"
OOM_KILLED: Final = "OOMKilled"
NODE_LOST: Final = "NodeLost"
DISRUPTED: Final = "Disrupted"
WORKER_DELETED: Final = "WorkerDeleted"
WORKER_REJECTED: Final = "WorkerRejected"
WORKER_DEADLINE: Final = "WorkerDeadlineExceeded"
SCALED_DOWN: Final = "ScaledDown"
STUCK_TERMINATING: Final = "StuckTerminating"
FAILED_MOUNT: Final = "FailedMount"
SANDBOX: Final = "FailedCreatePodSandBox"
UNHEALTHY: Final = "Unhealthy"
FAILED_CREATE: Final = "FailedCreate"
UNHANDLED: Final = "Unhandled"
SCHEDULING_GATED: Final = "SchedulingGated"

DEGRADING: Final = frozenset({
    WORKER_ENDED,
    CRASH_LOOP,
    OOM_KILLED,
    NODE_LOST,
    DISRUPTED,
    WORKER_DELETED,
    WORKER_REJECTED,
    WORKER_DEADLINE,
    SCALED_DOWN,
    STUCK_TERMINATING,
    INIT_FAILED,
    ANNOTATION_IGNORED,
    UNREADABLE,
    CHANGED_BACK,
    SECOND_OPERATOR,
})
"""Reasons that make a running job Degraded instead of Stalled: some of its ranks may continue."""

_GRACE_SECONDS: Final = 300.0
"""Long enough for what often resolves itself: an object that is applied later, a registry or a webhook that restarts."""
_NEW_NODE_SECONDS: Final = 900.0
"""The cluster autoscaler gives up after 15 minutes (its `--max-node-provision-time`)."""
_CRASHING_SECONDS: Final = 120.0
"""Shorter than the longest back-off of a kubelet, because a container that runs in between begins another grace period."""


@dataclass(frozen=True, slots=True)
class Cause:
    """When a reason is shown, and what a user should do; both are Markdown sentences, the advice without a link.

    Attributes:
        grace_seconds: How long a job waits for this cause before it is Stalled; 0 if nothing but a user or an administrator can help.
    """

    when: str
    advice: str
    grace_seconds: float = _GRACE_SECONDS


CAUSES: Final[Mapping[str, Cause]] = MappingProxyType({
    VALIDATION_ERROR: Cause(
        "the spec is invalid, or the API server rejected an object that was built from it",
        "Correct the field.",
        grace_seconds=0,
    ),
    ANNOTATION_IGNORED: Cause(
        "an annotation of a started job is invalid; the operator ignores it",
        "Correct or remove the annotation.",
        grace_seconds=0,
    ),
    UNREADABLE: Cause(
        "the operator cannot decode an object of the job, for example because its fields are nested hundreds of levels deep",
        "Correct or delete that object; until then, the operator does not change the job.",
        grace_seconds=0,
    ),
    RESOURCE_EXISTS: Cause(
        "an object with a name that the job needs already exists, but does not belong to the job",
        "Delete or rename that object; the job continues within 60 s.",
        grace_seconds=0,
    ),
    PREDECESSOR_EXISTS: Cause(
        "an object of a deleted job of the same name is still being deleted, usually because of a finalizer",
        "Find out who set the finalizer: kubectl get KIND NAME -o yaml.",
    ),
    QUOTA_EXCEEDED: Cause(
        "a ResourceQuota rejected a Pod",
        "Use less, free some, or ask for a larger quota.",
        grace_seconds=_NEW_NODE_SECONDS,
    ),
    FORBIDDEN: Cause(
        "an admission policy, a webhook, Pod Security, a LimitRange or a missing permission of the operator prevents a write",
        "Change what the message names: the Pod template, the policy, or the operator's rights.",
        grace_seconds=0,
    ),
    WRITE_FAILED: Cause(
        "a write has failed for at least 5 s: a webhook does not answer, or the API server is overloaded",
        "The operator keeps retrying. Repair the webhook or the API server.",
    ),
    CHANGED_BACK: Cause(
        "another controller, a webhook or an admission policy repeatedly changes or deletes an object of the job",
        "Exclude the objects of MPIJobs from it. The operator restores the object once a minute.",
    ),
    SECOND_OPERATOR: Cause(
        "two MPI operators serve the same job, and each undoes the other's writes",
        "Stop one of them, or give each its own namespaces (--namespace).",
    ),
    SECRET_LOST: Cause(
        "the Secret with the SSH key of the job was deleted while Pods use it",
        "Suspend and resume the job to give it a new key.",
        grace_seconds=0,
    ),
    GANG_API_MISSING: Cause(
        "the operator runs with gang scheduling, but the API server does not serve PodGroups",
        "Install the scheduler, or run the operator without --gang-scheduling.",
    ),
    UNSCHEDULABLE: Cause(
        "no node fits a Pod; the message lists what is missing, and on how many nodes",
        "A cluster autoscaler may add a node. Else request less, free resources, "
        "or correct the node selector, the tolerations or the volume claim.",
        grace_seconds=_NEW_NODE_SECONDS,
    ),
    IMAGE_PULL: Cause(
        "the kubelet cannot pull an image",
        "Correct the name of the image, add the pull secret of its registry (imagePullSecrets), or check that the node reaches it.",
    ),
    CONFIG_ERROR: Cause(
        "a container needs a Secret, a ConfigMap, or a key in one of these, that does not exist",
        "Create it, and the container starts; or correct the Pod template.",
    ),
    START_ERROR: Cause(
        "the container runtime cannot start a container: the command does not exist, or the security context does not allow it",
        "Correct the command, the image or the security context.",
        grace_seconds=0,
    ),
    INIT_FAILED: Cause("an init container or a sidecar failed", "Read its log: kubectl logs POD -c CONTAINER."),
    NO_SSHD: Cause(
        "a worker has no `/usr/sbin/sshd`, or its sshd exited at once",
        "Correct the command of the workers, install sshd in the image with the job's key as host key (docs/images.md), or use "
        "`mpiop.kubeflow.org/ssh: Injected`.",
        grace_seconds=0,
    ),
    WORKER_ENDED: Cause(
        "a worker ended although the job needs it, and its restartPolicy does not restart it",
        "Read its log, then delete its Pod: the operator replaces it.",
        grace_seconds=0,
    ),
    CRASH_LOOP: Cause(
        "a container ends repeatedly; the message contains its exit code",
        "Read its log: kubectl logs POD -c CONTAINER --previous.",
        grace_seconds=_CRASHING_SECONDS,
    ),
    OOM_KILLED: Cause(
        "a container was killed because it used more memory than its limit",
        "Raise its memory limit. If ranks run in it, more workers may help too.",
        grace_seconds=_CRASHING_SECONDS,
    ),
    NODE_LOST: Cause(
        "the node of a Pod does not answer, so Kubernetes cannot delete the Pod, and does not know whether it is running",
        "Repair or delete the Node. The operator then replaces the Pod. With `mpiop.kubeflow.org/max-restarts`, it does so automatically.",
    ),
    DISRUPTED: Cause(
        "a Pod is preempted by a Pod with higher priority, or its node is drained or has too little memory or disk space",
        "The operator replaces it; a higher priority (priorityClassName) or a PodDisruptionBudget protects it.",
    ),
    WORKER_DELETED: Cause(
        "a worker's Pod was deleted while the launcher ran",
        "The operator replaces it, but a program that is not elastic has lost ranks and must be restarted.",
    ),
    WORKER_REJECTED: Cause(
        "the kubelet of a node rejected a worker before any container started: the node does not have the requested resources, "
        "its devices or labels have changed, or it is shutting down",
        "The operator recreates the Pod after 10 s, later every 5 minutes. Free resources on the node, or correct the requests, "
        "nodeName or nodeSelector of the workers.",
    ),
    WORKER_DEADLINE: Cause(
        "a worker ran longer than the `activeDeadlineSeconds` of its Pod template",
        "Raise it, or remove it: spec.runPolicy.activeDeadlineSeconds limits the whole job.",
    ),
    SCALED_DOWN: Cause(
        "the job was scaled down, and this removed a worker that `mpirun` was using",
        "Only elastic programs continue with fewer workers. Suspend other jobs before you change spec.mpiReplicaSpecs.Worker.replicas.",
    ),
    STUCK_TERMINATING: Cause(
        "a Pod or another object of the job blocks the job, because it is still Terminating 60 s after its grace period: "
        "it has a finalizer, or its node does not confirm its end",
        "If it has finalizers, find out who set them, then remove them (kubectl edit). If its node is gone for good, delete the Node, "
        "or the Pod by force (kubectl delete pod NAME --force).",
    ),
    FAILED_MOUNT: Cause(
        "a volume cannot be mounted: its Secret, ConfigMap or PersistentVolumeClaim does not exist, or the storage has an error",
        "Create what is missing, or correct the volumes of the Pod template.",
    ),
    SANDBOX: Cause("the node cannot set up the network of a Pod", "Ask the cluster's administrator to repair the node."),
    UNHEALTHY: Cause(
        "a worker runs, but is not Ready: its readiness or startup probe fails", "Correct the probe, or the program that it checks."
    ),
    SCHEDULING_GATED: Cause(
        "a Pod has had a scheduling gate for a minute; the scheduler ignores the Pod until the gate is removed",
        "Remove the gate from the Pod template, or check the program that should remove it from the Pod.",
    ),
    UNHANDLED: Cause(
        "for a minute, no component has acted on a Pod or on the launcher Job, and no event reports the reason: "
        "the scheduler of the Pod, or the Job controller, is not running",
        "Correct schedulerName in the Pod template, or ask the cluster's administrator to check the scheduler and kube-controller-manager.",
    ),
    FAILED_CREATE: Cause(
        "the launcher Job cannot create its Pod", "Correct the Pod template of the launcher; the message contains the error."
    ),
})


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a job: a reason (mostly a key of `CAUSES`), and a message for users."""

    reason: str
    message: str


def problem(reason: str, facts: str) -> Problem:
    """Return a problem with a message of at most 1024 bytes: the facts, cut if needed, then what to do."""
    advice = _advice(reason)
    facts = truncated(" ".join(facts.split()).rstrip("."), MAX_MESSAGE_BYTES - len(advice.encode()))
    return Problem(reason, facts + advice)


def grace_seconds(reason: str) -> float:
    """Return how long a job waits for that reason before it is Stalled; for an event's reason, as for most causes."""
    return CAUSES[reason].grace_seconds if reason in CAUSES else _GRACE_SECONDS


def facts_of(reason: str, message: str) -> str:
    """Return the message of a problem without the advice: events have it alone, in the words that users of the reference know."""
    return message.removesuffix(_advice(reason))


def _advice(reason: str) -> str:
    return f". {CAUSES[reason].advice}" if reason in CAUSES else ""
