"""Kubernetes' own gang: a Workload, which says what the job is made of, and the PodGroup that its pods name.

Versions: `v1alpha2` is that of Kubernetes 1.36, `v1beta1` that of 1.37, which renamed the reference to the Workload, lets minCount be
changed, and takes a PriorityClass without a further feature gate. Source: k8s.io/api scheduling, v0.36.3 and v0.37.1.
"""

from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.gang.pod_group import min_member, priority_class
from mpiop.kube.objects import Object
from mpiop.kube.resources import NATIVE_POD_GROUPS_1_36, NATIVE_POD_GROUPS_1_37, WORKLOADS_1_36, WORKLOADS_1_37

TEMPLATE: Final = "gang"


def build_workload_1_36(job: MPIJob) -> Object:
    """Return the Workload, version v1alpha2."""
    return _workload(WORKLOADS_1_36.api_version, job, _template(job))


def build_pod_group_1_36(job: MPIJob) -> Object:
    """Return the PodGroup, version v1alpha2."""
    reference = {"workload": {"workloadName": names.pod_group_name(job), "podGroupTemplateName": TEMPLATE}}
    return _pod_group(NATIVE_POD_GROUPS_1_36.api_version, job, {"podGroupTemplateRef": reference, **_template(job)})


def build_workload_1_37(job: MPIJob) -> Object:
    """Return the Workload, version v1beta1."""
    return _workload(WORKLOADS_1_37.api_version, job, _template(job) | _priority(job))


def build_pod_group_1_37(job: MPIJob) -> Object:
    """Return the PodGroup, version v1beta1."""
    reference = {"workloadName": names.pod_group_name(job), "templateName": TEMPLATE}
    return _pod_group(NATIVE_POD_GROUPS_1_37.api_version, job, {"workloadRef": reference, **_template(job), **_priority(job)})


def _template(job: MPIJob) -> dict[str, Any]:
    # The API wants at least 1, with which a pod waits for none but itself.
    return {"schedulingPolicy": {"gang": {"minCount": max(1, min_member(job))}}}


def _priority(job: MPIJob) -> dict[str, Any]:
    name = priority_class(job)
    return {"priorityClassName": name} if name else {}


def _workload(api_version: str, job: MPIJob, template: dict[str, Any]) -> Object:
    return {
        "apiVersion": api_version,
        "kind": "Workload",
        "metadata": names.child_metadata(job, names.pod_group_name(job), names.selector(job)),
        "spec": {
            "controllerRef": {"apiGroup": c.GROUP, "kind": c.KIND, "name": job.name},
            "podGroupTemplates": [{"name": TEMPLATE, **template}],
        },
    }


def _pod_group(api_version: str, job: MPIJob, spec: dict[str, Any]) -> Object:
    return {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": names.child_metadata(job, names.pod_group_name(job), names.selector(job)),
        "spec": spec,
    }
