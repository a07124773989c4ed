"""The whole story of one job, in the order of the data: observe, diff, apply, report."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from mpiop.api.parse import is_managed_by_us
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.apply import Applier, Owner, PredecessorError
from mpiop.controller.builders import BuildOptions
from mpiop.controller.desired import Desired, desired, remaining_seconds
from mpiop.controller.diff import Action, Create, Delete, Patch, diff
from mpiop.controller.gang import Gang
from mpiop.controller.observed import Lister, Listers, Observed, observe
from mpiop.controller.reading import InvalidJobError, Reader
from mpiop.controller.report import PROGRESS, Reporter
from mpiop.controller.rest import Rest
from mpiop.controller.ssh_secrets import SshSecrets, noted_uid
from mpiop.controller.stalled import (
    UNSCHEDULABLE,
    FailedWrite,
    ResourceExistsError,
    SecretLostError,
    find_problem,
    refusal,
    waits_in_vain,
)
from mpiop.controller.status import next_status, standing_problem
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, annotations_of, is_terminating, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES
from mpiop.kube.throttle import FLOW

REFUSED_RETRY_SECONDS: Final = 15.0
CLEAN_UP_SECONDS: Final = 10.0
"""How long a job that has ended keeps its pods at most while others get on and find room: what users wait for comes first."""
_GATE: Final = "gate"
_GATE_SECONDS: Final = 5.0
"""When a launcher's pod is told once more: the kubelet may miss a change of an annotation that comes while it starts the pod's container,
and shows it then only at its next look, 60 to 90 s later (seen, once in some thousand starts)."""


class _Waits(NamedTuple):
    """For how many seconds what may wait is put off; 0 is not at all."""

    clean_up: float
    progress: float
    gate: float

    def of(self, action: Action) -> float:
        """Return for how many seconds `action` is put off; 0 when it is due."""
        if _is_word_to_gate(action):
            return self.gate
        if isinstance(action, Patch) and action.is_deferrable:
            return self.progress
        return self.clean_up if isinstance(action, Delete) and action.resource is not JOBS else 0.0


@dataclass(frozen=True, slots=True)
class Syncer:
    """Brings one job closer to what it should be; may be called at any time, any number of times.

    Attributes:
        mpijobs: Store of the jobs.
        listers: Stores of their children.
        gang: What is known of gang scheduling; off by default.
        secrets: Knows and makes their Secrets.
        rest: Is told of each look at a job.
        reader: Understands jobs.
    """

    mpijobs: Lister
    listers: Listers
    applier: Applier
    reporter: Reporter
    secrets: SshSecrets
    options: BuildOptions
    gang: Gang = field(default_factory=Gang)
    rest: Rest = field(default_factory=Rest)
    reader: Reader = field(default_factory=Reader)

    async def sync(self, key: Key) -> float | None:
        """Sync the job of that key and return the seconds after which to look again; None leaves it to the next event.

        Raises:
            ExceptionGroup: Writes failed that may succeed when tried again soon.
            KubeError: The status could not be stored, or the namespace is being deleted.
        """
        FLOW.set(key)
        raw = self.mpijobs.get(key)
        if raw is None or is_terminating(raw) or not is_managed_by_us(raw):
            self._forget(key)
            return None
        if wait := self.applier.consistency.wait_seconds(key, uid_of(raw)):
            self.rest.miss(key)
            return wait
        try:
            job = self.reader.read(key, raw)
        except InvalidJobError as error:
            await self.reporter.refuse(raw, str(error))
            return None
        return await self._sync(job)

    async def _sync(self, job: MPIJob) -> float | None:
        observed = observe(job, self.listers)
        awaited = job.worker_replicas - len(observed.ready_workers)
        self.rest.begin(job.key, job.worker_replicas, awaited, has_ended=job.status.is_finished)
        if observed.has_lost_launcher(job):
            observed = replace(observed, launcher=await self._live_launcher(job))
        now = self.reporter.now()
        time_left = remaining_seconds(job, now)
        if time_left == 0 and annotations_of(job.raw).get(names.ANNOTATION_TTL_DELETES_JOB) == "true":
            await self.applier.perform(Owner(job.key, job.uid), Delete(MPIJOBS, job.raw))
            return None
        pace = self.reporter.pace
        gate_wait = pace.remaining_seconds(job.key, _GATE, _GATE_SECONDS) if observed.is_late_at_gate(job) else None
        wanted = desired(job, observed, is_expired=time_left == 0, is_gate_overdue=gate_wait == 0)
        waits = _Waits(self._clean_up_wait(job, now), pace.remaining_seconds(job.key, PROGRESS), pace.settling_seconds(job.key))
        failed, put_off = await self._apply(job, observed, wanted, waits, now)
        problem = find_problem(observed, failed) or (standing_problem(job.status) if failed else waits_in_vain(job, observed))
        status = next_status(job, observed, problem, now)
        has_no_room = problem is not None and problem.reason == UNSCHEDULABLE and not status.is_finished
        pace.needs_room(job.key, is_needed=has_no_room)
        counts_wait = await self.reporter.report(job, status, waits.progress)
        self.reporter.show(job, observed)
        if passing := [write.error for write in failed if refusal(write) is None]:
            raise ExceptionGroup(f"sync of {job.key}", passing)
        doubt_wait = self.secrets.wait_seconds(job, observed, now)
        again = (*put_off, counts_wait, doubt_wait, gate_wait or None, time_left or None, REFUSED_RETRY_SECONDS if failed else None)
        return min((wait for wait in again if wait is not None), default=None)

    async def _apply(
        self, job: MPIJob, observed: Observed, wanted: Desired | None, waits: _Waits, now: datetime
    ) -> tuple[Sequence[FailedWrite], Sequence[float]]:
        """Close the gap; return the writes that failed, and after how many seconds those that were put off may go out."""
        if wanted is None:
            return (), ()
        owner, failed, secret_uid, put_off = Owner(job.key, job.uid), list[FailedWrite](), noted_uid(observed), list[float]()
        pace = self.reporter.pace
        try:
            if wanted.supports is not None:
                ask = self.secrets.uid(job, observed, now) if wanted.supports else self.secrets.uid_to_delete(job, observed)
                secret_uid = await ask
        except (KubeError, ResourceExistsError, PredecessorError, SecretLostError) as error:
            failed.append(FailedWrite(SECRETS.kind, error))
        if wanted.gang and (missing := self.gang.missing):
            failed.append(FailedWrite(missing.kind, missing))
        stages = (*self.gang.stages(job, wanted, observed), *diff(job, wanted, observed, secret_uid=secret_uid, options=self.options))
        for stage in stages:
            possible = [action for action in stage if not any(_needs(action, write) for write in failed)]
            due = [action for action in possible if not waits.of(action)]
            put_off += filter(None, map(waits.of, possible))
            if any(isinstance(action, Create) for action in due):
                pace.stirs(job.key)
            failed += await self.applier.apply(owner, due)
            if any(action.resource is CONFIG_MAPS for action in due):
                pace.wrote(job.key, PROGRESS)
            if any(map(_is_word_to_gate, due)):
                pace.wrote(job.key, _GATE)
        pace.settles(job.key, has_names=wanted.gate_open and all(write.kind != SERVICES.kind for write in failed))
        return failed, put_off

    async def _live_launcher(self, job: MPIJob) -> Object | None:
        """Return the launcher Job that the cache does not show: neither an old cache nor the end of the namespace may make a job fail."""
        try:
            return await self.applier.find_ours(Owner(job.key, job.uid), JOBS, Key(job.namespace, names.launcher_name(job)))
        except ResourceExistsError:
            return None
        except StatusError as error:
            if not error.is_not_found:
                raise
        await self.applier.check_namespace(job.namespace)
        return None

    def _clean_up_wait(self, job: MPIJob, now: datetime) -> float:
        """Return for how many seconds what a finished job leaves behind stays, while others get on; a launcher that runs on never does."""
        ended = job.status.completion_time
        if ended is None or not job.status.is_finished:
            return 0.0
        return max(0.0, min(self.reporter.pace.bustle_seconds(job.key), CLEAN_UP_SECONDS - (now - ended).total_seconds()))

    def _forget(self, key: Key) -> None:
        self.applier.consistency.forget(key)
        self.reporter.forget(key)
        self.rest.forget(key)
        self.reader.forget(key)


def _is_word_to_gate(action: Action) -> bool:
    return isinstance(action, Patch) and action.resource is PODS


def _needs(action: Action, failed: FailedWrite) -> bool:
    """Tell whether `action` is in vain after what `failed` before it: what is made needs all of it, what is suspended or deleted none."""
    if _is_word_to_gate(action):
        return failed.kind == SERVICES.kind
    return isinstance(action, Create) or (isinstance(action, Delete) and action.is_last)
