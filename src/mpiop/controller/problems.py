"""The sources of a job's problem, in their order: what failed, what objects show, what persists, what is undone, what events report."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mpiop.clock import Clock
from mpiop.controller.causes import Problem
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.status.outcomes import MESSAGE_SECONDS
from mpiop.controller.status.reconciling import current_problem
from mpiop.controller.status.refusals import FailedWrite, PersistentFailures
from mpiop.controller.status.stalled import ended_worker_problem, find_problem, ignored_problem
from mpiop.controller.status.terminating import terminating_problem
from mpiop.controller.write.contention import Contention
from mpiop.controller.write.warning_events import WarningEvents


@dataclass(frozen=True, slots=True)
class Problems:
    """Finds the problem of a job.

    Attributes:
        contention: Knows which writes are undone.
        events: Asks why a Pod waits if nothing else reports it.
        persistent: Tracks failures that persist.
    """

    contention: Contention
    events: WarningEvents
    clock: Clock
    persistent: PersistentFailures

    async def find(self, attempt: LauncherAttempt, failed: Sequence[FailedWrite], now: datetime) -> tuple[Problem | None, float | None]:
        """Return the problem of the job, and the seconds after which it may be another although no watch reports it."""
        job, observed = attempt.job, attempt.observed
        if job.status.is_finished:
            return None, None
        persistent = self.persistent.problem(job.key, failed, self.clock.monotonic())
        stuck, late_seconds = terminating_problem(job, observed, now)
        found = find_problem(attempt, failed, stuck) or persistent or self.contention.problem(job.key, job.status)
        if found is None:
            found = current_problem(job.status) if failed else ended_worker_problem(job, observed)
        recheck_seconds: float | None = MESSAGE_SECONDS
        if found is None:
            found, recheck_seconds = await self.events.problem(job, observed, now)
        return found or ignored_problem(job.ignored), min(filter(None, (recheck_seconds, late_seconds)), default=None)
