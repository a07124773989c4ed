"""Kubernetes' own gangs, on the shapes that k8s.io/api publishes: v1alpha2 of 0.36, v1beta1 of 0.37."""

from dataclasses import replace

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


def test_kubernetes_1_36() -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    # A PriorityClass would be refused without a feature gate of its own.
    assert build_workload_1_36(URGENT) == {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": METADATA,
        "spec": {"controllerRef": CONTROLLER, "podGroupTemplates": [{"name": "gang", **gang}]},
    }
    assert build_pod_group_1_36(URGENT) == {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": METADATA,
        "spec": {"podGroupTemplateRef": {"workload": {"workloadName": "pi", "podGroupTemplateName": "gang"}}, **gang},
    }


def test_kubernetes_1_37() -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}, "priorityClassName": "urgent"}
    assert build_workload_1_37(URGENT) == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": METADATA,
        "spec": {"controllerRef": CONTROLLER, "podGroupTemplates": [{"name": "gang", **gang}]},
    }
    assert build_pod_group_1_37(URGENT) == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": METADATA,
        "spec": {"workloadRef": {"workloadName": "pi", "templateName": "gang"}, **gang},
    }
    assert "priorityClassName" not in build_pod_group_1_37(PI)["spec"]


@pytest.mark.parametrize(
    ("job", "count"),
    [
        pytest.param(replace(PI, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY), 2, id="patient: workers only"),
        pytest.param(with_workers(PI, 0), 1, id="a launcher on its own"),
        pytest.param(replace(PI, run_policy=RunPolicy(scheduling_policy=SchedulingPolicy(min_available=2))), 2, id="fewer desired"),
        pytest.param(
            replace(PI, run_policy=RunPolicy(scheduling_policy=SchedulingPolicy(min_available=0))), 1, id="none desired is not allowed"
        ),
    ],
)
def test_how_many(job: MPIJob, count: int) -> None:
    for group in (build_pod_group_1_36(job), build_pod_group_1_37(job)):
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": count}}
