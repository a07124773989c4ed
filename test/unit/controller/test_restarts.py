"""A job that loses Pods, from the loss to the next attempt, with leaders that come and go at each step."""

import asyncio
import itertools
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fakes.cluster import Cluster
from fakes.world import KEY, World, mpijob
from mpiop.api import constants as c
from mpiop.api.status_types import MPIJobStatus
from mpiop.clock import format_time
from mpiop.controller.observe import pods
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, annotations_of, key_of
from mpiop.kube.resources import JOBS, MPIJOBS, PODS
from mpiop.workqueue import NotReady
from virtual_time import VirtualClock

WORKER = Key("default", "pi-worker-1")
UNREACHABLE = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
BUDGET = {"max-restarts": "3"}


class Mortal(World):
    """An operator that dies before its write of that number."""

    def __init__(self, cluster: Cluster, writes: int = 10**6) -> None:
        super().__init__(client=cluster.client)
        self._writes_left = writes

    def _fence(self) -> None:
        self._writes_left -= 1
        self.leads = self._writes_left >= 0
        super()._fence()


class Story:
    """A job, the cluster, and who leads at the moment."""

    def __init__(self, *, annotations: dict[str, str] | None = None, policy: str = "OnFailure", workers: int = 3, **spec: Any) -> None:
        """Submit a job whose launcher has that `restartPolicy`."""
        self.cluster = Cluster(VirtualClock(), Random(1))  # noqa: S311 - a reproducible cluster, no secret
        self.leader = Mortal(self.cluster)
        self.policy = policy
        job: Any = mpijob(workers=workers, **spec)
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = policy
        job["metadata"]["annotations"] = {f"mpiop.kubeflow.org/{name}": text for name, text in (annotations or {}).items()}
        self.cluster.server.put(MPIJOBS, job)

    async def go_on(self, rounds: int = 12, *, seconds: float = 1.0) -> None:
        """Let operator, kubelets and controllers work, `seconds` a round."""
        for _ in range(rounds):
            await self.sync()
            self.cluster.end_terminating_pods()
            self.cluster.control_jobs()
            self.cluster.start_pods()
            await asyncio.sleep(seconds)

    async def go_on_after(self, happen: "Loss", rounds: int = 20) -> None:
        """Let a loss happen, and all work on."""
        happen(self)
        await self.go_on(rounds)

    async def suspend(self, rounds: int) -> None:
        """Suspend as a user, and let all work on."""
        await self.leader.edit({"spec": {"runPolicy": {"suspend": True}}})
        await self.go_on(rounds)

    async def resume(self, rounds: int) -> None:
        """Resume as a user, and let all work on."""
        await self.leader.edit({"spec": {"runPolicy": {"suspend": False}}})
        await self.go_on(rounds)

    async def sync(self) -> None:
        """Sync; a leader that dies in it is followed by another."""
        try:
            await self.leader.sync()
        except* (PermissionError, KubeError, NotReady):
            pass
        if not self.leader.leads:
            self.leader = Mortal(self.cluster)

    def change_worker(self, **status: Any) -> None:
        self.cluster.server.put_status(PODS, WORKER, status)

    @property
    def status(self) -> MPIJobStatus:
        return self.leader.status

    @property
    def launcher_pods(self) -> list[Object]:
        """Return the pods of the launcher that there are."""
        return [pod for pod in self.cluster.pods() if "-launcher-" in key_of(pod).name]

    @property
    def running_launchers(self) -> list[Object]:
        """Return those that run."""
        return [pod for pod in self.launcher_pods if pod["status"]["phase"] == "Running"]

    @property
    def suspensions(self) -> list[bool]:
        """Return the values that `suspend` of the launcher Job has had."""
        values = [bool(change.new["spec"].get("suspend")) for change in self.cluster.server.storage.history if change.resource is JOBS]
        return [value for index, value in enumerate(values) if index == 0 or value != values[index - 1]]

    def condition(self, type_: str) -> tuple[str, str]:
        row = self.status.condition(type_)
        return ("", "") if row is None else (row.status, row.reason)


Loss = Callable[[Story], None]


async def running(**arguments: Any) -> Story:
    """Return the story of a job that runs."""
    story = Story(**arguments)
    await story.go_on()
    assert story.status.is_true(c.CONDITION_RUNNING)
    return story


def delete(story: Story) -> None:
    story.cluster.server.remove(PODS, WORKER)


def evict(story: Story) -> None:
    story.change_worker(phase="Failed", reason="Evicted", message="The node was low on resource: memory.", conditions=[])


def preempt(story: Story) -> None:
    story.change_worker(conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])
    story.cluster.server.writes.remove_or_mark(PODS, WORKER)


def lose_node(story: Story) -> None:
    story.change_worker(conditions=UNREACHABLE)


def end_sshd(story: Story) -> None:
    story.change_worker(phase="Succeeded", conditions=[])


def lose_launcher(story: Story) -> None:
    story.cluster.server.put_status(PODS, key_of(story.launcher_pods[0]), {"conditions": UNREACHABLE})


def evict_launcher(story: Story) -> None:
    story.cluster.server.put_status(PODS, key_of(story.launcher_pods[0]), {"phase": "Failed", "reason": "Evicted"})


LOSSES: dict[str, tuple[Loss, str]] = {
    "deleted": (delete, "WorkerDeleted"),
    "evicted": (evict, "Disrupted"),
    "evicted, and no reason reported": (end_sshd, "WorkerEnded"),
    "preempted": (preempt, "Disrupted"),
    "node lost": (lose_node, "NodeLost"),
    "launcher's node lost": (lose_launcher, "NodeLost"),
    "launcher evicted": (evict_launcher, "Disrupted"),
}
in_each_loss = pytest.mark.parametrize(("lose", "reason"), LOSSES.values(), ids=LOSSES)


@pytest.mark.parametrize("writes", range(14))
@in_each_loss
async def test_each_loss_restarts_the_job_once_whichever_write_was_the_last_of_its_leader(lose: Loss, reason: str, writes: int) -> None:
    story = await running(annotations=BUDGET)
    first = key_of(story.launcher_pods[0]).name
    lose(story)
    story.leader = Mortal(story.cluster, writes)
    await story.sync()
    await story.go_on(20)
    restart = story.status.last_restarts[-1]
    assert (story.status.restarts, restart.reason, restart.launcher_pods) == (1, reason, (first,))
    assert story.suspensions == [False, True, False]
    assert [annotations_of(pod)["mpiop.kubeflow.org/restart-count"] for pod in story.running_launchers] == ["1"]
    assert len(story.cluster.workers()) == 3
    assert story.condition(c.CONDITION_RESTARTING) == ("False", "Restarted")
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert story.status.condition(c.CONDITION_SUSPENDED) is None


@pytest.mark.parametrize("scope", ["Failed", "All"])
async def test_a_restart_replaces_the_lost_workers_or_all(scope: str) -> None:
    story = await running(annotations={**BUDGET, "restart": scope})
    before = {pod["metadata"]["uid"] for pod in story.cluster.workers()}
    await story.go_on_after(evict)
    kept = before & {pod["metadata"]["uid"] for pod in story.cluster.workers()}
    assert len(kept) == (2 if scope == "Failed" else 0)
    assert story.status.restarts == 1


async def test_a_pod_that_its_lost_node_cannot_end_goes_by_force() -> None:
    story = await running(annotations=BUDGET)
    first = story.leader.one(PODS, WORKER.name)["metadata"]["uid"]
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    story.change_worker(conditions=[*UNREACHABLE, taken])
    story.cluster.server.writes.remove_or_mark(PODS, WORKER)
    await _settle(story, 4)
    assert story.status.last_restarts[0].reason == "NodeLost"
    assert story.leader.one(PODS, WORKER.name)["metadata"]["uid"] != first


async def test_a_pod_on_a_lost_node_is_deleted_without_its_node_and_the_next_ones_avoid_it() -> None:
    story = await running(annotations={**BUDGET, "avoid-failed-nodes": "true"})
    node = story.leader.one(PODS, WORKER.name)["spec"]["nodeName"]
    lose_node(story)
    await _settle(story, 8)  # no kubelet ends anything on that node
    assert story.status.failed_nodes == (node,)
    rule = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    assert rule in _required_terms(story.leader.one(PODS, WORKER.name)["spec"])[0]["matchFields"]
    await story.go_on(20)
    assert [rule in _required_terms(pod["spec"])[0]["matchFields"] for pod in story.running_launchers] == [True]


def _required_terms(spec: dict[str, Any]) -> list[dict[str, Any]]:
    terms: list[dict[str, Any]] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return terms


@pytest.mark.parametrize("stored", [True, False], ids=["CRD of this version", "an older CRD"])
async def test_a_failed_node_is_avoided_for_as_long_as_its_restart_counts(*, stored: bool) -> None:
    story = await running(annotations={**BUDGET, "avoid-failed-nodes": "true", "restart-window": "1h"})
    nodes = list[str]()
    for worker in ("pi-worker-1", "pi-worker-2"):
        pod = story.leader.one(PODS, worker)
        moved = {**pod, "spec": {**pod["spec"], "nodeName": f"bad-{worker}"}, "status": {**pod["status"], "conditions": UNREACHABLE}}
        story.cluster.server.put(PODS, moved)
        nodes.append(f"bad-{worker}")
        await story.go_on(20)
        if not stored:
            restarts = [{k: v for k, v in row.items() if k != "failedNodes"} for row in story.cluster.job["status"]["lastRestarts"]]
            await story.cluster.client.patch(MPIJOBS, KEY, {"status": {"lastRestarts": restarts}}, subresource="status")
        await story.leader.wait_on_timers(1700)
    assert story.status.failed_nodes == tuple(nodes)
    await story.leader.wait_on_timers(200)
    assert story.status.failed_nodes == (tuple(nodes[1:]) if stored else tuple(nodes)), "not known of which restart"
    await story.leader.wait_on_timers(1800)
    assert story.status.failed_nodes == ()
    assert await story.leader.sync() is None


async def test_when_the_budget_is_used_up_the_job_fails_and_says_why_each_try_ended() -> None:
    story = await running(annotations={"max-restarts": "2"})
    for lose in (delete, evict, lose_node):
        await story.go_on_after(lose)
    failed = story.leader.condition(c.CONDITION_FAILED)
    assert (failed.reason, story.status.restarts) == ("ReachedMaxRestarts", 2)
    assert failed.message.startswith("Restart limit of 2 reached after 3 attempts. attempt 3: NodeLost: ")
    assert "; attempt 2: Disrupted: " in failed.message
    assert "; attempt 1: WorkerDeleted: " in failed.message
    assert story.suspensions[-1], "nothing runs on after the end"


async def test_a_window_refills_the_budget() -> None:
    story = await running(annotations={"max-restarts": "1", "restart-window": "1h"})
    for _ in range(3):
        await story.go_on_after(delete)
        await asyncio.sleep(3600)
    assert story.status.restarts == 3
    assert not story.status.is_finished
    for _ in range(2):
        await story.go_on_after(delete)
    assert story.condition(c.CONDITION_FAILED) == ("True", "ReachedMaxRestarts")


@pytest.mark.parametrize(("implementation", "restarts"), [("Intel", 1), ("MPICH", 1), ("OpenMPI", 0)])
async def test_a_try_that_hangs_without_its_worker_is_ended_after_a_while_if_it_surely_cannot_go_on(
    implementation: str, restarts: int
) -> None:
    story = await running(mpiImplementation=implementation)
    await story.go_on_after(delete)
    assert story.status.restarts == 0
    assert story.condition(c.CONDITION_DEGRADED) == (("True", "WorkerDeleted") if restarts else ("False", "Resolved"))
    await story.go_on(80)
    assert story.status.restarts == restarts
    assert story.condition(c.CONDITION_DEGRADED) == ("False", "Resolved")
    assert story.suspensions == ([False, True, False] if restarts else [False])


async def test_a_node_that_answers_again_in_time_is_no_loss() -> None:
    story = await running(mpiImplementation="Intel")
    lose_node(story)
    await story.sync()
    assert story.condition(c.CONDITION_DEGRADED) == ("True", "NodeLost")
    assert story.status.lost_worker is not None
    await story.go_on(80)  # its kubelet reports that the worker is Ready
    assert (story.condition(c.CONDITION_DEGRADED), story.status.lost_worker) == (("False", "Resolved"), None)
    assert story.status.restarts == 0


@pytest.mark.parametrize("lose", [evict, lose_node])
async def test_a_worker_that_is_lost_before_the_launcher_has_called_it_costs_no_restart(lose: Loss) -> None:
    story = Story(annotations=BUDGET)
    await story.sync()
    story.cluster.start_pods()
    await story.go_on_after(lose)
    assert (story.status.restarts, story.condition(c.CONDITION_RUNNING)[0]) == (0, "True")


async def test_a_job_that_did_not_ask_is_restarted_as_often_as_it_may_be_tried_again() -> None:
    story = await running(mpiImplementation="Intel", runPolicy={"backoffLimit": 1})
    for _ in range(2):
        await story.go_on_after(delete, 90)
    assert story.condition(c.CONDITION_FAILED) == ("True", "ReachedMaxRestarts")
    assert story.status.restarts == 1


async def test_workers_that_a_job_is_scaled_up_or_down_by_are_no_loss() -> None:
    story = await running(annotations=BUDGET, workers=2)
    for replicas in (4, 1, 3):
        await story.leader.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}})
        await story.go_on(20)
    story.cluster.server.remove(PODS, Key("default", "pi-worker-2"))
    await story.go_on(20)
    assert (story.status.restarts, story.status.lost_worker) == (0, None)
    assert story.status.condition(c.CONDITION_DEGRADED) is None or not story.status.is_true(c.CONDITION_DEGRADED)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_errors_of_the_program_are_counted_by_its_backoff_limit_and_losses_are_not(policy: str) -> None:
    story = await running(annotations=BUDGET, runPolicy={"backoffLimit": 1}, policy=policy)
    fail(story)
    await story.go_on_after(delete)  # for which the launcher failed
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    if policy == "Never":
        await story.go_on_after(fail)
        assert not story.status.is_finished, "the first failure of the program, the one before had another cause"
    await story.go_on_after(fail)
    assert story.leader.condition(c.CONDITION_FAILED).reason.startswith("BackoffLimitExceeded/Error")
    assert story.status.restarts == 1


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_a_launcher_that_fails_just_before_its_worker_is_said_to_be_evicted_is_no_error_of_the_program(policy: str) -> None:
    story = await running(annotations=BUDGET, runPolicy={"backoffLimit": 0}, policy=policy)
    fail(story)
    for _ in range(3):
        await story.sync()
        await asyncio.sleep(1)
    await story.go_on_after(evict)
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    await story.go_on_after(fail)
    assert story.condition(c.CONDITION_FAILED) == ("True", "BackoffLimitExceeded/Error")


async def test_a_leader_that_comes_after_the_next_launcher_still_sees_that_a_worker_was_lost() -> None:
    story = await running(annotations=BUDGET, runPolicy={"backoffLimit": 0}, policy="Never")
    first = key_of(story.launcher_pods[0]).name
    delete(story)
    fail(story)
    for _ in range(12):  # nobody leads
        story.cluster.control_jobs()
        await asyncio.sleep(1)
    assert len(story.launcher_pods) == 2
    story.leader = Mortal(story.cluster)
    await story.go_on(20)
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    assert first in story.status.last_restarts[-1].launcher_pods
    await story.go_on_after(fail)
    assert story.condition(c.CONDITION_FAILED) == ("True", "BackoffLimitExceeded/Error"), "no worker is lost this time"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
@pytest.mark.parametrize("clean_pod_policy", ["None", "All"])
async def test_a_job_whose_program_has_failed_too_often_rests(policy: str, clean_pod_policy: str) -> None:
    story = await running(annotations=BUDGET, runPolicy={"backoffLimit": 0, "cleanPodPolicy": clean_pod_policy}, policy=policy)
    fail(story)
    await _settle(story, 14)  # no kubelet ends the launcher's pod, which is there as long as it likes
    assert story.status.is_finished
    assert await story.leader.sync() is None


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_a_job_whose_program_failed_as_it_was_suspended_rests(policy: str) -> None:
    story = await failed_before_running(annotations=BUDGET, policy=policy)
    await story.leader.edit({"spec": {"runPolicy": {"suspend": True}}})
    await _settle(story, 14)
    assert not story.status.is_finished
    assert await story.leader.sync() != 0


async def test_a_program_that_had_failed_too_often_when_it_was_suspended_does_not_run_again() -> None:
    story = await failed_before_running(annotations=BUDGET, policy="Never")
    await story.leader.edit({"spec": {"runPolicy": {"suspend": True}}})
    await _settle(story, 14)
    await story.leader.edit({"spec": {"runPolicy": {"suspend": False}}})
    await story.sync()
    await story.sync()
    assert story.condition(c.CONDITION_FAILED) == ("True", "BackoffLimitExceeded/Error")
    assert len(story.launcher_pods) == 1


async def failed_before_running(*, code: int = 1, **arguments: Any) -> Story:
    """Return the story of a job whose launcher has failed once too often while its workers are still starting."""
    story = Story(runPolicy={"backoffLimit": 0}, **arguments)
    await _settle(story, 3)
    for pod in story.launcher_pods:
        story.cluster.server.put_status(PODS, key_of(pod), {"phase": "Running"})
    await story.sync()
    fail(story, code)
    return story


async def test_a_container_that_is_restarted_once_too_often_before_the_workers_run_is_stopped_as_it_starts() -> None:
    story = await failed_before_running(annotations=BUDGET, policy="OnFailure")
    await story.sync()
    assert story.condition(c.CONDITION_FAILED) == ("True", "BackoffLimitExceeded/Error")
    await story.sync()
    assert story.suspensions[-1]


async def _attempts_without_workers(story: Story) -> int:
    """Let the launcher fail again and again, as soon as the Job controller's back-off allows; return how often its program ran."""
    ran = set[str]()
    for round_ in range(200):
        await story.sync()
        suspended = story.cluster.server.objects(JOBS) and story.suspensions[-1]
        if suspended or round_ % 10 == 0:  # 10 s after a failure, at least
            story.cluster.control_jobs()
        if story.launcher_pods and story.launcher_pods[-1]["status"]["phase"] == "Pending":
            story.cluster.server.put_status(PODS, key_of(story.launcher_pods[-1]), {"phase": "Running"})
            ran.add(key_of(story.launcher_pods[-1]).name)
            await story.sync()
            fail(story, 2)
        await asyncio.sleep(1)
    assert story.condition(c.CONDITION_RUNNING)[0] == "False", "it never ran with its workers"
    assert story.suspensions[-1], "nothing runs on after the end"
    return len(ran)


@pytest.mark.parametrize("limit", [0, 1, 3])
@pytest.mark.parametrize("annotations", [BUDGET, {**BUDGET, "restart-on": "ExitCodes=3"}], ids=["Infrastructure", "another exit code"])
async def test_before_its_workers_run_a_program_is_attempted_as_often_as_its_backoff_limit_allows(
    limit: int, annotations: dict[str, str]
) -> None:
    story = Story(annotations=annotations, runPolicy={"backoffLimit": limit}, policy="Never")
    assert await _attempts_without_workers(story) == 1 + limit
    assert story.condition(c.CONDITION_FAILED) == ("True", "BackoffLimitExceeded/Error")
    assert story.status.restarts == 0


@pytest.mark.parametrize("causes", ["Any", "ExitCodes=2"])
async def test_before_its_workers_run_a_failure_costs_the_budget_too_if_the_job_says_so(causes: str) -> None:
    story = await failed_before_running(annotations={"max-restarts": "1", "restart-on": causes}, policy="Never", code=2)
    await _settle(story, 3)
    assert [row.reason for row in story.status.last_restarts] == ["Error"]
    assert story.status.summary.state == "Restarting"
    await story.go_on(20)
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    fail(story, code=2)
    await story.go_on(5)
    assert story.condition(c.CONDITION_FAILED) == ("True", "ReachedMaxRestarts")


@pytest.mark.parametrize(("causes", "restarts"), [("Any", 1), ("Infrastructure", 0)])
async def test_a_worker_that_fails_before_the_launcher_has_called_it_costs_a_restart_if_the_job_says_so(causes: str, restarts: int) -> None:
    story = Story(annotations={**BUDGET, "restart-on": causes})
    await _settle(story, 2)
    story.cluster.start_pods()
    story.change_worker(phase="Failed", containerStatuses=[{"name": "worker", "state": _terminated(story, 1)}], conditions=[])
    _remove_finalizers(story, story.leader.one(PODS, WORKER.name))
    await story.go_on(30)
    assert [row.reason for row in story.status.last_restarts] == ["WorkerEnded"] * restarts
    assert story.condition(c.CONDITION_RUNNING)[0] == ("True" if restarts else "")


async def test_a_failure_from_before_a_suspension_costs_nothing_after_the_resume() -> None:
    story = await running(annotations={"max-restarts": "1", "restart-on": "Any"}, policy="Never")
    fail(story)
    await story.suspend(12)
    await story.resume(20)
    assert (story.status.restarts, story.condition(c.CONDITION_RUNNING)[0]) == (0, "True")


async def test_without_a_budget_failures_and_restarts_together_do_not_exceed_the_backoff_limit() -> None:
    story = await running(mpiImplementation="Intel", runPolicy={"backoffLimit": 2}, policy="Never")
    await story.go_on_after(fail)
    await story.go_on_after(delete, 90)  # and `mpiexec` hangs
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    assert story.leader.one(JOBS, "pi-launcher")["spec"]["backoffLimit"] == 1
    await story.go_on_after(delete, 90)
    assert story.condition(c.CONDITION_FAILED) == ("True", "ReachedMaxRestarts")
    assert story.status.restarts == 1


async def _settle(story: Story, rounds: int) -> None:
    """Let operator and controllers work, and no kubelet."""
    for _ in range(rounds):
        await story.sync()
        story.cluster.control_jobs()
        await asyncio.sleep(1)


async def test_after_a_resume_the_failures_of_the_run_before_are_not_told_again() -> None:
    story = await running(runPolicy={"backoffLimit": 6}, policy="Never")
    await story.go_on(20)
    await story.go_on_after(fail, 3)
    assert len(story.status.attempts) == 1
    await story.suspend(6)
    await story.resume(6)
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert (story.status.last_failure, story.status.attempts) == (None, ())
    fail(story, code=3)
    await story.go_on(3)
    assert [each.exit_code for each in story.status.attempts] == [3]


def fail_for_want_of_a_worker(story: Story) -> None:
    fail(story)
    delete(story)


@pytest.mark.parametrize("lose", [fail_for_want_of_a_worker, evict_launcher])
async def test_a_pod_of_the_try_before_does_not_lead_to_another_restart_while_there_is_no_new_one(lose: Loss) -> None:
    story = await running(annotations=BUDGET, policy="Never")
    lose(story)
    for _ in range(12):
        await story.sync()
        if story.suspensions == [False, True]:  # the Job controller carries out the suspension, and is slow to make the next pod
            story.cluster.control_jobs()
        story.cluster.start_pods()
        await asyncio.sleep(1)
    assert story.suspensions == [False, True, False]
    assert len(story.launcher_pods) == 1, "the one that failed"
    assert story.status.restarts == 1


def fail(story: Story, code: int = 1) -> None:
    """Let `mpirun` fail: its container is started again in the same pod, or the pod has failed."""
    pod, is_final = story.launcher_pods[-1], story.policy == "Never"
    ended = _terminated(story, code)
    row = {"state": ended} if is_final else {"restartCount": 1, "lastState": ended}
    phase = "Failed" if is_final else "Running"
    story.cluster.server.put_status(PODS, key_of(pod), {"phase": phase, "containerStatuses": [{"name": "launcher"} | row]})
    if is_final:
        _remove_finalizers(story, pod)


def _remove_finalizers(story: Story, pod: Object) -> None:
    story.leader.put_metadata(PODS, key_of(pod).name, finalizers=[])


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
@pytest.mark.parametrize(("causes", "code", "restarts"), [("ExitCodes=3,42", 42, 1), ("ExitCodes=3,42", 7, 0), ("Any", 7, 1)])
async def test_a_failure_costs_the_budget_by_its_exit_code_or_whatever_it_is(policy: str, causes: str, code: int, restarts: int) -> None:
    story = await running(annotations={"max-restarts": "1", "restart-on": causes}, runPolicy={"backoffLimit": 0}, policy=policy)
    fail(story, code)
    await story.go_on(20)
    assert story.status.restarts == restarts
    assert story.condition(c.CONDITION_FAILED) == (("", "") if restarts else ("True", "BackoffLimitExceeded/Error"))


async def suspended_in_a_restart() -> Story:
    story = await running(annotations=BUDGET)
    delete(story)
    await story.sync()
    await story.suspend(20)
    return story


async def test_a_user_may_suspend_a_job_in_the_middle_of_a_restart() -> None:
    story = await suspended_in_a_restart()
    assert story.condition(c.CONDITION_RESTARTING) == ("False", "Suspended")
    assert story.condition(c.CONDITION_SUSPENDED)[0] == "True"
    await story.resume(20)
    assert story.status.restarts == 1
    assert [annotations_of(pod)["mpiop.kubeflow.org/restart-count"] for pod in story.launcher_pods] == ["1"]


async def test_a_deadline_holds_over_all_tries() -> None:
    story = await running(annotations=BUDGET, runPolicy={"activeDeadlineSeconds": 1000})
    await asyncio.sleep(300)
    await story.go_on_after(delete)
    assert 600 < story.leader.one(JOBS, "pi-launcher")["spec"]["activeDeadlineSeconds"] <= 700


HELD = "example.com/held"


def hold(story: Story) -> None:
    """Let a worker be deleted, and stay."""
    story.leader.put_metadata(PODS, WORKER.name, finalizers=[HELD])
    story.cluster.server.writes.remove_or_mark(PODS, WORKER)


@pytest.mark.parametrize("scope", ["Failed", "All"])
async def test_a_restart_that_waits_for_a_pod_which_does_not_go_reports_it(scope: str) -> None:
    story = await running(annotations={**BUDGET, "restart": scope})
    await story.go_on_after(hold, 50)
    assert story.condition(c.CONDITION_DEGRADED) == ("True", "WorkerDeleted") or story.condition(c.CONDITION_DEGRADED)[0] == ""
    await story.leader.wait_on_timers(20)
    degraded = story.leader.condition(c.CONDITION_DEGRADED)
    assert (degraded.status, degraded.reason) == ("True", "StuckTerminating")
    assert HELD in degraded.message
    assert "node-" in degraded.message
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert story.condition(c.CONDITION_RESTARTING)[0] == "True"
    _remove_finalizers(story, story.leader.one(PODS, WORKER.name))
    story.cluster.end_terminating_pods()
    await story.go_on(20)
    assert story.condition(c.CONDITION_DEGRADED) == ("False", "Resolved")
    assert story.status.restarts == 1


def lose_without_a_node_for_another(story: Story) -> None:
    delete(story)
    story.cluster.start_pods = lambda: None  # type: ignore[method-assign]  # the scheduler finds none


def lose_without_a_job_controller(story: Story) -> None:
    delete(story)
    story.cluster.control_jobs = lambda: None  # type: ignore[method-assign]  # it is down


WAITS: dict[str, Loss] = {
    "a pod that does not go": hold,
    "a node": lose_without_a_node_for_another,
    "the Job controller": lose_without_a_job_controller,
}


@pytest.mark.parametrize("lose", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_a_deadline_ends_a_restart_whatever_it_waits_for(lose: Loss, policy: str) -> None:
    story = await running(
        annotations=BUDGET, runPolicy={"activeDeadlineSeconds": 600, "cleanPodPolicy": "All"}, launcherCreationPolicy=policy
    )
    began = story.status.start_time
    assert began is not None
    await story.go_on_after(lose, 5)
    assert story.condition(c.CONDITION_RESTARTING)[0] == "True"
    passed = (story.leader.clock.now() - began).total_seconds()
    await story.leader.wait_on_timers(595 - passed)
    assert not story.status.is_finished
    await story.leader.wait_on_timers(30)
    assert story.condition(c.CONDITION_FAILED) == ("True", "DeadlineExceeded")
    assert story.leader.condition(c.CONDITION_FAILED).message.startswith("Job was active longer than specified deadline")
    assert story.status.duration is not None
    assert 600 <= story.status.duration.total_seconds() <= 615
    assert story.condition(c.CONDITION_RESTARTING)[0] == "False"
    assert story.suspensions[-1], "nothing runs on after the end"


async def test_a_deadline_that_a_restart_waited_for_long_is_not_longer_for_that() -> None:
    story = await running(annotations=BUDGET, runPolicy={"activeDeadlineSeconds": 600})
    await story.go_on_after(hold, 400)
    _remove_finalizers(story, story.leader.one(PODS, WORKER.name))
    await story.go_on(20)
    assert story.condition(c.CONDITION_RESTARTING) == ("False", "Restarted")
    await story.leader.wait_on_timers(210)
    assert story.condition(c.CONDITION_FAILED) == ("True", "DeadlineExceeded")


async def test_the_time_for_which_a_launcher_waited_to_be_created_is_not_part_of_its_deadline() -> None:
    story = Story(annotations=BUDGET, runPolicy={"activeDeadlineSeconds": 600}, launcherCreationPolicy="WaitForWorkersReady")
    for _ in range(3):
        await story.sync()
        await asyncio.sleep(1000)  # the queue is long
    await story.go_on()
    await story.go_on_after(delete, 30)
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    assert 560 < story.leader.one(JOBS, "pi-launcher")["spec"]["activeDeadlineSeconds"] <= 600


async def test_a_resume_begins_the_deadline_anew_after_a_restart() -> None:
    story = await running(annotations=BUDGET, runPolicy={"activeDeadlineSeconds": 600})
    await story.go_on_after(delete)
    for suspend_or_resume in (story.suspend, story.resume):
        await suspend_or_resume(20)
        await story.leader.wait_on_timers(550)
    assert (story.status.restarts, story.status.is_finished) == (1, False)


async def test_a_launcher_is_told_how_many_restarts_there_were() -> None:
    story = await running(annotations=BUDGET)
    container = story.launcher_pods[0]["spec"]["containers"][0]
    source = {"fieldRef": {"fieldPath": "metadata.annotations['mpiop.kubeflow.org/restart-count']"}}
    assert {"name": "MPIOP_RESTART_COUNT", "valueFrom": source} in container["env"]
    assert annotations_of(story.launcher_pods[0])["mpiop.kubeflow.org/restart-count"] == "0"


async def test_events_a_metric_and_a_summary_report_a_restart() -> None:
    story = await running(annotations=BUDGET)
    story.leader.recorder.reported.clear()
    await story.go_on_after(delete)
    [restarting, restarted] = story.leader.recorder.reported
    assert restarting[:2] == ("Warning", "Restarting")
    assert re.fullmatch(r"restart 1 of at most 3: worker pi-worker-1 on node node-\d was deleted while the launcher ran", restarting[2])
    assert restarted == ("Normal", "Restarted", "The launcher was resumed after restart 1.")
    assert b'mpiop_job_restarts_total{reason="WorkerDeleted"} 1.0' in story.leader.metrics.encoder("")[0]()
    assert (story.status.summary.state, story.status.summary.restarts) == ("Running", "1")


async def test_nothing_is_restarted_over_and_over_if_an_older_crd_drops_the_count() -> None:
    story = await running(annotations=BUDGET)
    delete(story)
    await story.sync()
    for name in ("restarts", "lastRestarts"):
        await story.cluster.client.patch(MPIJOBS, KEY, {"status": {name: None}}, subresource="status")
    await story.go_on(20)
    assert story.condition(c.CONDITION_RESTARTING) == ("False", "NotStored")
    assert story.suspensions == [False]
    assert story.leader.recorder.reasons.count("Restarting") == 1


async def test_a_wrong_annotation_does_not_take_a_job_that_runs_out_of_the_operators_hands() -> None:
    story = await running(annotations={"restart-window": "1h", "max-restarts": "2"}, runPolicy={"cleanPodPolicy": "Running"})
    await story.leader.edit({"metadata": {"annotations": {"mpiop.kubeflow.org/max-restarts": "often"}}})
    await story.go_on(5)
    assert story.condition(c.CONDITION_DEGRADED) == ("True", "AnnotationIgnored")
    assert 'max-restarts]: Invalid value: "often"' in story.leader.condition(c.CONDITION_DEGRADED).message
    await story.leader.edit({"metadata": {"annotations": {"mpiop.kubeflow.org/max-restarts": "1"}}})
    await story.go_on(2)
    assert story.condition(c.CONDITION_DEGRADED) == ("False", "Resolved")
    await story.leader.edit({"metadata": {"annotations": {"mpiop.kubeflow.org/max-restarts": None}}})  # and the window has no effect now
    await story.suspend(6)
    assert story.condition(c.CONDITION_SUSPENDED)[0] == "True"
    assert story.cluster.pods() == []
    await story.resume(6)
    assert story.condition(c.CONDITION_STALLED) == ("True", "ValidationError"), "nothing runs, so it is refused as at the start"
    assert story.cluster.pods() == []


async def test_an_earlier_pod_of_the_launcher_is_not_taken_for_the_next_try_after_a_restart() -> None:
    story = await running(annotations={"max-restarts": "1"}, policy="Never")
    await story.go_on(20)
    fail(story)  # an error of the program
    await story.go_on(130)  # too long ago to be explained by the loss
    evict(story)
    for _ in range(40):
        await story.sync()
        story.cluster.end_terminating_pods()
        if not story.suspensions[-1]:  # the Job controller takes longer than the operator
            await story.sync()
        story.cluster.control_jobs()
        story.cluster.start_pods()
        await asyncio.sleep(1)
    assert (story.status.restarts, story.status.is_finished) == (1, False)
    assert story.suspensions == [False, True, False]


def _end_launcher(story: Story, phase: str, main: dict[str, Any], sidecar: dict[str, Any]) -> None:
    pod = story.launcher_pods[-1]
    rows = {"containerStatuses": [{"name": "launcher"} | main], "initContainerStatuses": [{"name": "logs"} | sidecar]}
    story.cluster.server.put_status(PODS, key_of(pod), {"phase": phase, **rows})
    if phase != "Running":
        _remove_finalizers(story, pod)


def _terminated(story: Story, code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": format_time(story.leader.clock.now())}}


async def test_a_sidecar_that_the_kubelet_ends_after_mpirun_is_no_failure() -> None:
    story = await running()
    _end_launcher(story, "Succeeded", {"state": _terminated(story, 0)}, {"state": _terminated(story, 137)})
    await story.go_on(5)
    assert story.condition(c.CONDITION_SUCCEEDED)[0] == "True"
    assert (story.status.last_failure, story.status.attempts, story.status.summary.restarts) == (None, (), "0")


async def test_the_exit_code_that_costs_the_budget_is_that_of_mpirun_not_of_its_sidecar() -> None:
    story = await running(annotations={"max-restarts": "1", "restart-on": "ExitCodes=42"}, runPolicy={"backoffLimit": 0}, policy="Never")
    _end_launcher(story, "Failed", {"state": _terminated(story, 42)}, {"state": _terminated(story, 143)})
    await story.go_on(20)
    assert (story.status.restarts, story.status.is_finished) == (1, False)


async def test_a_sidecar_that_is_restarted_beside_mpirun_costs_nothing() -> None:
    story = await running(annotations={"max-restarts": "1", "restart-on": "Any"})
    crashed = {"restartCount": 1, "state": {"running": {}}, "lastState": _terminated(story, 1)}
    _end_launcher(story, "Running", {"state": {"running": {}}}, crashed)
    await story.go_on(20)
    assert (story.status.restarts, story.status.last_failure) == (0, None)


async def test_a_program_that_has_succeeded_is_not_run_again_though_its_pod_still_ends() -> None:
    story = await running(annotations=BUDGET)
    [launcher] = story.launcher_pods
    _end_launcher(story, "Running", {"state": _terminated(story, 0)}, {"state": {"running": {}}})
    await story.sync()
    await story.go_on_after(evict)
    assert story.status.restarts == 0
    assert [key_of(pod) for pod in story.launcher_pods] == [key_of(launcher)]


async def test_a_worker_whose_replacement_is_evicted_at_once_is_replaced_every_ten_seconds() -> None:
    story = await running(annotations={"max-restarts": "1"})
    evict(story)
    _remove_finalizers(story, story.leader.one(PODS, WORKER.name))
    made = dict[str, float]()
    for _ in range(120):
        worker = story.cluster.client.server.storage.get(PODS, WORKER)
        if worker is not None and not pods.is_finished(worker):
            made[worker["metadata"]["uid"]] = story.leader.clock.monotonic()
            evict(story)
        await story.sync()
        story.cluster.control_jobs()
        story.cluster.end_terminating_pods()
        await asyncio.sleep(0.5)
    gaps = [later - earlier for earlier, later in itertools.pairwise(made.values())][1:]
    assert len(gaps) >= 3
    assert all(9 <= gap <= 12 for gap in gaps), gaps


async def test_a_restart_that_keeps_workers_leaves_an_edit_pending() -> None:
    story = await running(annotations=BUDGET)
    await story.leader.edit({"spec": {"slotsPerWorker": 2}})
    await story.go_on(3)
    assert story.condition(c.CONDITION_UPDATE_PENDING)[0] == "True"
    await story.go_on_after(delete)
    assert story.status.restarts == 1
    assert story.condition(c.CONDITION_UPDATE_PENDING)[0] == "True"


async def test_failures_that_a_restart_explains_do_not_count_for_the_jobs_own_limit() -> None:
    story = await running(annotations={"max-restarts": "10"}, runPolicy={"backoffLimit": 2}, policy="Never")
    for restarts in range(1, 6):
        await story.go_on(130)
        for _ in range(2):
            await story.go_on_after(fail, 10)
        await story.go_on_after(evict)
        assert (story.status.restarts, story.status.is_finished) == (restarts, False)


async def test_the_first_failure_is_told_though_the_first_status_was_stored_late() -> None:
    story = Story(runPolicy={"backoffLimit": 0})
    refused = StatusError("test", {"code": 500, "reason": "InternalError"})
    story.cluster.client.refuse("patch", MPIJOBS, "", refused, times=16)
    await story.go_on(40)
    fail(story, 3)
    await story.sync()
    assert [each.exit_code for each in story.status.attempts] == [3]


async def test_ssh_that_a_mount_of_a_running_job_would_cover_is_ignored() -> None:
    story = Story()
    mount = {"name": "data", "mountPath": "/opt"}
    worker = story.cluster.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    template = {"spec": {"containers": [{**worker["containers"][0], "volumeMounts": [mount]}]}}
    await story.leader.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}})
    await story.go_on()
    await story.leader.edit({"metadata": {"annotations": {"mpiop.kubeflow.org/ssh": "Injected"}}})
    await story.go_on(3)
    assert story.condition(c.CONDITION_DEGRADED) == ("True", "AnnotationIgnored")


async def test_a_suspend_in_the_middle_of_a_restart_leaves_no_edit_pending() -> None:
    story = await suspended_in_a_restart()
    worker = {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}
    await story.leader.edit({"spec": {"mpiReplicaSpecs": {"Worker": worker}, "runPolicy": {"suspend": False}}})
    await story.go_on(30)
    assert story.condition(c.CONDITION_RUNNING)[0] == "True"
    assert story.condition(c.CONDITION_UPDATE_PENDING)[0] != "True"
