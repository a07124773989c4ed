"""The parts of objects that we read: only these are decoded (`PROJECTIONS`) and stored (`trims`), and only their changes queue a job.

To read a further field, add it here first. Every question about a whole object has the same answer about its projection. Times are left
out, because no two pods share them, and so are labels, annotations and owners that we do not read: a tenant may write a megabyte of them.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NotRequired, TypedDict, cast

import msgspec

from mpiop.api import constants as c
from mpiop.api.annotations import JOB_ANNOTATIONS
from mpiop.controller import names
from mpiop.controller.objects.config_map import with_digests
from mpiop.controller.observe import pods
from mpiop.controller.observe.stored_specs import Specs
from mpiop.kube.objects import Object, ObjectMeta
from mpiop.kube.resources import CONFIG_MAPS, COSCHEDULING_POD_GROUPS, JOBS, MPIJOBS, PODS, SERVICES, VOLCANO_POD_GROUPS, Resource


class _Condition(TypedDict, total=False):
    type: str | None
    status: str | None
    reason: str | None
    message: str | None


class _SchedulingGate(TypedDict, total=False):
    name: str | None


class _PodSpec(TypedDict, total=False):
    nodeName: str | None
    schedulingGates: list[_SchedulingGate] | None


class _ContainerState(TypedDict, total=False):
    waiting: dict[str, Any] | None
    terminated: dict[str, Any] | None


class _ContainerStatus(TypedDict, total=False):
    name: str | None
    image: str | None
    state: _ContainerState | None
    lastState: _ContainerState | None
    restartCount: int | None


class _PodStatus(TypedDict, total=False):
    phase: str | None
    podIP: str | None
    reason: str | None
    message: str | None
    conditions: list[_Condition] | None
    initContainerStatuses: list[_ContainerStatus] | None
    containerStatuses: list[_ContainerStatus] | None


class Pod(TypedDict):
    """The part of a Pod that its questions are about (`controller/observe/pods.py`)."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[_PodSpec]
    status: NotRequired[_PodStatus]


class _TemplateMeta(TypedDict, total=False):
    labels: msgspec.Raw
    annotations: msgspec.Raw


class _TemplateSpec(TypedDict, total=False):
    nodeSelector: msgspec.Raw
    tolerations: msgspec.Raw
    schedulingGates: msgspec.Raw
    affinity: msgspec.Raw


class _Template(TypedDict, total=False):
    metadata: _TemplateMeta | None
    spec: _TemplateSpec | None


class _JobSpec(TypedDict, total=False):
    suspend: bool | None
    activeDeadlineSeconds: int | None
    ttlSecondsAfterFinished: int | None
    backoffLimit: int | None
    template: _Template | None


class _JobStatus(TypedDict, total=False):
    startTime: str | None
    completionTime: str | None
    active: int | None
    succeeded: int | None
    failed: int | None
    conditions: list[_Condition] | None


class _ServiceSpec(TypedDict, total=False):
    clusterIP: str | None
    selector: dict[str, str] | None
    publishNotReadyAddresses: bool | None


class Job(TypedDict):
    """The part of a launcher Job that is followed: how it gets on, and of its template what may change (`plan/suspension.py`)."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[_JobSpec]
    status: NotRequired[_JobStatus]


class Service(TypedDict):
    """The part of a Service that ours is compared with."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[_ServiceSpec]


_Data = TypedDict("_Data", {"hostfile": str, "discover_hosts.sh": str}, total=False)


class ConfigMap(TypedDict):
    """A ConfigMap with the files that we write."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    data: NotRequired[_Data | None]


class MPIJob(TypedDict):
    """An MPIJob, whose spec is decoded when it is needed. Users cannot write the status."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[msgspec.Raw]
    status: NotRequired[Any]


class _PodGroupSpec(TypedDict, total=False):
    minMember: int | None
    minResources: dict[str, Any] | None
    priorityClassName: str | None
    queue: str | None
    scheduleTimeoutSeconds: int | None


class PodGroup(TypedDict):
    """The fields of a PodGroup of Volcano or of the coscheduling plugin that follow the job (`gang/pod_group.py`)."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[_PodGroupSpec]


PROJECTIONS: Final[Mapping[Resource, type[Any]]] = MappingProxyType({
    MPIJOBS: MPIJob,
    PODS: Pod,
    JOBS: Job,
    SERVICES: Service,
    CONFIG_MAPS: ConfigMap,
    VOLCANO_POD_GROUPS: PodGroup,
    COSCHEDULING_POD_GROUPS: PodGroup,
})
"""The projection of each resource of which not all is kept."""

Trim = Callable[[Object], Object]
"""Returns what of a decoded object is kept; what comes is not changed."""


_LABELS: Final = frozenset(value for name, value in vars(c).items() if name.startswith("LABEL_"))
_ANNOTATIONS: Final = frozenset(row.name for row in (*JOB_ANNOTATIONS, *names.ANNOTATIONS))
_KEPT: Final = (("labels", _LABELS), ("annotations", _ANNOTATIONS))
MOST_TEMPLATE_BYTES: Final = 64 * 2**10
"""Of what may change in the pod template of a suspended Job. A larger one is read live when it is needed."""
_MOST_FINALIZERS: Final = 16
_MOST_CHARACTERS: Final = 1024
"""Of a label, an annotation, or a field of an owner; only the addresses that we give a launcher are longer. Kubernetes does not limit
the length of an owner's fields."""
_MOST_SELECTORS: Final = 16
"""Ours has two; a selector that has more than these differs from it all the same."""
_MOST_RESOURCES: Final = 64
"""Of a PodGroup's `minResources`; nodes have some ten. One that has more than these is not made by us, and differs from ours."""
_MOST_GATES: Final = 4
"""Scheduling gates of a Pod: a message names them."""


def _short(value: Any) -> Any:
    """Return `value`; of a text that is too long to be right, the beginning, which is wrong, too."""
    return value if not isinstance(value, str) or len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}..."


def _shortened(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _short(value) for name, value in values.items()}


def _labels_or_annotations(values: dict[str, Any], kept: frozenset[str], obj: Object) -> dict[str, Any]:
    found = {name: value for name, value in values.items() if name in kept}
    short, addresses = _shortened(found), found.get(names.ANNOTATION_ADDRESSES)
    # Beyond ASCII, Python takes four bytes for each character of a text.
    if isinstance(addresses, str) and addresses.isascii() and pods.role(obj) == c.ROLE_LAUNCHER:
        short[names.ANNOTATION_ADDRESSES] = addresses
    return short


def trimmed(obj: Object) -> Object:
    """Return `obj` with the metadata that we read: our labels and annotations, the controller among its owners, some finalizers."""
    metadata: dict[str, Any] = {**obj["metadata"]}
    for field, kept in _KEPT:
        if isinstance(values := metadata.get(field), dict):
            metadata[field] = _labels_or_annotations(cast("dict[str, Any]", values), kept, obj)
    if isinstance(owners := metadata.get("ownerReferences"), list):
        known = (cast("dict[str, Any]", owner) for owner in cast("list[object]", owners) if isinstance(owner, dict))
        metadata["ownerReferences"] = [_shortened(owner) for owner in known if owner.get("controller")][:1]
    if isinstance(finalizers := metadata.get("finalizers"), list):
        metadata["finalizers"] = finalizers[:_MOST_FINALIZERS]
    return {**obj, "metadata": cast("ObjectMeta", metadata)}


def _service(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    if not isinstance(selector := spec.get("selector"), dict):
        return trimmed(obj)
    return trimmed({**obj, "spec": {**spec, "selector": dict(islice(cast("dict[str, Any]", selector).items(), _MOST_SELECTORS))}})


def _pod(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    gates = spec.get("schedulingGates")
    return trimmed({**obj, "spec": {**spec, "schedulingGates": gates[:_MOST_GATES]}} if isinstance(gates, list) else obj)


_Count = TypedDict("_Count", {"mpiop.kubeflow.org/restart-count": str}, total=False)


class _CountMeta(TypedDict, total=False):
    annotations: _Count | None


class _Counted(TypedDict, total=False):
    metadata: _CountMeta | None


_COUNTED: Final = msgspec.json.Decoder(_Counted)


def _job(obj: Object) -> Object:
    """Return a Job whose pod template is the annotation that counts restarts, and under `json` what may change while it is suspended."""
    spec = obj.get("spec") or {}
    text = msgspec.json.encode(spec.get("template") or {})
    counted = (_COUNTED.decode(text).get("metadata") or {}).get("annotations") or {}
    kept = {"metadata": {"annotations": _shortened(counted)}, "json": text if len(text) <= MOST_TEMPLATE_BYTES else None}
    return trimmed({**obj, "spec": {**spec, "template": kept}})


def _pod_group(obj: Object) -> Object:
    spec = _shortened(obj.get("spec") or {})
    if isinstance(resources := spec.get("minResources"), dict):
        first = dict(islice(cast("dict[str, Any]", resources).items(), _MOST_RESOURCES))
        spec["minResources"] = {_short(name): _short(value) for name, value in first.items()}
    return trimmed({**obj, "spec": spec})


def trims(specs: Specs) -> Mapping[Resource, Trim]:
    """Return the trim of each resource with another one than `trimmed`; `stored_specs` keeps those of the MPIJobs."""
    return {
        MPIJOBS: lambda mpijob: specs.trimmed(trimmed(mpijob)),
        PODS: _pod,
        SERVICES: _service,
        JOBS: _job,
        VOLCANO_POD_GROUPS: _pod_group,
        COSCHEDULING_POD_GROUPS: _pod_group,
        CONFIG_MAPS: lambda config_map: with_digests(trimmed(config_map)),
    }
