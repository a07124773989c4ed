"""Reads the input of a sync: from the caches, and live where a stale cache would do harm.

No sync starts before the caches show our own last writes. Read live are a spec that is too large to be kept, a launcher Job that the cache
does not show or has without its template, and the version of an MPIJob before its workers are stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mpiop.api.types import MPIJob
from mpiop.controller.batches import Batches
from mpiop.controller.errors import ResourceExistsError
from mpiop.controller.observe.consistency import ESCAPE_SECONDS
from mpiop.controller.observe.job_reader import Reader
from mpiop.controller.observe.observed import Listers, observe
from mpiop.controller.observe.projections import PROJECTIONS
from mpiop.controller.observe.stored_specs import json_of, stored_spec
from mpiop.controller.restart.attempt import LauncherAttempt, launcher_attempt
from mpiop.controller.write.apply import Applier, owner_of
from mpiop.controller.write.go_operator_children import with_unlabelled
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, Unreadable, uid_of
from mpiop.kube.resources import JOBS, MPIJOBS
from mpiop.workqueue import NotReady, computing


@dataclass(frozen=True, slots=True)
class Observer:
    """Reads jobs and their children.

    Attributes:
        listers: Caches of the children.
        applier: Reads live.
        batches: Gets the number of workers that each sync waits for.
        reader: Parses jobs.
    """

    listers: Listers
    applier: Applier
    batches: Batches
    reader: Reader

    def check_caches(self, key: Key, uid: str) -> None:
        """Return if the caches show our last writes of the job; raise NotReady if they do not."""
        if wait_seconds := self.applier.consistency.wait_seconds(key, uid):
            self.batches.postpone(key)
            raise NotReady(wait_seconds)

    async def read(self, key: Key, raw: Object) -> MPIJob:
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
            live = await self.applier.client.of_flow(key).get(MPIJOBS, key, projection=PROJECTIONS[MPIJOBS])
            self._check_same(key, raw, live)
            spec = bytes(json_of(live))
        job: MPIJob = await computing(is_large=stored_spec(raw).is_large)(self.reader.read, key, raw, spec)
        return job

    def unreadable(self, key: Key) -> Sequence[Unreadable]:
        """Return the children of a job that cannot be decoded."""
        return self.listers.unreadable(key)

    async def observe(self, job: MPIJob) -> LauncherAttempt:
        """Return the current attempt of the launcher, with the job and its children.

        Raises:
            NotReady: The cached job is not current, and workers would be stopped.
            KubeError: A request failed.
        """
        observed = observe(job, self.listers)
        attempt = launcher_attempt(job, observed)
        are_leaving = job.is_suspended or job.status.is_finished
        awaited = len(observed.active_workers) if are_leaving else job.worker_replicas - len(observed.ready_workers)
        pending = len(set(job.worker_names) - observed.running_workers - (observed.workers.keys() - observed.active_workers))
        self.batches.begin(job.key, awaited, pending=pending, desired=job.worker_replicas, are_leaving=are_leaving)
        if attempt.has_lost_launcher or (observed.needs_template and not job.is_suspended):
            attempt = replace(attempt, observed=replace(observed, launcher=await self._live_launcher(job)))
        if job.is_suspended:
            is_stopping = attempt.observed.is_active
        else:
            is_stopping = not job.status.is_finished and observed.has_surplus_workers(job.worker_names)
        if is_stopping:  # after a restart the cache may be older than a resume or a scale-up
            self._check_same(job.key, job.raw, await self.applier.client.of_flow(job.key).get(MPIJOBS, job.key, metadata_only=True))
        return attempt

    async def with_unlabelled(self, attempt: LauncherAttempt) -> LauncherAttempt:
        """Return `attempt` with the children that our watches do not show, before all is deleted.

        Raises:
            KubeError: A request failed.
        """
        return replace(attempt, observed=await with_unlabelled(attempt.job, attempt.observed, self.applier, self.listers.gang))

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
            return await self.applier.find_ours(owner_of(job), JOBS, Key(job.namespace, job.launcher_name))
        except ResourceExistsError:
            return None
        except StatusError as error:
            if not error.is_not_found:
                raise
        await self.applier.check_namespace(owner_of(job))
        return observe(job, self.listers).launcher


def _version_of_spec(mpijob: Object) -> tuple[str, int]:
    return uid_of(mpijob), mpijob["metadata"].get("generation", 0)
