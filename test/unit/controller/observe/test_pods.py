"""What is kept of a pod is enough to answer every question about it."""

from typing import Any, cast

import pytest

from fakes.semantics import projected
from mpiop.controller.observe import pods, projections
from mpiop.kube.objects import Object

STAMP = "2026-01-01T00:00:00Z"
ENDED = {"terminated": {"exitCode": 3, "reason": "Error", "message": "oh", "finishedAt": STAMP}}


def pod(**status: Any) -> Object:
    metadata = {"name": "a", "namespace": "n", "annotations": {"x": "y"}, "labels": {"l": "m"}}
    spec = {"nodeName": "node-1", "containers": [{"name": "c", "env": []}]}
    return cast("Object", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})


PODS = {
    "new": pod(),
    "unschedulable": pod(
        phase="Pending",
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no", "lastTransitionTime": STAMP}],
    ),
    "running": pod(
        phase="Running",
        podIP="10.0.0.1",
        startTime=STAMP,
        conditions=[{"type": kind, "status": "True", "lastTransitionTime": STAMP} for kind in ("Ready", "Initialized", "PodScheduled")],
        containerStatuses=[{"name": "c", "image": "i", "ready": True, "containerID": "x", "state": {"running": {"startedAt": STAMP}}}],
    ),
    "waiting": pod(
        phase="Pending",
        initContainerStatuses=[{"name": "i", "image": "i", "state": ENDED, "lastState": {}}],
        containerStatuses=[{"name": "c", "image": "j", "state": {"waiting": {"reason": "ErrImagePull"}}, "lastState": ENDED}],
    ),
    "evicted": pod(phase="Failed", reason="Evicted", message="disk"),
    "of a broken kubelet": pod(conditions=None, containerStatuses=None),
}


def answers(one: Object) -> list[object]:
    statuses = list(pods.container_statuses(one))
    rows = [pods.condition(one, kind) or {} for kind in ("Ready", "PodScheduled")]
    return [
        *(question(one) for question in (pods.phase, pods.address, pods.is_running, pods.is_ready, pods.is_finished, pods.is_evicted)),
        *({name: row.get(name) for name in ("status", "reason", "message")} for row in rows),
        *((row.get("name"), row.get("image"), pods.waiting(row), pods.terminated(row), pods.last_terminated(row)) for row in statuses),
        one.get("spec", {}).get("nodeName"),
        one["metadata"],
    ]


@pytest.mark.parametrize("one", PODS.values(), ids=PODS.keys())
def test_a_shaped_pod_gives_the_same_answers(one: Object) -> None:
    assert answers(projected(one, projections.Pod)) == answers(one)


def test_what_changes_from_pod_to_pod_and_nobody_reads_is_not_kept() -> None:
    kept = projected(PODS["running"], projections.Pod)
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "Initialized", "PodScheduled")]
    assert kept.get("spec") == {"nodeName": "node-1"}
    assert kept.get("status") == {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": conditions,
        "containerStatuses": [{"name": "c", "image": "i", "state": {}}],
    }
