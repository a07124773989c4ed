"""The parts of Pods and Jobs that we read: only these are decoded and stored, and only their changes queue a job.

Every question about a whole object has the same answer about what is kept. Times are not in it, which no two pods have in common.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NotRequired, TypedDict

from mpiop.kube.objects import ObjectMeta
from mpiop.kube.resources import JOBS, PODS, Resource


class _Condition(TypedDict, total=False):
    type: str | None
    status: str | None
    reason: str | None
    message: str | None


class _PodSpec(TypedDict, total=False):
    nodeName: str | None


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
    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class _TemplateSpec(TypedDict, total=False):
    nodeSelector: dict[str, str] | None
    tolerations: list[Any] | None
    schedulingGates: list[Any] | None
    affinity: dict[str, Any] | None


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


class Job(TypedDict):
    """The part of a launcher Job that is followed: how it gets on, and of its template what may change (`plan/suspension.py`)."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[_JobSpec]
    status: NotRequired[_JobStatus]


PROJECTIONS: Final[Mapping[Resource, type[Any]]] = MappingProxyType({PODS: Pod, JOBS: Job})
"""The projection of each resource of which not all is kept."""
