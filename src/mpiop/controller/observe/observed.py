"""The children of a job as the caches show them. A child is ours by namespace, group, kind and UID of its controller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

import msgspec

from mpiop.api import constants as c
from mpiop.api.names import worker_index
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects.revision import launcher_revision, start_revision
from mpiop.controller.observe import pods
from mpiop.controller.observe.owners import may_belong_to
from mpiop.kube.objects import ControllerId, Key, Object, Unreadable, annotations_of, controller_id, is_terminating, uid_of
from mpiop.kube.resources import JOBS, Resource
from mpiop.kube.text import whole_number

BY_CONTROLLER = "controller"


class Lister(Protocol):
    """The part of a store that an observation needs."""

    def get(self, key: Key) -> Object | None:
        """Return the object of that key."""
        ...

    def by_index(self, index_name: str, value: str) -> Sequence[Object]:
        """Return the objects that the index files under `value`."""
        ...

    @property
    def unreadable(self) -> Mapping[Key, Unreadable]:
        """Return the objects that exist and cannot be decoded; the other methods know their last readable states only."""
        ...


class LastStates(Protocol):
    """Last states of deleted pods."""

    def of(self, controller: ControllerId) -> Mapping[str, Object]:
        """Return the last states of workers that the controller had, by name."""
        ...


@dataclass(frozen=True, slots=True)
class Listers:
    """The stores that `observe` reads; each files its objects under `BY_CONTROLLER` where that matters."""

    services: Lister
    config_maps: Lister
    jobs: Lister
    pods: Lister
    deleted_workers: LastStates | None = None
    gang: Mapping[Resource, Lister] = field(default_factory=dict[Resource, Lister])

    def unreadable(self, job: Key) -> Sequence[Unreadable]:
        """Return the children of the job that cannot be decoded."""
        listers = (self.services, self.config_maps, self.jobs, self.pods, *self.gang.values())
        return [child for lister in listers for child in lister.unreadable.values() if may_belong_to(job, child)]


@dataclass(frozen=True)
class Observed:
    """The children of one job as the stores show them; every object here is controlled by it (pods of the launcher: by its Job).

    Facts about thousands of workers that several rules need are computed once per sync.

    Attributes:
        workers: Worker pods by name, terminating ones included.
        gang: PodGroup and the like by resource; none without gang scheduling.
        launcher_pods: Pods of the launcher Job, oldest first.
        deleted_workers: Last states of workers that were deleted, as far as they are remembered; others of the same name may exist.
    """

    service: Object | None = None
    config_map: Object | None = None
    launcher: Object | None = None
    launcher_pods: tuple[Object, ...] = ()
    workers: Mapping[str, Object] = field(default_factory=dict[str, Object])
    deleted_workers: Mapping[str, Object] = field(default_factory=dict[str, Object])
    gang: Mapping[Resource, Object] = field(default_factory=dict[Resource, Object])

    @property
    def active_workers(self) -> frozenset[str]:
        """Return the names of the workers that have not ended, including surplus ones."""
        return frozenset(name for name, pod in self.workers.items() if not pods.is_finished(pod))

    @cached_property
    def running_workers(self) -> frozenset[str]:
        """Return the names of the running workers, including surplus ones."""
        return frozenset(name for name, pod in self.workers.items() if pods.is_running(pod))

    @cached_property
    def ready_workers(self) -> frozenset[str]:
        """Return the names of the Ready workers, including surplus ones."""
        return frozenset(name for name, pod in self.workers.items() if pods.is_ready(pod))

    @cached_property
    def pods_being_created(self) -> tuple[Object, ...]:
        """Return the pods that have a node but no started container."""
        return tuple(pod for pod in self.all_pods if pods.is_being_created(pod))

    def has_surplus_workers(self, job: MPIJob) -> bool:
        """Return whether an unfinished job has more workers than it wants: it was scaled down."""
        if job.status.is_finished:
            return False
        surplus = self.workers.keys() - set(names.worker_names(job))
        return any(not is_terminating(self.workers[name]) for name in surplus)

    def is_ready(self, job: MPIJob) -> bool:
        """Return whether every desired worker is Ready (true without workers)."""
        return self.ready_workers.issuperset(names.worker_names(job))

    def evicted_workers(self, job: MPIJob) -> int:
        """Return the number of evicted workers that end the job.

        0 while it is suspended, because then all workers are deleted anyway, and if it has a budget of restarts, for then it is restarted.
        """
        return 0 if job.is_suspended or job.restart.has_budget else self._evicted_workers

    @cached_property
    def _evicted_workers(self) -> int:
        return sum(pods.is_evicted(pod) for pod in self.workers.values() if not is_terminating(pod))

    def has_lost_launcher(self, job: MPIJob) -> bool:
        """Return whether the launcher Job is gone (deleted, or past its TTL) and nobody recorded how it ended.

        It must not be made again: that would run the program twice. A suspended one is harmless, because it runs anew on resume.
        """
        was_seen = c.LAUNCHER in job.status.replica_statuses and not job.status.is_true(c.CONDITION_SUSPENDED)
        return self.launcher is None and was_seen and not job.is_suspended and not job.status.is_finished

    @property
    def is_active(self) -> bool:
        """Return whether the job has anything that a suspension would stop."""
        return not self.is_launcher_suspended or any(not is_terminating(pod) for pod in self.workers.values())

    @property
    def is_launcher_suspended(self) -> bool:
        """Return whether the launcher Job is suspended, or does not exist."""
        return self.launcher is None or pods.is_suspended(self.launcher)

    @property
    def needs_template(self) -> bool:
        """Return whether the launcher Job may be resumed next, and its pod template was too large to be kept."""
        launcher = self.launcher
        can_resume = launcher is not None and not is_terminating(launcher) and pods.is_suspended(launcher)
        return launcher is not None and can_resume and _template(launcher).get("json", "") is None

    def has_outdated_launcher(self, job: MPIJob) -> bool:
        """Return whether the job is resuming and its launcher Job cannot be updated to the current spec, so that it must be replaced.

        Until it is gone the job counts as suspended; otherwise the launcher would seem lost (`has_lost_launcher`). A job without any
        condition was created suspended, and resumed before that was stored.
        """
        launcher = self.launcher
        is_resuming = job.is_resuming or not (job.is_suspended or job.status.conditions)
        if launcher is None or not is_resuming or pods.job_outcome(launcher) is not None or not pods.is_suspended(launcher):
            return False
        noted = annotations_of(launcher).get(names.ANNOTATION_LAUNCHER_REVISION)
        return is_terminating(launcher) or (noted is not None and noted != launcher_revision(job))

    def has_pending_edit(self, job: MPIJob) -> bool:
        """Return whether the launcher was started from another spec than the current one.

        Another hash is not enough: under another CRD the API server reads fewer fields of the same stored spec. Then the generation stays.
        Launchers of earlier versions do not note it; where the API server warned of their templates, the last verdict stays.
        """
        if self.launcher is None or pods.is_suspended(self.launcher):
            return False
        noted = annotations_of(self.launcher)
        if noted.get(names.ANNOTATION_START_REVISION) in {None, start_revision(job)}:
            return False
        if names.ANNOTATION_START_GENERATION not in noted and job.status.is_true(c.CONDITION_WARNINGS):
            return job.status.is_true(c.CONDITION_UPDATE_PENDING)
        return noted.get(names.ANNOTATION_START_GENERATION, "1") != str(job.generation)

    def is_restarting(self, job: MPIJob) -> bool:
        """Return whether a restart is decided, and the launcher Job has not been resumed since: its pod template knows an earlier count."""
        if self.launcher is None or job.is_suspended or job.status.is_finished:
            return False
        return restart_count(self.launcher) < job.status.restarts

    @property
    def all_pods(self) -> tuple[Object, ...]:
        """Return the pods of both roles, workers first."""
        return (*self.workers.values(), *self.launcher_pods)

    @property
    def awaits_old_gang(self) -> bool:
        """Return whether the gang of the run before is on its way out and nothing of this run has begun.

        Kubernetes keeps a PodGroup for as long as a pod that has not ended names it: pods of the new run would hold the old group for ever.
        """
        is_leaving = any(is_terminating(obj) for obj in self.gang.values())
        return is_leaving and all(is_terminating(pod) or pods.is_finished(pod) for pod in (*self.workers.values(), *self.launcher_pods))

    @property
    def launcher_pod(self) -> Object | None:
        """Return the newest launcher pod that is not terminating."""
        return next((pod for pod in reversed(self.launcher_pods) if not is_terminating(pod)), None)

    @property
    def published_addresses(self) -> str | None:
        """Return the worker addresses in the annotation of the launcher pod; None without a launcher pod."""
        return None if self.launcher_pod is None else annotations_of(self.launcher_pod).get(names.ANNOTATION_ADDRESSES)


def observe(job: MPIJob, listers: Listers) -> Observed:
    """Return the children of `job` that exist now."""
    launcher = _ours(job, listers.jobs.get(Key(job.namespace, names.launcher_name(job))))
    launcher_pods = _controlled(listers.pods, ControllerId(job.namespace, JOBS.group, JOBS.kind, uid_of(launcher))) if launcher else ()
    named = ((pod["metadata"].get("name", ""), pod) for pod in _controlled(listers.pods, names.controller_id(job.namespace, job.uid)))
    return Observed(
        service=_ours(job, listers.services.get(Key(job.namespace, names.service_name(job)))),
        config_map=_ours(job, listers.config_maps.get(Key(job.namespace, names.config_map_name(job)))),
        launcher=launcher,
        launcher_pods=tuple(sorted(launcher_pods, key=_age)),
        workers={name: pod for name, pod in named if worker_index(job.name, name) is not None},
        deleted_workers=listers.deleted_workers.of(names.controller_id(job.namespace, job.uid)) if listers.deleted_workers else {},
        gang=_gang(job, listers),
    )


def launcher_template(launcher: Object) -> Mapping[str, Any]:
    """Return the pod template of a launcher Job, or what may change in it; empty if that was too large (see `needs_template`)."""
    template = _template(launcher)
    text = template.get("json")
    return template if text is None else cast("Mapping[str, Any]", msgspec.json.decode(text))


def restart_count(launcher: Object) -> int:
    """Return for which restart of the job the launcher Job makes its pods; 0 for the start."""
    metadata: Mapping[str, Any] = _template(launcher).get("metadata") or {}
    return _restart_count(metadata.get("annotations") or {})


def restart_count_of_pod(pod: Object) -> int:
    """Return for which restart of the job the pod was made; 0 for the start."""
    return _restart_count(annotations_of(pod))


def _restart_count(annotations: Mapping[str, str]) -> int:
    return whole_number(annotations.get(names.ANNOTATION_RESTART_COUNT, "")) or 0


def _template(launcher: Object) -> Mapping[str, Any]:
    return launcher.get("spec", {}).get("template") or {}


def index_by_controller(obj: Object) -> Sequence[str]:
    """File an object under its controller (an `Indexer`)."""
    controller = controller_id(obj)
    return () if controller is None else (str(controller),)


def _controlled(lister: Lister, controller: ControllerId) -> Sequence[Object]:
    return lister.by_index(BY_CONTROLLER, str(controller))


def _gang(job: MPIJob, listers: Listers) -> dict[Resource, Object]:
    key = Key(job.namespace, names.pod_group_name(job))
    found = ((resource, _ours(job, lister.get(key))) for resource, lister in listers.gang.items())
    return {resource: obj for resource, obj in found if obj is not None}


def _ours(job: MPIJob, obj: Object | None) -> Object | None:
    return obj if obj is not None and controller_id(obj) == names.controller_id(job.namespace, job.uid) else None


def _age(pod: Object) -> tuple[str, str]:
    metadata = pod["metadata"]
    return metadata.get("creationTimestamp", ""), metadata.get("name", "")
