"""One sync of a job: observe, decide, write, report.

A decision (a restart, or the end of the job) is stored in the status and carried out by the next sync, which sees it stored. So each step
follows from stored objects, and a new leader can continue at any point.
"""

from contextlib import nullcontext
from dataclasses import dataclass, field

from mpiop.api.types import MPIJob
from mpiop.controller.errors import InvalidJobError
from mpiop.controller.executor import Executor
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.observed import Lister
from mpiop.controller.observe.stored_specs import stored_spec
from mpiop.controller.observer import Observer
from mpiop.controller.plan.clean_up import ttl_seconds_left
from mpiop.controller.problems import Problems
from mpiop.controller.restart.decision import decide
from mpiop.controller.restart.policy import seconds_to_expiry
from mpiop.controller.status.reconciling import seconds_to_stalled
from mpiop.controller.status.restarts import decided_status
from mpiop.controller.status.stalled import unreadable_problem
from mpiop.controller.status.status import Findings, next_status, unobserved_status
from mpiop.controller.write.launcher_logs import LauncherLogs
from mpiop.controller.write.report import Reporter
from mpiop.kube.objects import Key, is_terminating, uid_of
from mpiop.workqueue import Turns, computing


@dataclass(frozen=True, slots=True)
class Syncer:
    """Brings a job closer to its desired state; may be called at any time and repeatedly.

    Attributes:
        mpijobs: Cache of the jobs.
        memory: What all parts remember about jobs.
        logs: Reads the log of a launcher that failed.
        lost_worker_timeout_seconds: How long a launcher may hang after it has lost a worker; 0 is for ever.
        turns: Of the jobs with a large spec, which take much memory and time.
    """

    mpijobs: Lister
    memory: JobMemory
    observer: Observer
    executor: Executor
    problems: Problems
    logs: LauncherLogs
    reporter: Reporter
    lost_worker_timeout_seconds: float = 0.0
    turns: Turns = field(default_factory=Turns)

    async def sync(self, key: Key) -> float | None:
        """Sync a job and return the seconds until the next sync; None waits for the next event.

        Raises:
            NotReady: The caches do not show our last writes yet.
            ExceptionGroup: Writes failed.
            KubeError: The status could not be stored, or the namespace is being deleted.
            DampedWriteError: The status is not stored yet, because somebody undoes it each time.
        """
        if key in self.mpijobs.unreadable:
            self.reporter.warn(self.mpijobs.unreadable[key])
            return None
        raw = self.mpijobs.get(key)
        if raw is None or is_terminating(raw) or not stored_spec(raw).is_ours:
            self.memory.forget(key)
            self.reporter.hide(key)
            return None
        self.observer.check_caches(key, uid_of(raw))
        with self.turns.take(key.namespace) if stored_spec(raw).is_large else nullcontext():
            try:
                job = await self.observer.read(key, raw)
            except InvalidJobError as error:
                await self.reporter.refuse(raw, str(error))
                return None
            if unreadable := self.observer.unreadable(key):
                await self.reporter.report(job, unobserved_status(job.status, unreadable_problem(unreadable), self.reporter.now()))
                return None
            return await self._sync(job)

    async def _sync(self, job: MPIJob) -> float | None:
        compute = computing(is_large=job.is_large)
        attempt = await self.observer.observe(job)
        now = self.reporter.now()
        ttl_seconds = ttl_seconds_left(job, now)
        if ttl_seconds == 0:
            if job.ttl_deletes_job:
                await self.executor.delete(job)
                return None
            attempt = await self.observer.with_unlabelled(attempt)
        decision, decision_seconds = await compute(decide, attempt, now, self.lost_worker_timeout_seconds)
        if decision is not None:
            # Stored before anything is done about it, and done by the sync that sees it stored.
            await self.reporter.report(job, await compute(decided_status, attempt, decision, now))
            return 0.0
        outcome = await self.executor.carry_out(attempt, now, is_expired=ttl_seconds == 0)
        problem, recheck_seconds = await self.problems.find(attempt, outcome.failed, now)
        words = await self.logs.last_words(job.key, attempt.failures)
        findings = Findings(outcome.has_created_launcher, outcome.warnings, words)
        status = await compute(next_status, attempt, problem, now, findings)
        await self.reporter.report(job, status)
        self.reporter.show(job.key, attempt.observed)
        outcome.raise_failures(job.key)
        again = (
            ttl_seconds,
            decision_seconds,
            outcome.next_seconds,
            recheck_seconds,
            self.executor.wait_seconds(job.key),
            seconds_to_expiry(job.restart, status, now),
            seconds_to_stalled(status, now),
        )
        # 0 is now: what was due, this sync has done.
        return min((seconds for seconds in again if seconds), default=None)
