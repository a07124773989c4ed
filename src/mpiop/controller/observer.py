"""Reads what a sync decides by: from the caches, and live where a stale cache would do harm."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.batches import Batches
from mpiop.controller.errors import ResourceExistsError
from mpiop.controller.observe.consistency import ESCAPE_SECONDS
from mpiop.controller.observe.job_reader import Reader
from mpiop.controller.observe.observed import Listers, Observed, observe
from mpiop.controller.observe.projections import PROJECTIONS
from mpiop.controller.observe.specs import json_of, stored_spec
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
    batches: Batches = field(default_factory=Batches)
    reader: Reader = field(default_factory=Reader)

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
            live = await self.applier.client.get(MPIJOBS, key, projection=PROJECTIONS[MPIJOBS])
            self._check_same(key, raw, live)
            spec = bytes(json_of(live))
        job: MPIJob = await computing(is_large=stored_spec(raw).is_large)(self.reader.read, key, raw, spec)
        return job

    def unreadable(self, key: Key) -> Sequence[Unreadable]:
        """Return the children of a job that cannot be decoded."""
        return self.listers.unreadable(key)

    async def observe(self, job: MPIJob) -> Observed:
        """Return the children of a job.

        Raises:
            NotReady: The cached job is not current, and workers would be stopped.
            KubeError: A request failed.
        """
        observed = observe(job, self.listers)
        self._begin_batch(job, observed)
        if observed.has_lost_launcher(job) or (observed.needs_template and not job.is_suspended):
            observed = replace(observed, launcher=await self._live_launcher(job))
        is_stopping = observed.is_active if job.is_suspended else observed.has_surplus_workers(job)
        if is_stopping:  # after a restart the cache may be older than a resume or a scale-up
            self._check_same(job.key, job.raw, await self.applier.client.get(MPIJOBS, job.key, metadata_only=True))
        return observed

    async def with_unlabelled(self, job: MPIJob, observed: Observed) -> Observed:
        """Return `observed` with the children that our watches do not show, before all is deleted.

        Raises:
            KubeError: A request failed.
        """
        return await with_unlabelled(job, observed, self.applier, self.listers.gang)

    def forget(self, key: Key) -> None:
        """Forget a job that is gone."""
        self.applier.consistency.forget(key)
        self.batches.forget(key)
        self.reader.forget(key)

    def _begin_batch(self, job: MPIJob, observed: Observed) -> None:
        are_leaving = job.is_suspended or job.status.is_finished
        awaited = len(observed.active_workers) if are_leaving else job.worker_replicas - len(observed.ready_workers)
        self.batches.begin(job.key, awaited, desired=job.worker_replicas, are_leaving=are_leaving)

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
            return await self.applier.find_ours(owner_of(job), JOBS, Key(job.namespace, names.launcher_name(job)))
        except ResourceExistsError:
            return None
        except StatusError as error:
            if not error.is_not_found:
                raise
        await self.applier.check_namespace(job.namespace)
        return observe(job, self.listers).launcher


def _version_of_spec(mpijob: Object) -> tuple[str, int]:
    return uid_of(mpijob), mpijob["metadata"].get("generation", 0)
