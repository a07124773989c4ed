"""The gangs of Volcano and coscheduling: how many pods, what they need, and what the policy specifies."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from example_jobs import PI, container, template, with_annotations, with_workers
from mpiop.api import constants as c
from mpiop.api.types import MPIJob, RunPolicy, SchedulingPolicy
from mpiop.controller import names
from mpiop.controller.gang.members import min_member
from mpiop.controller.gang.pod_group import build_coscheduling_pod_group, build_volcano_pod_group

PRIORITIES = {"high": 1000, "low": -5, "zero": 0}


def asking(**resources: Any) -> dict[str, Any]:
    """Return a container that asks for these."""
    return container(resources={"requests": resources})


def job(workers: int = 3, *, launcher: dict[str, Any] | None = None, worker: dict[str, Any] | None = None, **policy: Any) -> MPIJob:
    """Return a job whose launcher asks for 1 CPU and whose workers ask for 4, by default."""
    made = with_workers(PI, workers)
    made = replace(made, launcher=replace(made.launcher, template=launcher or template(asking(cpu=1))))
    if made.worker:
        made = replace(made, worker=replace(made.worker, template=worker or template(asking(cpu="4"))))
    return replace(made, run_policy=RunPolicy(scheduling_policy=SchedulingPolicy(**policy))) if policy else made


def ranked(workers: int = 3, *, launcher: str | None = None, worker: str | None = None, **policy: Any) -> MPIJob:
    """Return such a job whose Pods have these priority classes."""
    of_launcher = template(asking(cpu=1), priorityClassName=launcher)
    return job(workers, launcher=of_launcher, worker=template(asking(cpu=4), priorityClassName=worker), **policy)


def patient(made: MPIJob) -> MPIJob:
    return replace(made, launcher_creation_policy=c.WAIT_FOR_WORKERS_READY)


class Case(NamedTuple):
    id: str
    job: MPIJob
    members: int
    resources: dict[str, str] | None


LIMITED = container(resources={"requests": {"cpu": "750m"}, "limits": {"cpu": "9", "nvidia.com/gpu": 1}})
TWO = template(asking(cpu="250m", memory="1Gi"), LIMITED)
CASES = [
    Case("launcher and workers", job(), 4, {"cpu": "13"}),
    Case("a launcher on its own", job(0), 1, {"cpu": "1"}),
    Case("the launcher as a worker is one pod too", replace(job(), run_launcher_as_worker=True), 4, {"cpu": "13"}),
    Case(
        "all containers count, and limits where a request is missing",
        job(1, worker=TWO),
        2,
        {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"},
    ),
    Case("limits alone", job(1, worker=template(container(resources={"limits": {"memory": "2Gi"}}))), 2, {"cpu": "1", "memory": "2Gi"}),
    Case("nothing asked for", job(launcher=template(), worker=template()), 4, None),
    Case(
        "init containers and overhead are not counted",
        job(1, worker=template(asking(cpu=2), initContainers=[asking(cpu=64)], overhead={"cpu": 8})),
        2,
        {"cpu": "3"},
    ),
    Case(
        "what is no quantity is left to the API server",
        job(1, worker=template(asking(cpu="much", memory="1Gi"))),
        2,
        {"cpu": "1", "memory": "1Gi"},
    ),
    Case("fewer desired: the launcher before workers of its rank", job(min_available=2), 2, {"cpu": "5"}),
    Case("fewer desired: one", job(min_available=1), 1, {"cpu": "1"}),
    Case("fewer desired: the more important workers first", ranked(worker="high", min_available=2), 2, {"cpu": "8"}),
    Case("fewer desired: the more important launcher first", ranked(launcher="high", min_available=2), 2, {"cpu": "5"}),
    Case("fewer desired: a launcher of less importance comes last", ranked(launcher="low", min_available=3), 3, {"cpu": "12"}),
    Case("an unknown PriorityClass counts 0", ranked(worker="nobody's", min_available=1), 1, {"cpu": "1"}),
    Case("as many desired as there are", job(min_available=4), 4, {"cpu": "13"}),
    Case("more desired than there are: passed on", job(min_available=10), 10, {"cpu": "13"}),
    Case("none desired", job(min_available=0), 0, None),
    Case("the policy's resources", job(min_resources={"cpu": "3000m"}), 4, {"cpu": "3000m"}),
    Case("the policy's resources, none", job(min_resources={}), 4, None),
    Case("the policy's resources for fewer", job(min_available=2, min_resources={"cpu": "7"}), 2, {"cpu": "7"}),
    Case("patient: no launcher is waited for", patient(job()), 3, {"cpu": "12"}),
    Case("patient: whatever the policy says", patient(job(min_available=4)), 3, {"cpu": "12"}),
    Case("patient: fewer desired", patient(job(min_available=2)), 2, {"cpu": "8"}),
    Case("patient: a launcher on its own is the gang", patient(job(0)), 1, {"cpu": "1"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_members_and_their_resources(case: Case) -> None:
    assert min_member(case.job) == case.members
    for build in (build_volcano_pod_group, build_coscheduling_pod_group):
        spec = build(case.job, PRIORITIES)["spec"]
        assert spec["minMember"] == case.members
        assert spec.get("minResources") == case.resources


def test_volcano() -> None:
    assert build_volcano_pod_group(job(), {}) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "pi",
            "namespace": "default",
            "labels": {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"},
            "ownerReferences": [names.owner_reference(PI.name, PI.uid)],
        },
        "spec": {"minMember": 4, "minResources": {"cpu": "13"}},
    }


def test_coscheduling() -> None:
    group = build_coscheduling_pod_group(job(), {})
    assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert group["metadata"] == build_volcano_pod_group(job(), {})["metadata"]
    assert group["spec"] == {"minMember": 4, "minResources": {"cpu": "13"}, "scheduleTimeoutSeconds": 0}


@pytest.mark.parametrize(
    ("said", "annotations", "queue"),
    [
        ("", {}, None),
        ("", {"scheduling.volcano.sh/queue-name": "annotated"}, "annotated"),
        ("said", {"scheduling.volcano.sh/queue-name": "annotated"}, "said"),
        ("said", {}, "said"),
    ],
)
def test_the_queue(said: str, annotations: dict[str, str], queue: str | None) -> None:
    made = with_annotations(job(queue=said), annotations)
    assert build_volcano_pod_group(made, {})["spec"].get("queue") == queue
    assert "queue" not in build_coscheduling_pod_group(made, {})["spec"]


@pytest.mark.parametrize(
    ("said", "launcher", "worker", "want"),
    [("p", "l", "w", "p"), ("", "l", "w", "l"), ("", None, "w", "w"), ("", "", "w", "w"), ("", None, None, None)],
)
def test_the_priority_class(said: str, launcher: str | None, worker: str | None, want: str | None) -> None:
    made = ranked(launcher=launcher, worker=worker, priority_class=said)
    assert build_volcano_pod_group(made, {})["spec"].get("priorityClassName") == want
    assert "priorityClassName" not in build_coscheduling_pod_group(made, {})["spec"]


def test_without_workers_the_priority_class_is_the_launchers() -> None:
    assert build_volcano_pod_group(ranked(0, launcher="l"), {})["spec"]["priorityClassName"] == "l"


def test_the_timeout() -> None:
    made = job(schedule_timeout_seconds=30)
    assert build_coscheduling_pod_group(made, {})["spec"]["scheduleTimeoutSeconds"] == 30
    assert "scheduleTimeoutSeconds" not in build_volcano_pod_group(made, {})["spec"]
