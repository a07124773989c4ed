"""Compares the current children with the desired ones, and returns the writes by step. Pure.

Steps depend on earlier ones: no launcher is created if a write for Secret, Service, ConfigMap or workers failed (`is_blocked`). A patch or
delete carries the observed object for its preconditions. Only our fields are compared and patched; what others have added stays.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, auto
from functools import partial
from typing import Any, Final, NamedTuple

from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.config_map import build_config_map, with_digests
from mpiop.controller.objects.launcher_job import build_launcher_job
from mpiop.controller.objects.pod_template import section
from mpiop.controller.objects.service import build_service
from mpiop.controller.objects.worker_pod import worker_builder
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.rejections import goes_at_once, rejections_before
from mpiop.controller.plan.desired import Desired, Presence
from mpiop.controller.plan.merge_patch import merge_patch
from mpiop.controller.plan.suspension import unsuspend_patch
from mpiop.controller.restart.policy import launcher_limits
from mpiop.kube.objects import Key, Object, is_terminating, key_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Resource

# An extra key would select other pods (selector) or request more (minResources), so these are replaced, not merged.
_WHOLE: Final = frozenset({"selector", "minResources"})


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object, which is built only when its turn comes."""

    resource: Resource
    key: Key
    build: Callable[[], Object]


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge `body` into the object as `observed`.

    Attributes:
        is_for_any_version: The patch is right whatever else has changed, so its only precondition is the UID.
    """

    resource: Resource
    observed: Object
    body: Mapping[str, Any]
    subresource: str = ""
    is_for_any_version: bool = False

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return key_of(self.observed)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete exactly the object that was observed.

    Attributes:
        is_forced: Without a grace period: the pod's node is not asked whether the pod has ended.
        replaces: The field for which the object is deleted and created again, because it cannot be changed.
    """

    resource: Resource
    observed: Object
    is_forced: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return key_of(self.observed)


Action = Create | Patch | Delete


class Step(IntEnum):
    """The steps of a sync, in order."""

    DEPENDENCIES = auto()
    """Secret, Service and ConfigMap: a kubelet backs off on a missing volume."""
    SUSPEND = auto()
    GANG = auto()
    WORKERS = auto()
    LAUNCHER = auto()
    UNSUSPEND = auto()
    ADDRESSES = auto()
    LEFTOVERS = auto()
    CONFIG_MAP = auto()
    """Deleted last: it holds the UID of the Secret."""


class Stage(NamedTuple):
    """Writes of one step; their order does not matter."""

    step: Step
    actions: tuple[Action, ...]


def is_blocked(step: Step, action: Action, failed: Collection[Step]) -> bool:
    """Return whether `action` depends on a failed step: a start needs all earlier steps, a stop only the suspension."""
    if isinstance(action, Create) or step in {Step.UNSUSPEND, Step.CONFIG_MAP}:
        return bool(failed)
    return isinstance(action, Delete) and step in {Step.GANG, Step.WORKERS} and Step.SUSPEND in failed


def diff(job: MPIJob, desired: Desired, observed: Observed, *, secret_uid: str, options: BuildOptions) -> list[Stage]:
    """Return the writes of all steps except those of the gang and of the addresses, in no particular order."""
    stuck = [Delete(PODS, pod, is_forced=True) for pod in observed.launcher_pods if _is_stuck(desired, pod)]
    stages = [
        *_dependencies(job, desired, observed, secret_uid, options),
        *_launcher(job, desired, observed, options),
        Stage(Step.WORKERS, (*stuck, *_workers(job, desired, observed, options))),
    ]
    return [stage for stage in stages if stage.actions]


def _dependencies(job: MPIJob, desired: Desired, observed: Observed, secret_uid: str, options: BuildOptions) -> Iterator[Stage]:
    if desired.dependencies is Presence.ENSURE:
        running = [name for name in job.worker_names if name in observed.running_workers]
        config_map = build_config_map(job, running, options)
        config_map["metadata"]["annotations"] = {names.ANNOTATION_SECRET_UID: secret_uid}
        actions = (_ensure_service(build_service(job), observed.service), _ensure_config_map(config_map, observed.config_map))
        yield Stage(Step.DEPENDENCIES, tuple(action for action in actions if action is not None))
    elif desired.dependencies is Presence.DELETE:
        secret: Object = {"metadata": {"name": job.secret_name, "namespace": job.namespace, "uid": secret_uid}}
        yield Stage(Step.LEFTOVERS, (*_remove(SERVICES, observed.service), *(_remove(SECRETS, secret) if secret_uid else ())))
        yield Stage(Step.CONFIG_MAP, _remove(CONFIG_MAPS, observed.config_map))


def _ensure_service(desired: Object, current: Object | None) -> Action | None:
    """Return the write for the Service; one that is not headless is deleted and created again, for `clusterIP` is immutable."""
    if (
        current is not None
        and not is_terminating(current)
        and section(current, "spec").get("clusterIP") != section(desired, "spec").get("clusterIP")
    ):
        return Delete(SERVICES, current, replaces=("spec", "clusterIP"))
    return ensure(SERVICES, desired, current)


def _ensure_config_map(desired: Object, current: Object | None) -> Action | None:
    """Return the write for the ConfigMap, of whose data only digests are kept."""
    action = ensure(CONFIG_MAPS, with_digests(desired), current)
    match action:
        case Create():
            return Create(CONFIG_MAPS, action.key, lambda: desired)
        case Patch(body={"data": changed}):
            data = desired.get("data", {})
            return replace(action, body={**action.body, "data": {name: data[name] for name in changed}})
        case _:
            return action


def _remove(resource: Resource, current: Object | None) -> tuple[Action, ...]:
    return () if current is None or is_terminating(current) else (Delete(resource, current),)


def ensure(resource: Resource, desired: Object, current: Object | None) -> Action | None:
    """Return the write that gives `current` the fields of `desired`; None if it has them or is terminating."""
    if current is None:
        return Create(resource, key_of(desired), lambda: desired)
    # Others may add owners; ours is there, otherwise the object would not be a child of the job.
    metadata = {name: value for name, value in desired["metadata"].items() if name != "ownerReferences"}
    if is_terminating(current) or not (body := merge_patch({**desired, "metadata": metadata}, current, whole=_WHOLE)):
        return None
    return Patch(resource, current, body)


def _launcher(job: MPIJob, desired: Desired, observed: Observed, options: BuildOptions) -> Iterator[Stage]:
    current = observed.launcher
    if current is None:
        if desired.launcher is Presence.ENSURE:
            launcher = build_launcher_job(job, options, limits=launcher_limits(job), suspend=desired.launcher_suspended)
            yield Stage(Step.LAUNCHER, (Create(JOBS, key_of(launcher), lambda: launcher),))
    elif desired.launcher is Presence.KEEP or is_terminating(current):
        return
    elif desired.launcher is Presence.DELETE:
        yield Stage(Step.LAUNCHER, (Delete(JOBS, current),))
    elif pods.is_suspended(current) and not desired.launcher_suspended and pods.is_suspension_complete(current):
        unsuspended, subresource = unsuspend_patch(job, current, options)
        yield Stage(Step.UNSUSPEND, (Patch(JOBS, current, unsuspended, subresource=subresource),))
    else:
        suspend = pods.is_suspended(current) or desired.launcher_suspended
        body = merge_patch({"metadata": {"labels": names.child_labels(job.name)}, "spec": {"suspend": suspend}}, current)
        yield Stage(Step.SUSPEND, (Patch(JOBS, current, body),) if body else ())


def addresses_stages(launcher_pod: Object | None, annotations: Mapping[str, str | None]) -> tuple[Stage, ...]:
    """Return the write that publishes the addresses of the workers to the launcher, if any."""
    if launcher_pod is None or not annotations:
        return ()
    # The kubelet updates this pod at the same time: with a resourceVersion, many patches would be refused.
    patch = Patch(PODS, launcher_pod, {"metadata": {"annotations": annotations}}, is_for_any_version=True)
    return (Stage(Step.ADDRESSES, (patch,)),)


def _workers(job: MPIJob, desired: Desired, observed: Observed, options: BuildOptions) -> tuple[Action, ...]:
    desired_names = {name: index for index, name in enumerate(job.worker_names[: desired.worker_count])}
    deletes = [
        Delete(PODS, pod)
        for name, pod in observed.workers.items()
        if name not in desired_names and not is_terminating(pod) and not desired.keep_worker(pod)
    ]
    deletes += [
        Delete(PODS, pod, is_forced=desired.forces and pods.is_unreachable(pod))
        for name, pod in observed.workers.items()
        if name in desired_names and desired.replace_worker(pod) and (not is_terminating(pod) or _is_stuck(desired, pod))
    ]
    missing = {
        name: index
        for name, index in desired_names.items()
        if (pod := observed.workers.get(name)) is None or (goes_at_once(pod) and desired.replace_worker(pod))
    }
    if not missing:
        return tuple(deletes)
    build = worker_builder(job, options)
    creates = (
        Create(PODS, Key(job.namespace, name), partial(build, index, rejections=rejections_before(observed, name)))
        for name, index in missing.items()
    )
    return (*deletes, *creates)


def _is_stuck(desired: Desired, pod: Object) -> bool:
    """Return whether a pod that is being deleted will only go by force: its node does not answer.

    The Job controller's finalizer would keep it all the same; it is removed when the Job is suspended.
    """
    return (
        desired.forces
        and is_terminating(pod)
        and pods.is_unreachable(pod)
        and pods.JOB_TRACKING not in (pod["metadata"].get("finalizers") or ())
    )
