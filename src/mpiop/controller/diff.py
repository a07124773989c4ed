"""From what should be and what is to the writes that close the gap, in stages."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import partial
from typing import Any, Final, NamedTuple

from mpiop.api.types import MPIJob
from mpiop.controller import names, pods
from mpiop.controller.addresses import addresses_to_tell
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.config_map import build_config_map
from mpiop.controller.builders.launcher_job import build_launcher_job
from mpiop.controller.builders.service import build_service
from mpiop.controller.builders.worker_pod import worker_builder
from mpiop.controller.desired import Desired
from mpiop.controller.merge import merge_patch
from mpiop.controller.observed import Observed
from mpiop.controller.release import is_at_rest, release_patch
from mpiop.kube.objects import Key, Object, is_terminating, key_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Resource

# A foreign key in a selector would choose other pods, one in the resources of a gang ask for more.
_WHOLE: Final = frozenset({"selector", "minResources"})


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object; it is built only when its turn comes."""

    resource: Resource
    key: Key
    build: Callable[[], Object]


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge `body` into the object as `observed`.

    Attributes:
        is_for_any_version: It stays right whatever else of the object has changed meanwhile, so that the UID alone guards it.
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
    """Delete exactly the object that was observed."""

    resource: Resource
    observed: Object

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return key_of(self.observed)


Action = Create | Patch | Delete


class Step(IntEnum):
    """The steps of a sync, in their order."""

    DEPENDENCIES = auto()
    """Secret, Service and ConfigMap: a kubelet backs off on a missing volume."""
    SUSPEND = auto()
    GANG = auto()
    WORKERS = auto()
    LAUNCHER = auto()
    RELEASE = auto()
    ADDRESSES = auto()
    LEFTOVERS = auto()
    CONFIG_MAP = auto()
    """It goes last: the UID of the Secret is noted there."""


class Stage(NamedTuple):
    """Writes of one step, of which the order is free."""

    step: Step
    actions: tuple[Action, ...]


def is_held_back(step: Step, action: Action, failed: Collection[Step]) -> bool:
    """Tell whether `action` must wait because steps before it failed: what starts needs all of them, what stops only the suspension."""
    if isinstance(action, Create) or step in {Step.RELEASE, Step.CONFIG_MAP}:
        return bool(failed)
    return isinstance(action, Delete) and step in {Step.GANG, Step.WORKERS} and Step.SUSPEND in failed


def diff(job: MPIJob, wanted: Desired, observed: Observed, *, secret_uid: str, options: BuildOptions) -> list[Stage]:
    """Return the writes that close the gap, all but those of the gang, in no particular order."""
    stages = [
        *_dependencies(job, wanted, observed, secret_uid, options),
        *_launcher(job, wanted, observed, options),
        Stage(Step.WORKERS, _workers(job, wanted, observed, options)),
        Stage(Step.ADDRESSES, _addresses(job, observed)),
    ]
    return [stage for stage in stages if stage.actions]


def _dependencies(job: MPIJob, wanted: Desired, observed: Observed, secret_uid: str, options: BuildOptions) -> Iterator[Stage]:
    if wanted.dependencies:
        running = [name for name in names.worker_names(job) if name in observed.running_workers]
        config_map = build_config_map(job, running, options)
        config_map["metadata"]["annotations"] = {names.ANNOTATION_SECRET_UID: secret_uid}
        actions = (ensure(SERVICES, build_service(job), observed.service), ensure(CONFIG_MAPS, config_map, observed.config_map))
        yield Stage(Step.DEPENDENCIES, tuple(action for action in actions if action is not None))
    elif wanted.dependencies is False:
        secret: Object = {"metadata": {"name": names.secret_name(job), "namespace": job.namespace, "uid": secret_uid}}
        yield Stage(Step.LEFTOVERS, (*_remove(SERVICES, observed.service), *(_remove(SECRETS, secret) if secret_uid else ())))
        yield Stage(Step.CONFIG_MAP, _remove(CONFIG_MAPS, observed.config_map))


def _remove(resource: Resource, have: Object | None) -> tuple[Action, ...]:
    return () if have is None or is_terminating(have) else (Delete(resource, have),)


def ensure(resource: Resource, wanted: Object, have: Object | None) -> Action | None:
    """Return the write that makes `have` agree with `wanted` in what that sets; None when it does, or is on its way out."""
    if have is None:
        return Create(resource, key_of(wanted), lambda: wanted)
    # Others may add owners; ours is there, else the object would not be one of the job's children.
    metadata = {name: value for name, value in wanted["metadata"].items() if name != "ownerReferences"}
    if is_terminating(have) or not (body := merge_patch({**wanted, "metadata": metadata}, have, whole=_WHOLE)):
        return None
    return Patch(resource, have, body)


def _launcher(job: MPIJob, wanted: Desired, observed: Observed, options: BuildOptions) -> Iterator[Stage]:
    have = observed.launcher
    if have is None:
        if wanted.launcher:
            build = partial(build_launcher_job, job, options, suspend=wanted.launcher_suspended)
            yield Stage(Step.LAUNCHER, (Create(JOBS, Key(job.namespace, names.launcher_name(job)), build),))
    elif wanted.launcher is None or is_terminating(have):
        return
    elif not wanted.launcher:
        yield Stage(Step.LAUNCHER, (Delete(JOBS, have),))
    elif pods.is_held(have) and not wanted.launcher_suspended and is_at_rest(have):
        released, subresource = release_patch(job, have, options)
        yield Stage(Step.RELEASE, (Patch(JOBS, have, released, subresource=subresource),))
    else:
        suspend = pods.is_held(have) or wanted.launcher_suspended
        body = merge_patch({"metadata": {"labels": names.child_labels(job)}, "spec": {"suspend": suspend}}, have)
        yield Stage(Step.SUSPEND, (Patch(JOBS, have, body),) if body else ())


def _addresses(job: MPIJob, observed: Observed) -> tuple[Action, ...]:
    pod, addresses = observed.launcher_pod, addresses_to_tell(job, observed)
    if pod is None or addresses is None or addresses == observed.told_addresses:
        return ()
    # The kubelet writes this pod at the same time: with its version, many a patch is refused.
    return (Patch(PODS, pod, {"metadata": {"annotations": {names.ANNOTATION_ADDRESSES: addresses}}}, is_for_any_version=True),)


def _workers(job: MPIJob, wanted: Desired, observed: Observed, options: BuildOptions) -> tuple[Action, ...]:
    wanted_names = {name: index for index, name in enumerate(names.worker_names(job)[: wanted.worker_count])}
    deletes = [
        Delete(PODS, pod)
        for name, pod in observed.workers.items()
        if name not in wanted_names and not is_terminating(pod) and not wanted.keep_worker(pod)
    ]
    missing = {name: index for name, index in wanted_names.items() if name not in observed.workers}
    return (*deletes, *(_creations(job, missing, options) if missing else ()))


def _creations(job: MPIJob, indices: Mapping[str, int], options: BuildOptions) -> tuple[Action, ...]:
    build = worker_builder(job, options)
    return tuple(Create(PODS, Key(job.namespace, name), partial(build, index)) for name, index in indices.items())
