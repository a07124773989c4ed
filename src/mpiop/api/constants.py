"""Names and values of the API `kubeflow.org/v2beta1` that users and other controllers rely on, and the table of conditions.

Modules import it as `c`.
"""

from collections.abc import Mapping
from typing import Final

from mpiop.api.condition_type import AtEnd, Change, ConditionType, Meaning, State
from mpiop.kube.resources import MPIJOBS

GROUP: Final = MPIJOBS.group
VERSION: Final = MPIJOBS.version
API_VERSION: Final = MPIJOBS.api_version
KIND: Final = MPIJOBS.kind

OPERATOR_NAME: Final = "mpi-operator"
EVENT_COMPONENT: Final = "mpi-job-controller"

LABEL_OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
LABEL_JOB_NAME: Final = "training.kubeflow.org/job-name"
LABEL_JOB_ROLE: Final = "training.kubeflow.org/job-role"
LABEL_REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
LABEL_APP: Final = "app"
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
LABEL_OLD_JOB_NAME: Final = "mpi_job_name"
LABEL_OLD_ROLE: Final = "mpi_role_type"

ROLE_LAUNCHER: Final = "launcher"
ROLE_WORKER: Final = "worker"
LAUNCHER: Final = "Launcher"
WORKER: Final = "Worker"

# Values of `runPolicy.managedBy`.
MANAGED_BY_US: Final = "kubeflow.org/mpi-operator"
MANAGED_BY_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"

# Values of `runPolicy.cleanPodPolicy`, `launcherCreationPolicy` and `restartPolicy`.
CLEAN_NONE: Final = "None"
CLEAN_RUNNING: Final = "Running"
CLEAN_ALL: Final = "All"

AT_STARTUP: Final = "AtStartup"
WAIT_FOR_WORKERS_READY: Final = "WaitForWorkersReady"

NEVER: Final = "Never"
ON_FAILURE: Final = "OnFailure"

# Values of annotations, and of the operator's flags that are their defaults.
SSH_IMAGE: Final = "Image"
SSH_INJECTED: Final = "Injected"
SSH_MODES: Final = (SSH_IMAGE, SSH_INJECTED)
SLOTS_AUTO: Final = "Auto"

CHECKPOINT_SIGNALS: Final = ("SIGUSR1", "SIGUSR2")
RESTART_FAILED: Final = "Failed"
RESTART_ALL: Final = "All"
RESTART_SCOPES: Final = (RESTART_FAILED, RESTART_ALL)
ON_INFRASTRUCTURE: Final = "Infrastructure"
ON_ANY: Final = "Any"
ON_EXIT_CODES: Final = "ExitCodes"

AGENT_COPIED: Final = "Copy"
AGENT_MOUNTED: Final = "Mount"
AGENT_DELIVERIES: Final = (AGENT_COPIED, AGENT_MOUNTED)
AGENT_FOLDER: Final = "/opt/mpiop"
AGENT_KEY_FOLDER: Final = "/opt/mpiop-key"
AGENT_FILES_FOLDER: Final = "/etc/mpi-hosts"
AGENT_FOLDERS: Final = (AGENT_FOLDER, AGENT_KEY_FOLDER, AGENT_FILES_FOLDER)
"""What must not be covered by mounts of a job whose ssh is injected."""
AGENT_PORT: Final = 2222

DEFAULT_SSH_AUTH_MOUNT_PATH: Final = "/root/.ssh"

CONDITION_CREATED: Final = "Created"
CONDITION_RUNNING: Final = "Running"
CONDITION_SUSPENDED: Final = "Suspended"
CONDITION_SUCCEEDED: Final = "Succeeded"
CONDITION_FAILED: Final = "Failed"
CONDITION_RECONCILING: Final = "Reconciling"
CONDITION_STALLED: Final = "Stalled"
CONDITION_FINISHED: Final = "Finished"
CONDITION_WARNINGS: Final = "Warnings"
CONDITION_DEGRADED: Final = "Degraded"
CONDITION_WORKERS_UNUSED: Final = "WorkersUnused"
CONDITION_UPDATE_PENDING: Final = "UpdatePending"
CONDITION_RESTARTING: Final = "Restarting"

# Reasons of the condition Failed.
EVICTED: Final = "MPIJobEvicted"
BACKOFF_LIMIT_EXCEEDED: Final = "BackoffLimitExceeded"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
LAUNCHER_JOB_NOT_FOUND: Final = "LauncherJobNotFound"

STARTING: Final = "Starting"
"""State of a job whose Pods do not run yet, and the reason of Reconciling while nothing is known to be in the way."""
QUEUED: Final = "Queued"
"""State of a job that Kueue keeps suspended."""

_CONDITION_TYPES: Final = (
    ConditionType(
        CONDITION_CREATED,
        meanings=(Meaning("True", "MPIJobCreated", "the operator has seen the job"),),
        changes={"True": Change("Normal", "job created")},
    ),
    ConditionType(
        CONDITION_RUNNING,
        meanings=(
            Meaning("True", "MPIJobRunning", "the launcher and all workers run. The condition remains True if Pods are lost later"),
            Meaning("False", "MPIJobRunning", "the job has ended. The times and the reason remain, so that the duration can be computed"),
            Meaning("False", "MPIJobSuspended", "the job is suspended"),
        ),
        changes={"True": Change("Normal", "job running", event_message="MPIJob {job} is running")},
        at_end=AtEnd.TURNS_FALSE,
        rank=7,
        state=State.TYPE,
    ),
    ConditionType(
        CONDITION_SUSPENDED,
        meanings=(
            Meaning("True", "MPIJobSuspended", "`suspend` is true. When all Pods are gone, `replicaStatuses.*.active` is 0"),
            Meaning("False", "MPIJobResumed", "`suspend` is false again. `startTime` is set to the time of the resume"),
        ),
        changes={"True": Change("Normal", "job suspended"), "False": Change("Normal", "job resumed")},
        rank=5,
        state=State.TYPE,
    ),
    ConditionType(
        CONDITION_RECONCILING,
        meanings=(
            Meaning("True", STARTING, "the job waits for its Pods. The condition is removed when the job runs or ends"),
            Meaning("True", "…", "the job waits for a cause that may resolve itself, or that an autoscaler may resolve"),
        ),
        changes={"True": Change("Warning", "job waits")},
        at_end=AtEnd.IS_REMOVED,
        names_cause=True,
    ),
    ConditionType(
        CONDITION_STALLED,
        meanings=(
            Meaning("True", "…", "the [grace period](../gitops.md) of the cause is over, or the job failed"),
            Meaning("True", "ResourceExists", "like any other cause, but the event has the name that Kubeflow's operator uses"),
            Meaning("False", "Resolved", "the problem is resolved"),
        ),
        changes={"True": Change("Warning", "job stalled"), "False": Change(log="job no longer stalled")},
        at_end=AtEnd.IS_RESOLVED,  # a failure then sets it again
        names_cause=True,
    ),
    ConditionType(
        CONDITION_DEGRADED,
        meanings=(
            Meaning("True", "…", "the job runs, but one of its Pods has a problem"),
            Meaning("False", "Resolved", "the problem is resolved"),
            Meaning("False", "JobFailed", "the job has failed with this problem; the message names it"),
        ),
        changes={"True": Change("Warning", "job degraded"), "False": Change(log="job no longer degraded")},
        at_end=AtEnd.IS_RESOLVED,
        rank=3,
        state=State.REASON,
        explains=True,
        names_cause=True,
    ),
    ConditionType(
        CONDITION_WARNINGS,
        meanings=(
            Meaning("True", "TemplateWarnings", "the API server warned about an unknown or deprecated part of a Pod template"),
            Meaning("False", "Resumed", "the Pods are created again"),
        ),
        changes={"True": Change("Warning")},
    ),
    ConditionType(
        CONDITION_UPDATE_PENDING,
        meanings=(
            Meaning("True", "EditedAfterStart", "an edit takes effect only after a suspend and resume"),
            Meaning("False", "UpToDate", "the edit has taken effect"),
        ),
        changes={"True": Change("Normal")},
        at_end=AtEnd.TURNS_FALSE,
    ),
    ConditionType(
        CONDITION_RESTARTING,
        meanings=(
            Meaning("True", "…", "workers or the launcher were lost; the operator replaces them"),
            Meaning("False", "Restarted", "the launcher runs again"),
            Meaning("False", "Suspended", "the job was suspended in the meantime; resuming starts it"),
            Meaning("False", "NotStored", "the CRD has an older version, so nothing is restarted; apply the newer CRD"),
        ),
        # Not "False": a restart that the end of its job cut short has another reason.
        changes={"True": Change("Warning", "job restarting", event_reason="Restarting"), "Restarted": Change("Normal", "job restarted")},
        at_end=AtEnd.TURNS_FALSE,
        rank=6,
        state=State.TYPE,
        names_cause=True,
    ),
    ConditionType(
        CONDITION_SUCCEEDED,
        meanings=(Meaning("True", "MPIJobSucceeded", "the launcher ended with exit code 0"),),
        changes={"True": Change("Normal", "job succeeded")},
        rank=1,
        state=State.TYPE,
    ),
    ConditionType(
        CONDITION_FAILED,
        meanings=(
            Meaning("True", f"{BACKOFF_LIMIT_EXCEEDED}/…", "the launcher failed more often than `backoffLimit`; … is the cause"),
            Meaning("True", DEADLINE_EXCEEDED, "the job ran longer than `activeDeadlineSeconds`"),
            Meaning("True", EVICTED, "the kubelet evicted a worker of a job without `max-restarts`"),
            Meaning("True", REACHED_MAX_RESTARTS, "workers or the launcher were lost more often than `max-restarts` allows"),
            Meaning("True", LAUNCHER_JOB_NOT_FOUND, "the launcher Job is gone, and its outcome is unknown"),
        ),
        changes={"True": Change("Warning", "job failed")},
        rank=2,
        state=State.TYPE,
        explains=True,
    ),
    ConditionType(
        CONDITION_WORKERS_UNUSED,
        meanings=(
            Meaning("True", "NoWorkerReached", "the job succeeded, but `mpirun` started nothing on the workers"),
            Meaning("Unknown", "NotKnown", "no `mpirun` connected to a worker; the command may not use `mpirun`"),
        ),
        changes={"True": Change("Warning")},
        rank=4,
        explains=True,
    ),
    ConditionType(
        CONDITION_FINISHED,
        meanings=(
            Meaning("True", CONDITION_SUCCEEDED, "the job has succeeded"),
            Meaning("True", CONDITION_FAILED, "the job has failed"),
        ),
    ),
)
CONDITION_TYPES: Final[Mapping[str, ConditionType]] = {row.type: row for row in _CONDITION_TYPES}
"""Each condition of an MPIJob, in the order of the reference page."""


def condition_type(name: str) -> ConditionType:
    """Return the row of a condition; of one that another program has set, a row that reports nothing."""
    return CONDITION_TYPES.get(name) or ConditionType(name)
