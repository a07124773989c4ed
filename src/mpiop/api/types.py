"""MPIJob as frozen dataclasses, parsed and defaulted (see `parse`), so that the rest of the code never meets an absent field.

Pod templates stay wire dicts: they are passed on to the API server whole, fields that we do not know included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpiop.api import constants as c
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, Implementation
from mpiop.api.restart import NO_BUDGET, RestartPolicy
from mpiop.api.status_types import MPIJobStatus
from mpiop.kube.objects import Key, Object


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """One role of the job.

    Attributes:
        replicas: Number of pods; 1 for the launcher.
        template: `corev1.PodTemplateSpec` as the user wrote it; never changed.
        restart_policy: `Never` or `OnFailure`.
    """

    replicas: int
    template: Mapping[str, Any]
    restart_policy: str


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """What the user wants of the gang; None or "" where nothing was said."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Mapping[str, str] | None = None
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How the job runs and ends; durations in seconds, None where nothing was said."""

    clean_pod_policy: str = c.CLEAN_NONE
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    scheduling_policy: SchedulingPolicy | None = None


@dataclass(frozen=True, slots=True)
class MPIJob:
    """An MPIJob with every default applied; `raw` is the stored object that it was parsed from.

    The fields from `slots_mode` to `uses_ssh_agent` are set by annotations (see `annotations`): "" or None without them. Without `ssh`, the
    operator's flag counts. `ignored` is what is wrong with annotations of a job that has begun: they count as absent. `is_large` means that
    computing with the spec would block the event loop.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    raw: Object
    slots_per_worker: int
    run_launcher_as_worker: bool
    ssh_auth_mount_path: str
    launcher_creation_policy: str
    mpi_implementation: str
    run_policy: RunPolicy
    launcher: ReplicaSpec
    worker: ReplicaSpec | None
    status: MPIJobStatus
    slots_mode: str = ""
    shm: str = ""
    ssh: str = ""
    volcano_queue: str = ""
    restart: RestartPolicy = NO_BUDGET
    checkpoint: Checkpoint | None = None
    ttl_deletes_job: bool = False
    uses_ssh_agent: bool = True
    ignored: tuple[str, ...] = ()
    is_large: bool = False

    @property
    def key(self) -> Key:
        """Return namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def library(self) -> Implementation:
        """Return what is known about the job's MPI library."""
        return IMPLEMENTATIONS[self.mpi_implementation]

    @property
    def worker_replicas(self) -> int:
        """Return the desired number of workers; 0 for a launcher on its own."""
        return self.worker.replicas if self.worker else 0

    @property
    def is_suspended(self) -> bool:
        """Return whether the user (or Kueue) wants the job suspended."""
        return self.run_policy.suspend

    @property
    def is_resuming(self) -> bool:
        """Return whether the job is resumed, and the status does not say so yet."""
        return self.status.is_true(c.CONDITION_SUSPENDED) and not self.is_suspended
