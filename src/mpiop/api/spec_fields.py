"""The fields of an MPIJob's spec, one row each: how it is read and checked, what counts without it, and how it is documented.

The rows drive the parser, the validation, the revisions, the CRD and the reference page. To add a field, add its row, the attribute that it
sets (in `types`), and the code that uses the attribute. Replica specs have rules of their own, in `parse` and `validation`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.annotation_row import Hashed
from mpiop.api.annotations import TTL_DELETES_JOB
from mpiop.api.fields import INT64_MAX, Fields
from mpiop.api.mpi_implementations import IMPLEMENTATIONS, OPEN_MPI
from mpiop.api.spec_field import Boolean, Choice, Integer, Quantities, SpecField, Text
from mpiop.api.types import MPIJob

MOUNT_PATH: Final = r"(/([^/:.][^/:]*|\.[^/:.][^/:]*|\.\.[^/:]+|\.)?)*"
"""Of a path that begins with '/' and has neither ':' nor a part that is '..'; regular expressions of CEL cannot look ahead."""

SPEC: Final = "spec"
RUN_POLICY: Final = "spec.runPolicy"
SCHEDULING_POLICY: Final = "spec.runPolicy.schedulingPolicy"

SPEC_FIELDS: Final[Mapping[str, tuple[SpecField, ...]]] = {
    SPEC: (
        SpecField(
            name="slotsPerWorker",
            field="slots_per_worker",
            kind=Integer(),
            default=1,
            help="Number of MPI processes on each worker, which are its slots in the hostfile.",
            in_revision=None,
        ),
        SpecField(
            name="runLauncherAsWorker",
            field="run_launcher_as_worker",
            kind=Boolean(),
            default=False,
            help="Whether the launcher's pod also runs MPI processes. If so, it is the first host of the hostfile.",
            in_revision=None,
        ),
        SpecField(
            name="sshAuthMountPath",
            field="ssh_auth_mount_path",
            kind=Text(4096, MOUNT_PATH, "must be an absolute path, without ':' and '..'"),
            default=c.DEFAULT_SSH_AUTH_MOUNT_PATH,
            takes_empty=True,
            help="Directory where the first container of each pod has the SSH key pair. Containers that do not run as root need "
            "the directory of their own user, for example /home/mpiuser/.ssh.",
            in_revision=None,
        ),
        SpecField(
            name="launcherCreationPolicy",
            field="launcher_creation_policy",
            kind=Choice((c.AT_STARTUP, c.WAIT_FOR_WORKERS_READY)),
            default=c.AT_STARTUP,
            takes_empty=True,
            help="When the launcher is created: AtStartup: together with the workers. WaitForWorkersReady: when all worker pods are Ready.",
            in_revision=None,
        ),
        SpecField(
            name="mpiImplementation",
            field="mpi_implementation",
            kind=Choice(tuple(IMPLEMENTATIONS)),
            default=OPEN_MPI.name,
            help="MPI library in the images. It determines the format of the hostfile and the environment variables of the launcher.",
            in_revision=None,
        ),
    ),
    RUN_POLICY: (
        SpecField(
            name="cleanPodPolicy",
            field="clean_pod_policy",
            kind=Choice((c.CLEAN_NONE, c.CLEAN_RUNNING, c.CLEAN_ALL)),
            default=c.CLEAN_NONE,
            is_stored=False,
            help="Worker pods to delete when the job has ended. None: no pods. Running: pods that still run or wait. All: all pods. "
            f"Unset: {c.CLEAN_NONE}.",
            in_revision=None,
        ),
        SpecField(
            name="ttlSecondsAfterFinished",
            field="ttl_seconds_after_finished",
            kind=Integer(),
            help="Seconds to keep the job's pods and other objects after it has ended. Unset: keep them. The MPIJob itself is "
            f'also deleted if its annotation {TTL_DELETES_JOB.name} is "true".',
            in_revision=None,
        ),
        SpecField(
            name="activeDeadlineSeconds",
            field="active_deadline_seconds",
            kind=Integer(INT64_MAX),
            help="Seconds that the launcher may run after its start. Then the job is Failed. Unset: no limit.",
            in_revision=None,
        ),
        SpecField(
            name="backoffLimit",
            field="backoff_limit",
            kind=Integer(),
            help="Number of times to start a failed launcher again before the job is Failed. Unset: 6, as for any batch/v1 Job.",
            in_revision=None,
        ),
        SpecField(
            name="suspend",
            field="suspend",
            kind=Boolean(),
            default=False,
            help="Suspends the job: it has no launcher or worker pods while this is true. Queueing systems such as Kueue set it.",
            in_revision=None,
        ),
        SpecField(
            name="managedBy",
            field="managed_by",
            kind=Choice((c.MANAGED_BY_US, c.MANAGED_BY_MULTIKUEUE), max_length=63),
            help="The controller that runs the job. Unset: this operator, which ignores jobs of other controllers. Immutable.",
            in_revision=None,
        ),
    ),
    SCHEDULING_POLICY: (
        SpecField(
            name="minAvailable",
            field="min_available",
            kind=Integer(),
            help="Number of pods that must be schedulable before any of them starts. Unset: workers + 1.",
            in_revision=None,
        ),
        SpecField(
            name="queue",
            field="queue",
            kind=Text(253),
            default="",
            help="Queue of the gang. Volcano only.",
            in_revision=None,
        ),
        SpecField(
            name="minResources",
            field="min_resources",
            kind=Quantities(),
            help='Resources that must be free before any pod starts, by name, for example {cpu: "3", memory: 8Gi}. Unset: computed '
            "from the pods' requests.",
            in_revision=None,
        ),
        SpecField(
            name="priorityClass",
            field="priority_class",
            kind=Text(253),
            default="",
            help="PriorityClass of the gang. Unset: the launcher's, or else the workers'. Volcano only.",
            in_revision=None,
        ),
        SpecField(
            name="scheduleTimeoutSeconds",
            field="schedule_timeout_seconds",
            kind=Integer(),
            help="Seconds that the gang may wait to be scheduled. Coscheduling (scheduler-plugins) only.",
            in_revision=None,
        ),
    ),
}
"""By the path of the object that has them."""


def read_fields(fields: Fields) -> dict[str, Any]:
    """Return the attributes that the rows for `fields` set; add an error for each that is of another type."""
    return {row.field: row.read(fields) for row in SPEC_FIELDS[fields.path]}


def field_errors(path: str, values: object) -> Iterator[str]:
    """Yield an error for each field of the object at `path` that has an invalid value in the dataclass `values`."""
    for row in SPEC_FIELDS[path]:
        if (value := getattr(values, row.field)) is not None:
            yield from row.kind.errors(f"{path}.{row.name}", value)


def counted(job: MPIJob) -> list[tuple[Hashed, Any]]:
    """Return the values that count in the revisions of an MPIJob, and how."""
    policy = job.run_policy
    parts = {SPEC: job, RUN_POLICY: policy} | ({SCHEDULING_POLICY: policy.scheduling_policy} if policy.scheduling_policy else {})
    rows = ((row, part) for path, part in parts.items() for row in SPEC_FIELDS[path])
    return [(row.in_revision, getattr(part, row.field)) for row, part in rows if row.in_revision is not None]
