"""The children of a job as the caches show them, read once for each sync.

A child belongs to a job by namespace, and by group, kind and UID of its controller reference. Names and labels are not enough, because
another user or a deleted job of the same name may have given them to an object.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

import msgspec

from mpiop.api.names import worker_index
from mpiop.api.types import MPIJob
from mpiop.controller import names
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
        return [
            child
            for lister in listers
            for key, child in lister.unreadable.items()
            if key.namespace == job.namespace and may_belong_to(job, child)  # there may be thousands in the namespace of somebody else
        ]


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

    def has_surplus_workers(self, desired: Iterable[str]) -> bool:
        """Return whether workers other than the `desired` ones exist that are not being deleted: the job was scaled down."""
        return any(not is_terminating(self.workers[name]) for name in self.workers.keys() - set(desired))

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
        if launcher is None or is_terminating(launcher) or not pods.is_suspended(launcher):
            return False
        return _template(launcher).get("json", "") is None

    @property
    def all_pods(self) -> tuple[Object, ...]:
        """Return the pods of both roles, workers first."""
        return (*self.workers.values(), *self.launcher_pods)

    @property
    def awaits_old_gang(self) -> bool:
        """Return whether the gang of the last run is being deleted and nothing of this run has begun.

        Kubernetes keeps a PodGroup as long as a pod that has not ended names it: pods of the new run would keep the old group for ever.
        """
        is_leaving = any(is_terminating(obj) for obj in self.gang.values())
        return is_leaving and all(is_terminating(pod) or pods.is_finished(pod) for pod in self.all_pods)

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
    owner = names.controller_id(job.namespace, job.uid)
    launcher = _controlled_by(owner, listers.jobs.get(Key(job.namespace, job.launcher_name)))
    launcher_pods = _controlled(listers.pods, ControllerId(job.namespace, JOBS.group, JOBS.kind, uid_of(launcher))) if launcher else ()
    named = ((pod["metadata"].get("name", ""), pod) for pod in _controlled(listers.pods, owner))
    gang_key = Key(job.namespace, job.pod_group_name)
    gang = ((resource, _controlled_by(owner, lister.get(gang_key))) for resource, lister in listers.gang.items())
    return Observed(
        service=_controlled_by(owner, listers.services.get(Key(job.namespace, job.service_name))),
        config_map=_controlled_by(owner, listers.config_maps.get(Key(job.namespace, job.config_map_name))),
        launcher=launcher,
        launcher_pods=tuple(sorted(launcher_pods, key=_age)),
        workers={name: pod for name, pod in named if worker_index(job.name, name) is not None},
        deleted_workers=listers.deleted_workers.of(owner) if listers.deleted_workers else {},
        gang={resource: obj for resource, obj in gang if obj is not None},
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
    """Return the pod template as the cache has it (`projections`): the mutable part as `json` text, or None if that was too large."""
    return launcher.get("spec", {}).get("template") or {}


def index_by_controller(obj: Object) -> Sequence[str]:
    """File an object under its controller (an `Indexer`)."""
    controller = controller_id(obj)
    return () if controller is None else (str(controller),)


def _controlled(lister: Lister, controller: ControllerId) -> Sequence[Object]:
    return lister.by_index(BY_CONTROLLER, str(controller))


def _controlled_by(owner: ControllerId, obj: Object | None) -> Object | None:
    return obj if obj is not None and controller_id(obj) == owner else None


def _age(pod: Object) -> tuple[str, str]:
    metadata = pod["metadata"]
    return metadata.get("creationTimestamp", ""), metadata.get("name", "")
