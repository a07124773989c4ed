"""From what should be and what is to the writes that close the gap, in stages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mpiop.api.types import MPIJob
from mpiop.controller import names, pods
from mpiop.controller.builders import BuildOptions
from mpiop.controller.builders.config_map import build_config_map
from mpiop.controller.builders.launcher_job import build_launcher_job
from mpiop.controller.builders.service import build_service
from mpiop.controller.builders.worker_pod import worker_builder
from mpiop.controller.desired import Desired
from mpiop.controller.implementations import DISCOVER_HOSTS
from mpiop.controller.merge import merge_patch
from mpiop.controller.observed import Observed
from mpiop.controller.release import is_at_rest, release_patch
from mpiop.kube.objects import Key, Object, annotations_of, is_terminating, key_of
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
class Check:
    """Find out whether the name of an object that is to be made later is free, or the job's already."""

    resource: Resource
    key: Key


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge `body` into the object as `observed`; a deferrable one may wait for company, so as to be written at a bounded rate.

    Attributes:
        is_for_any_version: It stays right whatever else of the object has changed meanwhile, so that the UID alone guards it.
    """

    resource: Resource
    observed: Object
    body: Mapping[str, Any]
    is_deferrable: bool = False
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
        is_last: Only when all before it went well, for they are found by what it holds.
    """

    resource: Resource
    observed: Object
    is_last: bool = False

    @property
    def key(self) -> Key:
        """Return the key of the object."""
        return key_of(self.observed)


Action = Create | Check | Patch | Delete
Stage = tuple[Action, ...]


def diff(job: MPIJob, wanted: Desired, observed: Observed, *, secret_uid: str, options: BuildOptions) -> tuple[Stage, ...]:
    """Return the writes in stages: nothing is made after an error in the stage before, within a stage order is free.

    Pods come after what they mount, else the kubelet backs off on the missing volume.
    """
    supports = _supports(job, wanted, observed, secret_uid, options) if wanted.supports else ()
    leftovers, last = _leftovers(job, observed, secret_uid) if wanted.supports is False else ((), ())
    launcher, workers = _launcher(job, wanted, observed, options), _workers(job, wanted, observed, options)
    # A new launcher comes after its workers: it can do nothing without them, and should not have ended before they all ran.
    main = (*workers, *launcher) if observed.launcher is None else (*launcher, *workers)
    return tuple(stage for stage in (supports, (*main, *leftovers), last) if stage)


def _supports(job: MPIJob, wanted: Desired, observed: Observed, secret_uid: str, options: BuildOptions) -> Stage:
    running = [name for name in names.worker_names(job) if name in observed.running_workers]
    config_map = build_config_map(job, running, options)
    config_map["metadata"]["annotations"] = {names.ANNOTATION_SECRET_UID: secret_uid}
    # A launcher that is let go by this look should find all hosts; to one that was let go its kubelet shows changes within a minute.
    is_awaited = len(running) == job.worker_replicas and observed.is_launcher_held
    actions = (
        _service(job, wanted, observed),
        ensure(CONFIG_MAPS, config_map, observed.config_map, defer=not is_awaited),
    )
    return tuple(action for action in actions if action is not None)


def _service(job: MPIJob, wanted: Desired, observed: Observed) -> Action | None:
    if wanted.service or observed.service is not None:
        return ensure(SERVICES, build_service(job), observed.service)
    # No pod should wait for a Service that cannot be made, because somebody else has one of that name.
    is_new = observed.launcher is None and not observed.workers
    return Check(SERVICES, Key(job.namespace, names.service_name(job))) if is_new else None


def _leftovers(job: MPIJob, observed: Observed, secret_uid: str) -> tuple[Stage, Stage]:
    """Return the deletions of what a job that ended leaves behind besides its pods, and that of the ConfigMap, which knows the Secret."""
    secret: Object = {"metadata": {"name": names.secret_name(job), "namespace": job.namespace, "uid": secret_uid}}
    service = _remove(SERVICES, observed.service)
    return (*service, *(_remove(SECRETS, secret) if secret_uid else ())), _remove(CONFIG_MAPS, observed.config_map, is_last=True)


def _remove(resource: Resource, have: Object | None, *, is_last: bool = False) -> Stage:
    return () if have is None or is_terminating(have) else (Delete(resource, have, is_last=is_last),)


def ensure(resource: Resource, wanted: Object, have: Object | None, *, defer: bool = False) -> Action | None:
    """Return the write that makes `have` agree with `wanted` in what that sets; None when it does, or is on its way out."""
    if have is None:
        return Create(resource, key_of(wanted), lambda: wanted)
    # Others may add owners; ours is there, else the object would not be one of the job's children.
    metadata = {name: value for name, value in wanted["metadata"].items() if name != "ownerReferences"}
    if is_terminating(have) or not (body := merge_patch({**wanted, "metadata": metadata}, have, whole=_WHOLE)):
        return None
    is_deferrable = defer and set(body) == {"data"} and set(body["data"]) == {DISCOVER_HOSTS}
    return Patch(resource, have, body, is_deferrable=is_deferrable)


def _launcher(job: MPIJob, wanted: Desired, observed: Observed, options: BuildOptions) -> Stage:
    have = observed.launcher
    if have is None:
        build = lambda: build_launcher_job(job, options, suspend=wanted.launcher_suspended)  # noqa: E731 - a thunk beside its use
        return (Create(JOBS, Key(job.namespace, names.launcher_name(job)), build),) if wanted.launcher else ()
    if wanted.launcher is None or is_terminating(have):
        return ()
    if not wanted.launcher:
        return (Delete(JOBS, have),)
    is_held = pods.is_held(have)
    if is_held and not wanted.launcher_suspended and is_at_rest(have):
        released, subresource = release_patch(job, have, options)
        return (Patch(JOBS, have, released, subresource=subresource),)
    body = merge_patch({"metadata": {"labels": names.child_labels(job)}, "spec": {"suspend": is_held or wanted.launcher_suspended}}, have)
    patches = (Patch(JOBS, have, body),) if body else ()
    return (*patches, *_gate(job, wanted, observed))


def _gate(job: MPIJob, wanted: Desired, observed: Observed) -> Stage:
    """Tell the waiting launcher pod that its workers are Ready (docs/adr/0004)."""
    pod = observed.launcher_pod
    if pod is None or not wanted.gate_open or pods.phase(pod) != "Pending":
        return ()
    told, count = annotations_of(pod).get(names.ANNOTATION_WORKERS_READY), str(job.worker_replicas)
    again = f"{count} again"
    if told is None or told == again or (told == count and not wanted.gate_overdue):
        return ()
    word = again if told == count else count
    # Scheduler and kubelet write this pod at the same time: with its version, many a patch is refused.
    return (Patch(PODS, pod, {"metadata": {"annotations": {names.ANNOTATION_WORKERS_READY: word}}}, is_for_any_version=True),)


def _workers(job: MPIJob, wanted: Desired, observed: Observed, options: BuildOptions) -> Stage:
    wanted_names = {name: index for index, name in enumerate(names.worker_names(job)[: wanted.worker_count])}
    deletes = [
        Delete(PODS, pod)
        for name, pod in observed.workers.items()
        if name not in wanted_names and not is_terminating(pod) and not wanted.keep_worker(pod)
    ]
    missing = {name: index for name, index in wanted_names.items() if name not in observed.workers}
    return (*deletes, *(_creations(job, missing, options) if missing else ()))


def _creations(job: MPIJob, indices: Mapping[str, int], options: BuildOptions) -> Stage:
    build = worker_builder(job, options)
    return tuple(Create(PODS, Key(job.namespace, name), partial(build, index)) for name, index in indices.items())
