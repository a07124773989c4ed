"""Why an allocation ended: its launcher leaves the reason as its termination message (docs/adr/0044-allocations.md)."""

from dataclasses import replace

from mpiop.api import constants as c
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.controller.objects.ssh_script import without_mark
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import mpirun_status
from mpiop.kube.text import truncated


def reason_of_end(job: MPIJob, observed: Observed) -> str:
    """Return why the launcher of an allocation ended with success; "" if that is not known, or for any other job."""
    if not job.is_allocation:
        return ""
    ends = (pods.terminated(mpirun_status(pod, job.launcher)) for pod in reversed(observed.launcher_pods))
    return next((without_mark(end.get("message") or "") for end in ends if end.get("exitCode") == 0), "")


def with_reason_of_end(status: MPIJobStatus, reason: str) -> MPIJobStatus:
    """Return `status` with the reason in its summary; a finished job is checked again, since its pod may be seen to end later."""
    if not status.is_true(c.CONDITION_SUCCEEDED) or status.summary.message:
        return status
    return replace(status, summary=replace(status.summary, message=truncated(reason)))
