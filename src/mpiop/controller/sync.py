"""The whole story of one job, in the order of the data: observe, diff, apply, report."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mpiop.api.parse import ParseError, is_managed_by_us, parse_mpijob
from mpiop.api.types import MPIJob
from mpiop.api.validation import validate
from mpiop.controller import names
from mpiop.controller.apply import Applier, Owner, PredecessorError
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.ssh_secret import KeyPair, build_ssh_secret
from mpiop.controller.desired import Desired, desired
from mpiop.controller.diff import ANNOTATION_SECRET_UID, Action, Create, Patch, diff
from mpiop.controller.observed import Lister, Listers, Observed, observe
from mpiop.controller.report import Reporter
from mpiop.controller.stalled import FailedWrite, ResourceExistsError, find_problem, refusal
from mpiop.controller.status import next_status, standing_problem
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, annotations_of, is_terminating, key_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, SECRETS

REFUSED_RETRY_SECONDS: Final = 15.0
_HOSTS: Final = "hosts"


@dataclass(frozen=True, slots=True)
class Syncer:
    """Brings one job closer to what it should be; may be called at any time, any number of times.

    Attributes:
        mpijobs: Store of the jobs.
        listers: Stores of their children.
        new_key_pair: Makes an SSH key pair; asked only when the Secret is missing.
    """

    mpijobs: Lister
    listers: Listers
    applier: Applier
    reporter: Reporter
    new_key_pair: Callable[[], Awaitable[KeyPair]]
    options: BuildOptions

    async def sync(self, key: Key) -> float | None:
        """Sync the job of that key and return the seconds after which to look again; None leaves it to the next event.

        Raises:
            ExceptionGroup: Writes failed that may succeed when tried again soon.
            KubeError: The status could not be stored.
        """
        raw = self.mpijobs.get(key)
        if raw is None or is_terminating(raw) or not is_managed_by_us(raw):
            self._forget(key)
            return None
        if wait := self.applier.consistency.wait_seconds(key, uid_of(raw)):
            return wait
        try:
            job = parse_mpijob(raw)
            errors = validate(job)
        except ParseError as error:
            errors = error.errors
        else:
            if not errors:
                return await self._sync(job)
        await self.reporter.refuse(raw, f"Found validation errors: {'; '.join(errors)}")
        return None

    async def _sync(self, job: MPIJob) -> float | None:
        observed = observe(job, self.listers)
        if observed.has_lost_launcher(job):
            observed = replace(observed, launcher=await self._live_launcher(job))
        failed, hosts_wait = await self._apply(job, observed)
        problem = find_problem(observed, failed) or (standing_problem(job.status) if failed else None)
        status = next_status(job, observed, problem, self.reporter.now())
        counts_wait = await self.reporter.report(job, status)
        self.reporter.show(job, observed)
        if passing := [write.error for write in failed if refusal(write) is None]:
            raise ExceptionGroup(f"sync of {job.key}", passing)
        waits = (hosts_wait, counts_wait, REFUSED_RETRY_SECONDS if failed else None)
        return min((wait for wait in waits if wait is not None), default=None)

    async def _apply(self, job: MPIJob, observed: Observed) -> tuple[Sequence[FailedWrite], float | None]:
        """Close the gap; return the writes that failed, and after how many seconds one that was put off may go out."""
        wanted = desired(job, observed)
        if wanted is None:
            return (), None
        owner, failed, secret_uid, wait = Owner(job.key, job.uid), list[FailedWrite](), "", None
        try:
            secret_uid = await self._secret_uid(job, wanted, observed)
        except (KubeError, ResourceExistsError, PredecessorError) as error:
            failed.append(FailedWrite(SECRETS.kind, error))
        for stage in diff(job, wanted, observed, secret_uid=secret_uid, options=self.options):
            # What is made needs what should have been made before it; what is suspended or deleted does not.
            possible = [action for action in stage if not (failed and isinstance(action, Create))]
            due = [action for action in possible if not self._is_put_off(job, action)]
            if len(due) < len(possible):
                wait = self.reporter.pace.remaining_seconds(job.key, _HOSTS)
            failed += await self.applier.apply(owner, due)
            if any(action.resource is CONFIG_MAPS for action in due):
                self.reporter.pace.wrote(job.key, _HOSTS)
        return failed, wait

    async def _live_launcher(self, job: MPIJob) -> Object | None:
        """Return the launcher Job that the cache does not show: an old cache must not make a job fail."""
        try:
            return await self.applier.find_ours(Owner(job.key, job.uid), JOBS, Key(job.namespace, names.launcher_name(job)))
        except ResourceExistsError:
            return None
        except StatusError as error:
            if error.is_not_found:
                return None
            raise

    def _is_put_off(self, job: MPIJob, action: Action) -> bool:
        return isinstance(action, Patch) and action.is_deferrable and self.reporter.pace.remaining_seconds(job.key, _HOSTS) > 0

    async def _secret_uid(self, job: MPIJob, wanted: Desired, observed: Observed) -> str:
        """Return the UID of the SSH Secret, made now if the ConfigMap does not say that there is one."""
        if not wanted.supports:
            return ""
        if observed.config_map and (noted := annotations_of(observed.config_map).get(ANNOTATION_SECRET_UID)):
            return noted
        secret = build_ssh_secret(job, await self.new_key_pair())
        made = await self.applier.perform(Owner(job.key, job.uid), Create(SECRETS, key_of(secret), lambda: secret))
        return "" if made is None else uid_of(made)

    def _forget(self, key: Key) -> None:
        self.applier.consistency.forget(key)
        self.reporter.forget(key)
