"""Kubernetes' own gangs, on the shapes that k8s.io/api publishes: v1alpha2 of 0.36, v1beta1 of 0.37."""

from dataclasses import replace
from typing import Any

import pytest

from example_jobs import PI, with_workers
from mpiop.api import constants as c
from mpiop.api.types import MPIJob, RunPolicy, SchedulingPolicy
from mpiop.controller import names
from mpiop.controller.gang.pod_group import (
    build_pod_group_1_36,
    build_pod_group_1_37,
    build_workload_1_36,
    build_workload_1_37,
)

URGENT = replace(PI, run_policy=RunPolicy(scheduling_policy=SchedulingPolicy(priority_class="urgent")))
METADATA = {
    "name": "pi",
    "namespace": "default",
    "labels": {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"},
    "ownerReferences": [names.owner_reference(PI.name, PI.uid)],
}
CONTROLLER = {"apiGroup": "kubeflow.org", "kind": "MPIJob", "name": "pi"}


def made(version: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": METADATA, "spec": spec}


def test_kubernetes_1_36() -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    # A PriorityClass would be refused without a feature gate of its own.
    templates = [{"name": "gang", **gang}]
    assert build_workload_1_36(URGENT) == made("v1alpha2", "Workload", controllerRef=CONTROLLER, podGroupTemplates=templates)
    reference = {"workload": {"workloadName": "pi", "podGroupTemplateName": "gang"}}
    assert build_pod_group_1_36(URGENT) == made("v1alpha2", "PodGroup", podGroupTemplateRef=reference, **gang)


def test_kubernetes_1_37() -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}, "priorityClassName": "urgent"}
    templates = [{"name": "gang", **gang}]
    assert build_workload_1_37(URGENT) == made("v1beta1", "Workload", controllerRef=CONTROLLER, podGroupTemplates=templates)
    reference = {"workloadName": "pi", "templateName": "gang"}
    assert build_pod_group_1_37(URGENT) == made("v1beta1", "PodGroup", workloadRef=reference, **gang)
    assert "priorityClassName" not in build_pod_group_1_37(PI)["spec"]


def of_at_least(members: int) -> MPIJob:
    return replace(PI, run_policy=RunPolicy(scheduling_policy=SchedulingPolicy(min_available=members)))


@pytest.mark.parametrize(
    ("job", "count"),
    [
        pytest.param(replace(PI, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY), 2, id="patient: workers only"),
        pytest.param(with_workers(PI, 0), 1, id="a launcher on its own"),
        pytest.param(of_at_least(2), 2, id="fewer desired"),
        pytest.param(of_at_least(0), 1, id="none desired is not allowed"),
    ],
)
def test_how_many(job: MPIJob, count: int) -> None:
    for group in (build_pod_group_1_36(job), build_pod_group_1_37(job)):
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": count}}
