"""Plans the writes of a sync and carries them out, step by step.

A failed write does not stop the others. A start needs all earlier steps; deleting workers needs only the suspension (`diff.is_blocked`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mpiop.api.types import MPIJob
from mpiop.controller.errors import WriteError
from mpiop.controller.gang.gang import Gang
from mpiop.controller.objects import BuildOptions
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.addresses import addresses_to_publish, annotations_to_publish
from mpiop.controller.plan.clean_up import state_after_end
from mpiop.controller.plan.desired import Desired, Presence, desired_state
from mpiop.controller.plan.diff import Delete, Stage, Step, addresses_stages, diff, is_blocked
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.controller.status.refusals import FailedWrite
from mpiop.controller.status.template_warnings import template_warnings
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
        next_seconds: Until another write is due although no object changes; None if there is none.
    """

    failed: Sequence[FailedWrite] = ()
    warnings: Sequence[str] = ()
    has_created_launcher: bool = False
    next_seconds: float | None = None

    def raise_failures(self, job: Key) -> None:
        """Raise an ExceptionGroup if a write failed."""
        if self.failed:
            raise ExceptionGroup(f"sync of {job}", [write.error for write in self.failed])


@dataclass(frozen=True, slots=True)
class Executor:
    """Brings the children of jobs closer to their desired state.

    Attributes:
        secrets: Makes and rechecks the Secrets of the jobs.
        gang: Gang scheduling; off by default.
    """

    applier: Applier
    secrets: SshSecrets
    options: BuildOptions
    gang: Gang = field(default_factory=Gang)

    async def delete(self, job: MPIJob) -> None:
        """Delete the job itself; the garbage collector deletes its children."""
        await self.applier.perform(owner_of(job), Delete(MPIJOBS, job.raw))

    async def carry_out(self, attempt: LauncherAttempt, now: datetime, *, is_expired: bool) -> Outcome:
        """Bring the children closer to their desired state, step by step; `is_expired` means that the TTL of the job has passed."""
        job, observed = attempt.job, attempt.observed
        compute = computing(is_large=job.is_large)
        desired: Desired | None
        if job.status.is_finished:
            desired = state_after_end(job.run_policy.clean_pod_policy, observed.launcher, is_expired=is_expired)
        else:
            desired = await compute(desired_state, attempt, now)
        if desired is None:
            return Outcome(warnings=template_warnings(job, self.options, ()))
        secret_uid, refused = await self._secret_uid(job, desired, observed, now)
        needs_secret = not (job.is_suspended or job.status.is_finished)
        recheck_seconds = self.secrets.wait_seconds(job.key, observed, now) if needs_secret else None
        failed = {Step.DEPENDENCIES: [refused]} if refused is not None else dict[Step, list[FailedWrite]]()
        if desired.gang is Presence.ENSURE and (missing := self.gang.missing(job.namespace)):
            failed[Step.GANG] = [FailedWrite(missing.kind, missing)]
        deleted, warned = 0, dict[str, None]()
        owner = owner_of(job)
        stages, repeat_seconds = await compute(self._plan, job, desired, observed, secret_uid, now)
        for step, actions in stages:
            due = [action for action in actions if not is_blocked(step, action, failed)]
            written = await self.applier.apply(owner, due)
            warned |= dict.fromkeys(written.warnings)
            if written.failed:
                failed.setdefault(step, []).extend(written.failed)
            deleted += sum(isinstance(action, Delete) for action in due)
        if deleted and job.status.is_finished and not failed:
            log_clean_up(job.raw, deleted)
        has_created = observed.launcher is None and desired.launcher is Presence.ENSURE and not failed
        return Outcome(
            failed=[write for writes in failed.values() for write in writes],
            warnings=template_warnings(job, self.options, warned),
            has_created_launcher=has_created,
            next_seconds=min(filter(None, (recheck_seconds, desired.next_seconds, repeat_seconds)), default=None),
        )

    def wait_seconds(self, job: Key) -> float | None:
        """Return the seconds until a write that was delayed is due."""
        return self.applier.contention.wait_seconds(job)

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

    def _plan(
        self, job: MPIJob, desired: Desired, observed: Observed, secret_uid: str, now: datetime
    ) -> tuple[Sequence[Stage], float | None]:
        """Return the writes by step, and the seconds until the addresses are published again."""
        text = addresses_to_publish(job, observed)
        annotations, repeat_seconds = annotations_to_publish(text, observed, desired.beginning, now)
        stages = [
            *self.gang.stages(job, desired, observed),
            *diff(job, desired, observed, secret_uid=secret_uid, options=self.options),
            *addresses_stages(observed.launcher_pod, annotations),
        ]
        return sorted(stages, key=lambda stage: stage.step), repeat_seconds
