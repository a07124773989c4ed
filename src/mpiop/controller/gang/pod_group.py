"""The objects that make the pods of a job a gang, one row for each kind and version.

Fields and defaults of Volcano's PodGroup and of the coscheduling plugin's (scheduler-plugins) are those of the reference operator's code;
its documents give the queue's annotation another name (docs/gang-scheduling.md).

Kubernetes' own gang is a Workload, which lists the parts of the job, and the PodGroup that its pods name. Kubernetes 1.36 has `v1alpha2`,
1.37 has `v1beta1`: it renamed the reference to the Workload, lets minCount be changed, and takes a PriorityClass
without a further feature gate. Source: k8s.io/api scheduling, v0.36.3 and v0.37.1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob, SchedulingPolicy
from mpiop.controller import names
from mpiop.controller.gang.members import Priorities, min_member, min_resources, priority_class
from mpiop.kube.objects import Object
from mpiop.kube.resources import (
    COSCHEDULING_POD_GROUPS,
    NATIVE_POD_GROUPS_1_36,
    NATIVE_POD_GROUPS_1_37,
    VOLCANO_POD_GROUPS,
    WORKLOADS_1_36,
    WORKLOADS_1_37,
    Resource,
)

_TEMPLATE: Final = "gang"


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of object of a gang.

    Attributes:
        build: Returns it as it should be.
        ours: Fields of its spec that follow the job: changed, and removed when the job does not set them.
        shared: Fields that follow the job where it sets them; else they keep the value that others gave them.
    """

    resource: Resource
    build: Callable[[MPIJob, Priorities], Object]
    ours: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


def build_volcano_pod_group(job: MPIJob, priorities: Priorities) -> Object:
    """Return Volcano's PodGroup. An absent queue is filled in by Volcano."""
    policy = job.run_policy.scheduling_policy or SchedulingPolicy()
    spec = _present(
        minMember=min_member(job),
        minResources=min_resources(job, priorities),
        queue=policy.queue or job.volcano_queue,
        priorityClassName=priority_class(job),
    )
    return _object(VOLCANO_POD_GROUPS, job, spec)


def build_coscheduling_pod_group(job: MPIJob, priorities: Priorities) -> Object:
    """Return the coscheduling plugin's PodGroup; a timeout of 0 leaves it to the plugin's own."""
    policy = job.run_policy.scheduling_policy or SchedulingPolicy()
    spec = _present(
        minMember=min_member(job),
        minResources=min_resources(job, priorities),
        scheduleTimeoutSeconds=policy.schedule_timeout_seconds or 0,
    )
    return _object(COSCHEDULING_POD_GROUPS, job, spec)


def build_workload_1_36(job: MPIJob) -> Object:
    """Return the Workload, version v1alpha2."""
    return _workload(WORKLOADS_1_36, job, _template(job))


def build_pod_group_1_36(job: MPIJob) -> Object:
    """Return the PodGroup, version v1alpha2."""
    reference = {"workload": {"workloadName": job.pod_group_name, "podGroupTemplateName": _TEMPLATE}}
    return _object(NATIVE_POD_GROUPS_1_36, job, {"podGroupTemplateRef": reference, **_template(job)})


def build_workload_1_37(job: MPIJob) -> Object:
    """Return the Workload, version v1beta1."""
    return _workload(WORKLOADS_1_37, job, _template(job) | _priority(job))


def build_pod_group_1_37(job: MPIJob) -> Object:
    """Return the PodGroup, version v1beta1."""
    reference = {"workloadName": job.pod_group_name, "templateName": _TEMPLATE}
    return _object(NATIVE_POD_GROUPS_1_37, job, {"workloadRef": reference, **_template(job), **_priority(job)})


def _template(job: MPIJob) -> dict[str, Any]:
    # The API wants at least 1, with which a pod waits for none but itself.
    return {"schedulingPolicy": {"gang": {"minCount": max(1, min_member(job))}}}


def _priority(job: MPIJob) -> dict[str, Any]:
    name = priority_class(job)
    return {"priorityClassName": name} if name else {}


def _workload(resource: Resource, job: MPIJob, template: dict[str, Any]) -> Object:
    spec = {
        "controllerRef": {"apiGroup": c.GROUP, "kind": c.KIND, "name": job.name},
        "podGroupTemplates": [{"name": _TEMPLATE, **template}],
    }
    return _object(resource, job, spec)


def _present(**spec: Any) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if value or value == 0}


def _object(resource: Resource, job: MPIJob, spec: dict[str, Any]) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": names.child_metadata(job, job.pod_group_name, names.selector(job.name)),
        "spec": spec,
    }


PARTS: Final[Mapping[Resource, Part]] = {
    part.resource: part
    for part in (
        Part(VOLCANO_POD_GROUPS, build_volcano_pod_group, ("minMember", "minResources", "priorityClassName"), shared=("queue",)),
        Part(COSCHEDULING_POD_GROUPS, build_coscheduling_pod_group, ("minMember", "minResources", "scheduleTimeoutSeconds")),
        # Neither kind may be changed in 1.36, and of the PodGroup alone minCount since: a change takes effect with the next start.
        Part(WORKLOADS_1_36, lambda job, _: build_workload_1_36(job)),
        Part(NATIVE_POD_GROUPS_1_36, lambda job, _: build_pod_group_1_36(job)),
        Part(WORKLOADS_1_37, lambda job, _: build_workload_1_37(job)),
        Part(NATIVE_POD_GROUPS_1_37, lambda job, _: build_pod_group_1_37(job), ("schedulingPolicy",)),
    )
}
