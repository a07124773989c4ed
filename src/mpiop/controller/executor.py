"""Plans and carries out the writes that bring the children of a job closer to their desired state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mpiop.api.types import MPIJob
from mpiop.controller.batches import Batches
from mpiop.controller.errors import WriteError
from mpiop.controller.gang.gang import Gang
from mpiop.controller.objects import BuildOptions
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.clean_up import state_after_end, ttl_seconds_left
from mpiop.controller.plan.desired import Desired, Presence, desired_state
from mpiop.controller.plan.diff import Delete, Stage, Step, addresses_stages, diff, is_blocked
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.status.refusals import FailedWrite
from mpiop.controller.status.template_warnings import ssh_warnings
from mpiop.controller.write.apply import Applier, owner_of
from mpiop.controller.write.job_log import log_clean_up
from mpiop.controller.write.ssh_secrets import SshSecrets, noted_uid
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key
from mpiop.kube.resources import MPIJOBS, SECRETS
from mpiop.workqueue import computing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the writes of a sync.

    Attributes:
        failed: The writes that failed.
        warnings: What the API server warned of, and what is known to fail later.
        has_created_launcher: The launcher Job is new.
    """

    failed: Sequence[FailedWrite] = ()
    warnings: Sequence[str] = ()
    has_created_launcher: bool = False

    def raise_failures(self, job: MPIJob) -> None:
        """Raise an ExceptionGroup if a write failed."""
        if self.failed:
            raise ExceptionGroup(f"sync of {job.key}", [write.error for write in self.failed])


@dataclass(frozen=True, slots=True)
class Executor:
    """Brings the children of jobs closer to their desired state.

    Attributes:
        secrets: Makes and rechecks the Secrets of the jobs.
        batches: Gets the time that planning takes, on the clock of `monotonic`.
        gang: Gang scheduling; off by default.
    """

    applier: Applier
    secrets: SshSecrets
    options: BuildOptions
    batches: Batches
    monotonic: Callable[[], float]
    gang: Gang = field(default_factory=Gang)

    async def delete(self, job: MPIJob) -> None:
        """Delete the job itself; the garbage collector deletes its children."""
        await self.applier.perform(owner_of(job), Delete(MPIJOBS, job.raw))

    async def carry_out(self, attempt: LauncherAttempt, now: datetime) -> Outcome:
        """Bring the children closer to their desired state, step by step."""
        job, observed = attempt.job, attempt.observed
        compute = computing(is_large=job.is_large)
        desired = await compute(_desired, attempt, now)
        warnings = list(ssh_warnings(job, self.options))
        if desired is None:
            return Outcome(warnings=warnings)
        secret_uid, refused = await self._secret_uid(job, desired, observed, now)
        failed = {Step.DEPENDENCIES: [refused]} if refused is not None else dict[Step, list[FailedWrite]]()
        if desired.gang is Presence.ENSURE and (missing := self.gang.missing):
            failed[Step.GANG] = [FailedWrite(missing.kind, missing)]
        deleted, warned = 0, dict[str, None]()
        for step, actions in await compute(self._plan, job, desired, observed, secret_uid, now):
            due = [action for action in actions if not is_blocked(step, action, failed)]
            written = await self.applier.apply(owner_of(job), due)
            warned |= dict.fromkeys(written.warnings)
            if written.failed:
                failed.setdefault(step, []).extend(written.failed)
            deleted += sum(isinstance(action, Delete) for action in due)
        if deleted and job.status.is_finished and not failed:
            log_clean_up(job.raw, deleted)
        has_created = observed.launcher is None and desired.launcher is Presence.ENSURE and not failed
        return Outcome([write for writes in failed.values() for write in writes], [*warnings, *warned], has_created)

    def wait_seconds(self, job: MPIJob, observed: Observed, now: datetime) -> tuple[float | None, ...]:
        """Return the seconds until a Secret should be rechecked, and until a write that was delayed is due."""
        return self.secrets.wait_seconds(job, observed, now), self.applier.contention.wait_seconds(job.key)

    def forget(self, key: Key) -> None:
        """Forget a job that is gone."""
        self.applier.contention.forget(key)
        self.secrets.forget(key)

    async def _secret_uid(self, job: MPIJob, desired: Desired, observed: Observed, now: datetime) -> tuple[str, FailedWrite | None]:
        """Return the UID of the Secret, which is made if it should exist, and what prevented that."""
        try:
            match desired.dependencies:
                case Presence.ENSURE:
                    return await self.secrets.uid(job, observed, now), None
                case Presence.DELETE:
                    return await self.secrets.uid_to_delete(job, observed), None
                case Presence.KEEP:
                    return noted_uid(observed), None
        except (KubeError, WriteError) as error:
            return noted_uid(observed), FailedWrite(SECRETS.kind, error)

    def _plan(self, job: MPIJob, desired: Desired, observed: Observed, secret_uid: str, now: datetime) -> Sequence[Stage]:
        started = self.monotonic()
        stages = [
            *self.gang.stages(job, desired, observed),
            *diff(job, desired, observed, secret_uid=secret_uid, options=self.options),
            *addresses_stages(job, desired, observed, now),
        ]
        self.batches.planned(job.key, self.monotonic() - started)
        return sorted(stages, key=lambda stage: stage.step)


def _desired(attempt: LauncherAttempt, now: datetime) -> Desired | None:
    job = attempt.job
    if job.status.is_finished:
        return state_after_end(job, attempt.observed, is_expired=ttl_seconds_left(job, now) == 0)
    return desired_state(attempt, now)
