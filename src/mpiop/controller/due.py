"""When a job is due again although no watch reports a change: a limit passes, a grace period ends, an entry expires."""

from collections.abc import Iterator
from datetime import datetime

from mpiop.api.status_types import MPIJobStatus
from mpiop.controller.plan.addresses import seconds_to_repeat
from mpiop.controller.plan.clean_up import ttl_seconds_left
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.restart.decision import seconds_to_decision
from mpiop.controller.restart.plan import seconds_to_replacement
from mpiop.controller.restart.policy import seconds_to_expiry
from mpiop.controller.status.reconciling import seconds_to_stalled
from mpiop.controller.status.terminating import seconds_to_late


def due_seconds(attempt: LauncherAttempt, status: MPIJobStatus, now: datetime, timeout_seconds: float) -> Iterator[float | None]:
    """Yield the seconds until each of these; None if it does not apply, 0 or less if it has been dealt with.

    Args:
        attempt: The current attempt of the launcher, with its job as it was when the sync began.
        status: The status of the job now.
        now: The time.
        timeout_seconds: How long a launcher may hang after it has lost a worker; 0 is for ever.
    """
    job, observed = attempt.job, attempt.observed
    yield ttl_seconds_left(job, now)
    yield seconds_to_repeat(job, observed, now)
    yield seconds_to_replacement(job, observed, now)
    yield seconds_to_decision(attempt, status, now, timeout_seconds)
    yield seconds_to_late(job, observed, now)
    yield seconds_to_expiry(job, status, now)
    yield seconds_to_stalled(status, now)
