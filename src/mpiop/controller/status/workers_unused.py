"""The condition WorkersUnused: the job succeeded, but all ranks ran on the launcher (docs/adr/0009-launcher-alone.md)."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob, MPIJobStatus
from mpiop.controller import names
from mpiop.controller.objects.ssh_script import leaves_mark
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.tries import mpirun_status
from mpiop.controller.status import conditions as cond
from mpiop.kube.objects import Object, annotations_of

NO_WORKER_REACHED: Final = "NoWorkerReached"


def with_workers_unused(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status`, with the condition WorkersUnused if the job succeeded without its workers.

    A finished job is checked again, since the end of the pod may be seen after that of the Job. The condition is put before the last one,
    which many programs read as the state of the job.
    """
    if not status.is_true(c.CONDITION_SUCCEEDED) or status.condition(c.CONDITION_WORKERS_UNUSED) is not None:
        return status
    lonely = next((pod for pod in observed.launcher_pods if _ended_alone(job, pod)), None)
    if lonely is None:
        return status
    message = (
        f"the launcher succeeded, but its mpirun started nothing on any of the {job.worker_replicas} workers: all ranks ran in pod "
        f"{lonely['metadata'].get('name', '')}. Is the image's MPI library what spec.mpiImplementation says, {job.mpi_implementation}?"
    )
    unused = cond.make(c.CONDITION_WORKERS_UNUSED, "True", NO_WORKER_REACHED, message, now)
    return replace(status, conditions=cond.set_before_last(status.conditions, unused))


def _ended_alone(job: MPIJob, pod: Object) -> bool:
    """Return whether the launcher's container succeeded without a termination message: neither our mark nor one of the program's own."""
    if names.ANNOTATION_SSH not in annotations_of(pod) or not leaves_mark(job):
        return False
    ended = pods.terminated(mpirun_status(job, pod))
    return ended.get("exitCode") == 0 and not ended.get("message")
