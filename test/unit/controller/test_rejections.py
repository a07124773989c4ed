"""Workers that their kubelet rejects before any container starts: they are created again, more and more slowly, and nothing is lost."""

import asyncio
import itertools
from typing import Any

import pytest

from example_children import build_worker_pod, worker
from example_jobs import PI, container, template, with_worker
from mpiop.api import constants as c
from mpiop.clock import parse_time
from mpiop.controller import names
from mpiop.controller.objects import BuildOptions
from mpiop.controller.observe import pods
from mpiop.controller.observe.rejections import is_rejected, least_age_seconds
from mpiop.kube.objects import Key, annotations_of
from mpiop.kube.resources import PODS
from unit.controller.test_restarts import BUDGET, WORKER, Mortal, Story, running

WORDS = "Pod was rejected: Node didn't have enough resource: cpu, requested: 10000, used: 250, capacity: 2000"


def reject(story: Story, name: str = WORKER.name, reason: str = "OutOfcpu") -> None:
    """Let the kubelet reject a worker, as it does when a Pod with a `nodeName` has no room there."""
    pod = story.leader.put_metadata(PODS, name, finalizers=[])
    story.cluster.server.put(PODS, {**pod, "status": {"phase": "Failed", "reason": reason, "message": WORDS}})


async def reject_each(story: Story, seconds: int, *workers: str) -> dict[str, list[float]]:
    """Let time pass in which the kubelet rejects each new Pod of the workers; return when Pods of each name were created."""
    made: dict[str, dict[str, float]] = {name: {} for name in workers}
    for _ in range(seconds):
        for name in workers:
            pod = story.cluster.client.server.storage.get(PODS, Key("default", name))
            if pod is not None and not pods.is_finished(pod):
                made[name][pod["metadata"]["uid"]] = story.leader.clock.monotonic()
                reject(story, name)
        await story.sync()
        story.cluster.control_jobs()
        await asyncio.sleep(1)
    return {name: list(times.values()) for name, times in made.items()}


ENDS: list[tuple[str, dict[str, Any], bool]] = [
    ("no room", {"reason": "OutOfcpu"}, True),
    ("no room for an extended resource", {"reason": "OutOfnvidia.com/gpu"}, True),
    ("its device is gone", {"reason": "UnexpectedAdmissionError"}, True),
    ("no aligned cores", {"reason": "TopologyAffinityError"}, True),
    ("its node was labelled anew", {"reason": "NodeAffinity"}, True),
    ("its node shuts down", {"reason": "NodeShutdown"}, True),
    ("it was evicted", {"reason": "Evicted"}, False),
    ("it made room for a critical Pod", {"reason": "Preempting"}, False),
    ("its own deadline passed before it started", {"reason": "DeadlineExceeded"}, False),
    ("its node shut down beneath it", {"reason": "Terminated"}, False),
    ("it failed, and nobody says why", {}, False),
    ("its container ended", {"reason": "Any", "containerStatuses": [{"name": "worker", "state": {"terminated": {"exitCode": 1}}}]}, False),
    ("its init container ended", {"reason": "Any", "initContainerStatuses": [{"name": "i", "state": {"terminated": {}}}]}, False),
    ("its container may have run", {"reason": "Any", "containerStatuses": [{"name": "worker", "state": {}}]}, False),
    ("it is taken away", {"reason": "Any", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}, False),
]


@pytest.mark.parametrize(("status", "is_so"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_worker_is_rejected_if_it_failed_and_no_container_can_have_run(status: dict[str, Any], *, is_so: bool) -> None:
    pod = worker(0, "Failed")
    pod["status"] = {"phase": "Failed", **status}
    assert is_rejected(pod) is is_so
    pod["status"]["phase"] = "Running"
    assert not is_rejected(pod)


@pytest.mark.parametrize(("noted", "seconds"), [("", 10), ("0", 10), ("1", 20), ("4", 160), ("5", 300), ("9" * 18, 300), ("9" * 500, 10)])
def test_the_delay_of_the_next_pod_is_bounded_whatever_the_annotation_has(noted: str, seconds: float) -> None:
    pod = worker(0, "Failed")
    pod["metadata"]["annotations"] = {names.ANNOTATION_REJECTIONS: noted}
    pod["status"] = {"phase": "Failed", "reason": "OutOfcpu"}
    assert least_age_seconds(pod) == seconds


@pytest.mark.parametrize("annotations", [{}, BUDGET, {**BUDGET, "restart-on": "Any"}], ids=["no budget", "a budget", "restart-on Any"])
@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_a_rejected_worker_is_created_again_more_and_more_slowly(annotations: dict[str, str], policy: str) -> None:
    story = Story(annotations=annotations, launcherCreationPolicy=policy)
    await story.sync()
    made = await reject_each(story, 1300, WORKER.name)
    gaps = [round(later - earlier, -1) for earlier, later in itertools.pairwise(made[WORKER.name])]
    assert gaps == [10, 20, 40, 80, 160, 300, 300, 300]
    assert annotations_of(story.leader.one(PODS, WORKER.name))["mpiop.kubeflow.org/rejections"] == "8"
    assert (story.status.restarts, story.status.attempts, story.status.is_finished) == (0, (), False)
    await story.go_on(310)  # the node has room
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert story.condition(c.CONDITION_STALLED) == ("False", "Resolved")
    assert story.status.restarts == 0


async def test_a_rejected_worker_is_reported_in_the_kubelets_words_with_the_time_of_its_next_pod() -> None:
    story = Story()
    await story.sync()
    shown = set[tuple[str, str]]()
    for _ in range(100):
        await reject_each(story, 1, WORKER.name)
        shown.add(story.condition(c.CONDITION_RECONCILING))
    assert shown == {("True", "WorkerRejected")}, "not resolved before a kubelet accepts a Pod"
    assert story.leader.recorder.reasons.count("WorkerRejected") == 1
    waits = story.leader.condition(c.CONDITION_RECONCILING)
    pod = story.leader.one(PODS, WORKER.name)
    assert waits.message.startswith(f"worker pi-worker-1 was rejected, 4 times in a row: OutOfcpu: {WORDS}. The next Pod is created at ")
    due = parse_time(waits.message.partition("created at ")[2][:20])
    assert (due - parse_time(pod["metadata"]["creationTimestamp"])).total_seconds() == 80
    assert "its log" not in waits.message
    assert story.status.summary.state == "WorkerRejected"


@pytest.mark.parametrize("writes", range(6))
async def test_the_count_survives_a_leader_that_dies_before_any_write(writes: int) -> None:
    story = Story()
    await story.sync()
    await reject_each(story, 40, WORKER.name)
    before = int(annotations_of(story.leader.one(PODS, WORKER.name))["mpiop.kubeflow.org/rejections"])
    story.leader = Mortal(story.cluster, writes)
    made = await reject_each(story, 400, WORKER.name)
    after = int(annotations_of(story.leader.one(PODS, WORKER.name))["mpiop.kubeflow.org/rejections"])
    assert len(made[WORKER.name]) <= 6, "after 0, 10, 30, 70, 150 and 310 s at most"
    assert after > before or writes == 1, "between the delete and the create, as no replica that watches takes over here"


async def test_the_count_is_kept_for_each_of_many_workers() -> None:
    story = Story(workers=40)
    await story.sync()
    workers = [f"pi-worker-{index}" for index in range(40)]
    made = await reject_each(story, 160, *workers)
    assert {len(times) for times in made.values()} == {5}, "after 0, 10, 30, 70 and 150 s"


async def test_a_rejected_pod_that_is_held_keeps_its_count() -> None:
    story = Story()
    await story.sync()
    await reject_each(story, 5, WORKER.name)
    story.leader.put_metadata(PODS, WORKER.name, finalizers=["example.com/held"])
    await reject_each(story, 30, WORKER.name)
    assert story.condition(c.CONDITION_RECONCILING) == ("True", "WorkerRejected")
    assert not any("AlreadyExists" in write for write in story.leader.writes)
    story.leader.put_metadata(PODS, WORKER.name, finalizers=[])
    story.cluster.server.remove(PODS, WORKER)
    await story.sync()
    assert annotations_of(story.leader.one(PODS, WORKER.name))["mpiop.kubeflow.org/rejections"] == "1"


async def test_a_node_that_comes_back_and_rejects_its_worker_costs_a_restart_if_there_is_a_budget() -> None:
    story = await running(annotations=BUDGET)
    reject(story, reason="UnexpectedAdmissionError")
    await story.go_on(30)
    assert [row.reason for row in story.status.last_restarts] == ["WorkerRejected"]
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert len(story.cluster.workers()) == 3


async def test_a_worker_that_is_rejected_beneath_mpirun_is_created_again_and_the_launcher_decides() -> None:
    story = await running()
    reject(story, reason="UnexpectedAdmissionError")
    await story.sync()
    assert story.condition(c.CONDITION_DEGRADED) == ("True", "WorkerRejected")
    await story.go_on(30)
    assert (story.status.restarts, story.suspensions) == (0, [False])
    assert story.condition(c.CONDITION_DEGRADED) == ("False", "Resolved")
    assert pods.is_ready(story.leader.one(PODS, WORKER.name))


async def test_the_time_of_the_next_pod_is_kept_though_nothing_else_happens() -> None:
    story = Story()
    await story.sync()
    reject(story)
    uid = story.leader.one(PODS, WORKER.name)["metadata"]["uid"]
    await story.leader.wait_on_timers(12)
    assert story.leader.one(PODS, WORKER.name)["metadata"]["uid"] != uid


async def test_a_suspended_job_creates_no_rejected_worker_again() -> None:
    story = Story(runPolicy={"cleanPodPolicy": "None"})
    await story.sync()
    reject(story)
    await story.sync()
    await story.suspend(20)
    assert story.cluster.workers() == []
    assert story.condition(c.CONDITION_RECONCILING) == ("", "")


def test_an_annotation_of_a_template_that_was_copied_from_a_pod_counts_for_nothing() -> None:
    job = with_worker(PI, {**template(container()), "metadata": {"annotations": {names.ANNOTATION_REJECTIONS: "7"}}})
    assert names.ANNOTATION_REJECTIONS not in annotations_of(build_worker_pod(job, 0, BuildOptions()))
