"""MPIJob as frozen dataclasses, parsed and defaulted (see `parse`), so that the rest of the code never meets an absent field.

Pod templates stay wire dicts: they are passed on to the API server whole, fields that we do not know included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpiop.api import constants as c
from mpiop.api import names
from mpiop.api.checkpoint import Checkpoint
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, Implementation
from mpiop.api.restart import NO_BUDGET, RestartPolicy
from mpiop.api.status_types import MPIJobStatus
from mpiop.kube.objects import Key, Object, labels_of


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

    @property
    def container(self) -> Mapping[str, Any]:
        """Return the first container of the template: it runs `mpirun`, or is the worker; the others are the user's own."""
        container: Mapping[str, Any] = self.template["spec"]["containers"][0]
        return container


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """What the user wants of the gang; None or "" where it is not set."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Mapping[str, str] | None = None
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How the job runs and ends; durations in seconds, None where they are not set."""

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

    The fields from `slots_mode` to `is_allocation` are set by annotations (see `annotations`): "" or None without them. Without `ssh`, the
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
    is_allocation: bool = False
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
    def is_rigid(self) -> bool:
        """Return whether the program cannot continue without one of its workers: `mpirun` of its library starts its processes once.

        Another job may be elastic, as Horovod is, unless it asks to be restarted. An allocation continues: its steps end by themselves.
        """
        return (self.library.is_rigid and not self.is_allocation) or self.restart.has_budget

    @property
    def containers(self) -> Sequence[Mapping[str, Any]]:
        """Return the first container of the launcher, and that of a worker if there are any."""
        return [spec.container for spec in (self.launcher, self.worker) if spec is not None]

    @property
    def avoided_nodes(self) -> Sequence[str]:
        """Return the nodes on which no pod of the job may run: those that failed, if the job asks for that."""
        return self.status.failed_nodes if self.restart.avoids_failed_nodes else ()

    @property
    def uses_host_network(self) -> bool:
        """Return whether a pod of the job uses its node's network."""
        return any(spec is not None and spec.template["spec"].get("hostNetwork") for spec in (self.launcher, self.worker))

    @property
    def is_queued(self) -> bool:
        """Return whether Kueue decides when the job starts."""
        return bool(labels_of(self.raw).get(c.LABEL_QUEUE))

    @property
    def worker_replicas(self) -> int:
        """Return the desired number of workers; 0 for a launcher on its own."""
        return self.worker.replicas if self.worker else 0

    @property
    def service_name(self) -> str:
        """Return the name of the Service, which is the subdomain of every pod."""
        return self.name

    @property
    def config_map_name(self) -> str:
        """Return the name of the ConfigMap with the hostfile."""
        return f"{self.name}-config"

    @property
    def secret_name(self) -> str:
        """Return the name of the Secret with the SSH key pair."""
        return f"{self.name}-ssh"

    @property
    def pod_group_name(self) -> str:
        """Return the name of the PodGroup."""
        return self.name

    @property
    def launcher_name(self) -> str:
        """Return the name of the launcher Job, which is the host name of its pods, too."""
        return names.launcher_name(self.name)

    @property
    def worker_names(self) -> Sequence[str]:
        """Return the names of all desired workers, by index."""
        return names.worker_names(self.name, self.worker_replicas)

    def host(self, pod_name: str, cluster_domain: str) -> str:
        """Return the DNS name under which the Service publishes a pod.

        Args:
            pod_name: Host name of the pod: one of `worker_names`, or `launcher_name`.
            cluster_domain: Without outer dots; "" leaves it out.
        """
        name = f"{pod_name}.{self.service_name}.{self.namespace}.svc"
        return f"{name}.{cluster_domain}" if cluster_domain else name

    @property
    def is_suspended(self) -> bool:
        """Return whether the user (or Kueue) wants the job suspended."""
        return self.run_policy.suspend

    @property
    def is_resuming(self) -> bool:
        """Return whether the job is resumed, and the status does not show it yet."""
        return self.status.is_true(c.CONDITION_SUSPENDED) and not self.is_suspended
