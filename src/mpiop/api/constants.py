"""Names and values of the API `kubeflow.org/v2beta1` that users and other controllers rely on."""

from typing import Final

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

MANAGED_BY_US: Final = "kubeflow.org/mpi-operator"
MANAGED_BY_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"

CLEAN_NONE: Final = "None"
CLEAN_RUNNING: Final = "Running"
CLEAN_ALL: Final = "All"

AT_STARTUP: Final = "AtStartup"
WAIT_FOR_WORKERS_READY: Final = "WaitForWorkersReady"

NEVER: Final = "Never"
ON_FAILURE: Final = "OnFailure"

SSH_IMAGE: Final = "Image"
SSH_INJECTED: Final = "Injected"
SSH_MODES: Final = (SSH_IMAGE, SSH_INJECTED)
ANNOTATION_SSH_MODE: Final = "mpiop.kubeflow.org/ssh"
"""On an MPIJob: whose ssh and sshd are used, those of the image (`Image`) or ours (`Injected`). On a pod the name is that of a script."""
ANNOTATION_SLOTS: Final = "mpiop.kubeflow.org/slots"
"""On an MPIJob: `Auto` gives each worker as many slots as its first container has GPUs, else whole CPUs; at least one."""
SLOTS_AUTO: Final = "Auto"
ANNOTATION_SHM: Final = "mpiop.kubeflow.org/shm"
"""On an MPIJob: size of `/dev/shm` in launcher and workers, such as `8Gi`, unless their template mounts something there."""

ANNOTATION_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
"""On an MPIJob: the queue of its PodGroup, if its spec names none."""

ANNOTATION_MAX_RESTARTS: Final = "mpiop.kubeflow.org/max-restarts"
"""On an MPIJob: how often it may be restarted because a worker or the launcher was lost (docs/fault-tolerance.md)."""
ANNOTATION_RESTART: Final = "mpiop.kubeflow.org/restart"
"""On an MPIJob: which workers such a restart replaces, those that `Failed` (the default) or `All`."""
ANNOTATION_RESTART_ON: Final = "mpiop.kubeflow.org/restart-on"
"""On an MPIJob: what leads to a restart: losses of `Infrastructure` alone (the default), `Any` failure too, or `ExitCodes=3,42` too."""
ANNOTATION_RESTART_WINDOW: Final = "mpiop.kubeflow.org/restart-window"
"""On an MPIJob: the time in which `max-restarts` are allowed, for example 24h; by default it is the whole life of the job."""
ANNOTATION_AVOID_FAILED_NODES: Final = "mpiop.kubeflow.org/avoid-failed-nodes"
"""On an MPIJob: "true" keeps Pods that are made after a restart off the nodes that were lost, or had too little memory or disk."""
ANNOTATIONS_OF_RESTARTS: Final = (
    ANNOTATION_MAX_RESTARTS,
    ANNOTATION_RESTART,
    ANNOTATION_RESTART_ON,
    ANNOTATION_RESTART_WINDOW,
    ANNOTATION_AVOID_FAILED_NODES,
)
ANNOTATION_CHECKPOINT_SIGNAL: Final = "mpiop.kubeflow.org/checkpoint-signal"
"""On an MPIJob with injected ssh: by which signal its ranks are asked to save their work before a Pod of theirs is deleted, `SIGUSR1`."""
ANNOTATION_CHECKPOINT_GRACE: Final = "mpiop.kubeflow.org/checkpoint-grace"
"""On an MPIJob: how long they may run on after it, for example 2m; by default 60s."""
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

EVICTED: Final = "MPIJobEvicted"
BACKOFF_LIMIT_EXCEEDED: Final = "BackoffLimitExceeded"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
LAUNCHER_JOB_NOT_FOUND: Final = "LauncherJobNotFound"

STARTING: Final = "Starting"
"""State of a job whose Pods do not run yet, and the reason of Reconciling while nothing is known to be in the way."""
QUEUED: Final = "Queued"
"""State of a job that Kueue keeps suspended."""
