"""The guard against a success that is none: all ranks on the launcher, none on the workers (docs/adr/0009-launcher-alone.md)."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob, MPIJobStatus
from mpiop.controller import conditions as cond
from mpiop.controller import names, pods
from mpiop.controller.builders.ssh_agent import leaves_mark
from mpiop.controller.observed import Observed
from mpiop.kube.objects import Object, annotations_of

NO_WORKER_REACHED: Final = "NoWorkerReached"


def judged(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status`, with the condition WorkersUnused if the job succeeded without its workers.

    The pod's end may be seen after the Job's, so a job that has ended is judged as well. The condition stands before the last one, which
    many take for the state of the job.
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
    return replace(status, conditions=(*status.conditions[:-1], unused, *status.conditions[-1:]))


def _ended_alone(job: MPIJob, pod: Object) -> bool:
    """Tell whether the launcher's container ended well and left no word: neither our mark nor one of the program's own in its place."""
    if names.ANNOTATION_SSH not in annotations_of(pod) or not leaves_mark(job):
        return False
    container = job.launcher.template["spec"]["containers"][0].get("name")
    status = next((row for row in pods.container_statuses(pod) if row.get("name") == container), dict[str, Any]())
    ended = pods.terminated(status)
    return ended.get("exitCode") == 0 and not ended.get("message")
