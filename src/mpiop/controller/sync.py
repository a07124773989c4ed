"""One sync of a job: observe, plan, write, report."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime

from mpiop.api.types import MPIJob
from mpiop.clock import Clock
from mpiop.controller import names
from mpiop.controller.batches import Batches
from mpiop.controller.causes import Problem
from mpiop.controller.gang.gang import Gang
from mpiop.controller.objects import BuildOptions
from mpiop.controller.observe.consistency import ESCAPE_SECONDS
from mpiop.controller.observe.job_reader import InvalidJobError, Reader
from mpiop.controller.observe.observed import Lister, Listers, Observed, observe
from mpiop.controller.observe.projections import PROJECTIONS
from mpiop.controller.observe.specs import json_of, stored_spec
from mpiop.controller.plan.addresses import seconds_to_repeat
from mpiop.controller.plan.clean_up import state_after_end, ttl_seconds_left
from mpiop.controller.plan.desired import Desired, desired_state
from mpiop.controller.plan.diff import Delete, Stage, Step, addresses_stages, diff, is_blocked
from mpiop.controller.restart.attempt import LauncherAttempt, current_attempt
from mpiop.controller.restart.decision import decide, seconds_to_decision
from mpiop.controller.restart.plan import seconds_to_replacement
from mpiop.controller.restart.policy import seconds_to_expiry
from mpiop.controller.status.outcomes import MESSAGE_SECONDS
from mpiop.controller.status.reconciling import current_problem, seconds_to_stalled
from mpiop.controller.status.refusals import (
    DampedWriteError,
    FailedWrite,
    PersistentFailures,
    PredecessorError,
    ResourceExistsError,
    SecretLostError,
)
from mpiop.controller.status.restarts import decided_status
from mpiop.controller.status.root_cause import new_failure
from mpiop.controller.status.stalled import ended_worker_problem, find_problem, ignored_problem, unreadable_problem
from mpiop.controller.status.status import Findings, next_status, unobserved_status
from mpiop.controller.status.template_warnings import ssh_warnings
from mpiop.controller.status.terminating import seconds_to_late
from mpiop.controller.status.verdict import NO_WORDS
from mpiop.controller.write.apply import Applier, Owner
from mpiop.controller.write.go_operator_children import with_unlabelled
from mpiop.controller.write.job_log import log_clean_up
from mpiop.controller.write.launcher_logs import LauncherLogs
from mpiop.controller.write.report import Reporter
from mpiop.controller.write.ssh_secrets import SshSecrets, noted_uid
from mpiop.controller.write.warning_events import WarningEvents
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, annotations_of, is_terminating, uid_of
from mpiop.kube.resources import JOBS, MPIJOBS, SECRETS
from mpiop.kube.throttle import FLOW
from mpiop.workqueue import NotReady, Turns, computing


@dataclass(frozen=True, slots=True)
class Syncer:
    """Brings a job closer to its desired state; may be called at any time and repeatedly.

    Attributes:
        mpijobs: Cache of the jobs.
        listers: Caches of their children.
        gang: Gang scheduling; off by default.
        secrets: Makes and rechecks their Secrets.
        batches: Gets the number of workers that each sync waits for.
        reader: Parses jobs.
        persistent: Tracks failures that persist.
        turns: Of the jobs with a large spec, which take much memory and time.
        events: Asks why a Pod waits if nothing else says so.
        logs: Reads the log of a launcher that failed.
        lost_worker_timeout_seconds: How long a launcher may hang after it has lost a worker; 0 is for ever.
    """

    mpijobs: Lister
    listers: Listers
    applier: Applier
    reporter: Reporter
    secrets: SshSecrets
    events: WarningEvents
    logs: LauncherLogs
    options: BuildOptions
    clock: Clock
    lost_worker_timeout_seconds: float = 0.0
    gang: Gang = field(default_factory=Gang)
    batches: Batches = field(default_factory=Batches)
    reader: Reader = field(default_factory=Reader)
    persistent: PersistentFailures = field(default_factory=PersistentFailures)
    turns: Turns = field(default_factory=Turns)

    async def sync(self, key: Key) -> float | None:
        """Sync a job and return the seconds until the next sync; None waits for the next event.

        Raises:
            NotReady: The caches do not show our last writes yet.
            ExceptionGroup: Writes failed.
            KubeError: The status could not be stored, or the namespace is being deleted.
            DampedWriteError: The status is not stored yet, because somebody undoes it each time.
        """
        FLOW.set(key)
        if key in self.mpijobs.unreadable:
            self.reporter.warn(self.mpijobs.unreadable[key])
            return None
        raw = self.mpijobs.get(key)
        if raw is None or is_terminating(raw) or not stored_spec(raw).is_ours:
            self._forget(key)
            return None
        if wait_seconds := self.applier.consistency.wait_seconds(key, uid_of(raw)):
            self.batches.postpone(key)
            raise NotReady(wait_seconds)
        with self.turns.take(key.namespace) if stored_spec(raw).is_large else nullcontext():
            try:
                job = await self._read(key, raw)
            except InvalidJobError as error:
                await self.reporter.refuse(raw, str(error))
                return None
            if unreadable := self.listers.unreadable(key):
                await self.reporter.report(job, unobserved_status(job.status, unreadable_problem(unreadable), self.reporter.now()))
                return None
            return await self._sync(job)

    async def _read(self, key: Key, raw: Object) -> MPIJob:
        """Return the job of `raw`, whose spec is read live if it is not kept.

        Raises:
            InvalidJobError: It cannot be run as written.
            NotReady: The job has been edited since.
            KubeError: The request failed.
        """
        if (known := self.reader.known(key, raw)) is not None:
            return known
        spec = stored_spec(raw).text
        if spec is None:
            live = await self.applier.client.get(MPIJOBS, key, projection=PROJECTIONS[MPIJOBS])
            self._check_same(key, raw, live)
            spec = bytes(json_of(live))
        job: MPIJob = await computing(is_large=stored_spec(raw).is_large)(self.reader.read, key, raw, spec)
        return job

    async def _sync(self, job: MPIJob) -> float | None:
        observed, compute = observe(job, self.listers), computing(is_large=job.is_large)
        self._begin_batch(job, observed)
        if observed.has_lost_launcher(job) or (observed.needs_template and not job.is_suspended):
            observed = replace(observed, launcher=await self._live_launcher(job))
        is_stopping = observed.is_active if job.is_suspended else observed.has_surplus_workers(job)
        if is_stopping:
            await self._check_current(job)
        now = self.reporter.now()
        time_left = ttl_seconds_left(job, now)
        if time_left == 0 and annotations_of(job.raw).get(names.ANNOTATION_TTL_DELETES_JOB) == "true":
            await self.applier.perform(Owner(job.key, job.uid), Delete(MPIJOBS, job.raw))
            return None
        if time_left == 0:
            observed = await with_unlabelled(job, observed, self.applier, self.listers.gang)
        attempt = current_attempt(job, observed)
        if (decision := await compute(decide, attempt, now, self.lost_worker_timeout_seconds)) is not None:
            # Stored before anything is done about it, and done by the sync that sees it stored.
            await self.reporter.report(job, await compute(decided_status, attempt, decision, now))
            return 0.0
        desired = await compute(_desired, attempt, now, is_expired=time_left == 0)
        owner = Owner(job.key, job.uid)
        failed = await self._apply(owner, job, observed, desired, now)
        problem, recheck_seconds = await self._find_problem(attempt, failed, now)
        has_created_launcher = observed.launcher is None and desired is not None and bool(desired.launcher) and not failed
        words = await self.logs.last_words(job, observed) if new_failure(job, observed) else NO_WORDS
        findings = Findings(has_created_launcher, [*ssh_warnings(job, self.options), *owner.warnings], words, attempt.lost_worker(now))
        new = await compute(next_status, job, observed, problem, now, findings)
        await self.reporter.report(job, new)
        self.reporter.show(job, observed)
        if failed:
            raise ExceptionGroup(f"sync of {job.key}", [write.error for write in failed])
        again = (
            self.secrets.wait_seconds(job, observed, now),
            time_left,
            recheck_seconds,
            seconds_to_repeat(job, observed, now),
            seconds_to_replacement(job, observed, now),
            seconds_to_decision(attempt, new, now, self.lost_worker_timeout_seconds),
            seconds_to_late(job, observed, now),
            seconds_to_expiry(job, new, now),
            seconds_to_stalled(new, now),
            self.applier.contention.wait_seconds(job.key),
        )
        # 0 is now: what was due, this sync has done.
        return min((seconds for seconds in again if seconds), default=None)

    async def _find_problem(
        self, attempt: LauncherAttempt, failed: Sequence[FailedWrite], now: datetime
    ) -> tuple[Problem | None, float | None]:
        """Return the problem of the job, and the seconds after which it may be another although no watch says so."""
        job, observed = attempt.job, attempt.observed
        if job.status.is_finished:
            return None, None
        persistent = self.persistent.problem(job.key, failed, self.clock.monotonic())
        found = find_problem(attempt, failed, now) or persistent or self.applier.contention.problem(job.key, job.status)
        if found is None:
            found = current_problem(job.status) if failed else ended_worker_problem(job, observed)
        if found is not None:
            return found, MESSAGE_SECONDS
        found, recheck_seconds = await self.events.problem(job, observed, now)
        return found or ignored_problem(job), recheck_seconds

    def _begin_batch(self, job: MPIJob, observed: Observed) -> None:
        are_leaving = job.is_suspended or job.status.is_finished
        awaited = len(observed.active_workers) if are_leaving else job.worker_replicas - len(observed.ready_workers)
        self.batches.begin(job.key, awaited, desired=job.worker_replicas, are_leaving=are_leaving)

    async def _apply(self, owner: Owner, job: MPIJob, observed: Observed, desired: Desired | None, now: datetime) -> Sequence[FailedWrite]:
        """Carry out the writes, step by step; return those that failed."""
        if desired is None:
            return ()
        secret_uid = noted_uid(observed)
        failed: dict[Step, list[FailedWrite]] = {}
        try:
            if desired.dependencies is not None:
                ask = self.secrets.uid(job, observed, now) if desired.dependencies else self.secrets.uid_to_delete(job, observed)
                secret_uid = await ask
        except (KubeError, ResourceExistsError, PredecessorError, SecretLostError, DampedWriteError) as error:
            failed[Step.DEPENDENCIES] = [FailedWrite(SECRETS.kind, error)]
        if desired.gang and (missing := self.gang.missing):
            failed[Step.GANG] = [FailedWrite(missing.kind, missing)]
        deleted = 0
        for step, actions in await computing(is_large=job.is_large)(self._plan, job, desired, observed, secret_uid, now):
            due = [action for action in actions if not is_blocked(step, action, failed)]
            if refused := await self.applier.apply(owner, due):
                failed.setdefault(step, []).extend(refused)
            deleted += sum(isinstance(action, Delete) for action in due)
        if deleted and job.status.is_finished and not failed:
            log_clean_up(job.raw, deleted)
        return [write for writes in failed.values() for write in writes]

    def _plan(self, job: MPIJob, desired: Desired, observed: Observed, secret_uid: str, now: datetime) -> Sequence[Stage]:
        started = self.clock.monotonic()
        stages = [
            *self.gang.stages(job, desired, observed),
            *diff(job, desired, observed, secret_uid=secret_uid, options=self.options),
            *addresses_stages(job, desired, observed, now),
        ]
        self.batches.planned(job.key, self.clock.monotonic() - started)
        return sorted(stages, key=lambda stage: stage.step)

    async def _check_current(self, job: MPIJob) -> None:
        """Return if the cached job is current.

        After a restart the cache may be older than a resume or a scale-up, and workers would be deleted by mistake.

        Raises:
            NotReady: It is not.
            KubeError: The request failed.
        """
        self._check_same(job.key, job.raw, await self.applier.client.get(MPIJOBS, job.key, metadata_only=True))

    def _check_same(self, key: Key, cached: Object, live: Object) -> None:
        """Return if `live` has the spec that is cached; raise NotReady if it has not."""
        if _version_of_spec(live) != _version_of_spec(cached):
            self.batches.postpone(key)
            raise NotReady(ESCAPE_SECONDS)

    async def _live_launcher(self, job: MPIJob) -> Object | None:
        """Return the launcher Job that the cache does not show; neither a stale cache nor a terminating namespace may make a job fail.

        If it does not exist, the cache is read again: it may know by now how the launcher ended.
        """
        try:
            return await self.applier.find_ours(Owner(job.key, job.uid), JOBS, Key(job.namespace, names.launcher_name(job)))
        except ResourceExistsError:
            return None
        except StatusError as error:
            if not error.is_not_found:
                raise
        await self.applier.check_namespace(job.namespace)
        return observe(job, self.listers).launcher

    def _forget(self, key: Key) -> None:
        self.applier.consistency.forget(key)
        self.applier.contention.forget(key)
        self.reporter.forget(key)
        self.batches.forget(key)
        self.secrets.forget(key)
        self.reader.forget(key)
        self.persistent.forget(key)
        self.events.forget(key)


def _desired(attempt: LauncherAttempt, now: datetime, *, is_expired: bool) -> Desired | None:
    if attempt.job.status.is_finished:
        return state_after_end(attempt.job, attempt.observed, is_expired=is_expired)
    return desired_state(attempt, now)


def _version_of_spec(mpijob: Object) -> tuple[str, int]:
    return uid_of(mpijob), mpijob["metadata"].get("generation", 0)
