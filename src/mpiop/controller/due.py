"""When a job is due again although no watch reports a change: a limit passes, a grace period ends, an entry expires."""

from collections.abc import Iterator
from datetime import datetime

from mpiop.api.types import MPIJob, MPIJobStatus
from mpiop.controller.objects.launcher_job import seconds_to_deadline
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.addresses import seconds_to_repeat
from mpiop.controller.plan.clean_up import ttl_seconds_left
from mpiop.controller.plan.replacement import seconds_to_replacement
from mpiop.controller.status.failed_nodes import seconds_to_expiry
from mpiop.controller.status.reconciling import seconds_to_stalled
from mpiop.controller.status.restart_causes import seconds_to_timeout, seconds_to_verdict
from mpiop.controller.status.terminating import seconds_to_late


def due_seconds(
    job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime, lost_worker_timeout_seconds: float
) -> Iterator[float | None]:
    """Yield the seconds until each of these; None if it does not apply, 0 or less if it has been dealt with.

    Args:
        job: As it was when the sync began.
        observed: Its children.
        status: As it is now.
        now: The time.
        lost_worker_timeout_seconds: How long a launcher may hang after it has lost a worker; 0 is for ever.
    """
    yield ttl_seconds_left(job, now)
    yield seconds_to_repeat(job, observed, now)
    yield seconds_to_replacement(job, observed, now)
    yield seconds_to_timeout(status, now, lost_worker_timeout_seconds)
    yield seconds_to_verdict(job, observed, now)
    yield seconds_to_late(job, observed, now)
    yield seconds_to_expiry(job, status, now)
    yield seconds_to_stalled(status, now)
    yield max(0, seconds_to_deadline(job, now) or 0)
