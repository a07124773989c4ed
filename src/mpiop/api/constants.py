"""Names and values of the API `kubeflow.org/v2beta1` that users and other controllers rely on."""

from typing import Final

GROUP: Final = "kubeflow.org"
VERSION: Final = "v2beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "MPIJob"

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

OPEN_MPI: Final = "OpenMPI"
INTEL: Final = "Intel"
MPICH: Final = "MPICH"

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
