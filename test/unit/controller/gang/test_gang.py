"""A job with gang scheduling: its PodGroup comes before its pods, follows its policy, and goes with its pods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from example_children import TERMINATING, observed, stored, worker
from example_jobs import PI
from fakes.mutations import MutationError
from fakes.world import KEY, WATCHED, World
from mpiop.api import constants as c
from mpiop.controller.gang.gang import Gang, candidates
from mpiop.controller.gang.pod_group import build_volcano_pod_group
from mpiop.controller.objects import BuildOptions
from mpiop.controller.plan.desired import desired_state
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.informers.store import Store
from mpiop.kube.objects import Object
from mpiop.kube.resources import JOBS, MPIJOBS, NATIVE_POD_GROUPS_1_36, PODS, VOLCANO_POD_GROUPS, Resource
from virtual_time import EPOCH


class GangWorld(World):
    """A world in which the API server serves the `number`th API of a scheduler; None: none of them."""

    def __init__(self, scheduler: str, number: int | None = 0) -> None:
        super().__init__(options=BuildOptions(gang_scheduler=scheduler))
        self.gang = Gang(scheduler)
        self.build(self.gang)
        if number is not None:
            self.serve(number)

    def serve(self, number: int = 0) -> None:
        """Let the API server serve it, and the operator know."""
        api = candidates(self.gang.scheduler)[number]
        for part in api:
            self.client.server.served.add(part.resource)
            self.gang.listers[part.resource] = self.stores[part.resource] = Store()
        self.gang.api = api

    def refresh(self, *resources: Resource) -> None:
        super().refresh(*(resources or (*WATCHED, *(part.resource for part in self.gang.api or ()))))

    @property
    def group(self) -> Object:
        """Return the PodGroup."""
        assert self.gang.api is not None
        return self.one(self.gang.api[-1].resource, "pi")

    async def policy(self, **fields: Any) -> None:
        """Change the scheduling policy as a user, and sync until that is done."""
        await self.change(runPolicy={"schedulingPolicy": fields})


async def gang(scheduler: str, number: int = 0, **spec: Any) -> GangWorld:
    """Return a world with the `number`th API of the scheduler, in which a job was submitted and synced."""
    world = GangWorld(scheduler, number)
    await world.submit(**spec)
    await world.sync_until_idle()
    return world


SCHEDULERS = [
    pytest.param("volcano", 0, ["PodGroup"], id="Volcano"),
    pytest.param("my-scheduler", 0, ["PodGroup"], id="coscheduling"),
    pytest.param("kubernetes", 0, ["Workload", "PodGroup"], id="Kubernetes 1.37"),
    pytest.param("kubernetes", 1, ["Workload", "PodGroup"], id="Kubernetes 1.36"),
]


@pytest.mark.parametrize(("scheduler", "number", "kinds"), SCHEDULERS)
async def test_the_gang_is_made_before_its_pods_and_only_once(scheduler: str, number: int, kinds: list[str]) -> None:
    world = await gang(scheduler, number)
    made = [write.split()[1] for write in world.writes if write.startswith("create")]
    assert made[: len(kinds) + 3] == ["Secret", "Service", "ConfigMap", *kinds]
    assert made[len(kinds) + 3 :] == ["Pod", "Pod", "Job"]
    assert all(f" {kind} " not in write for write in world.writes if not write.startswith("create") for kind in kinds)
    for pod in world.client.server.objects(PODS):
        assert named(scheduler, pod) == "pi"
    assert named(scheduler, world.one(JOBS, "pi-launcher")["spec"]["template"]) == "pi"


def named(scheduler: str, pod: Mapping[str, Any]) -> object:
    """Return the PodGroup that a pod reports it belongs to, and check whom it is to be placed by."""
    metadata, spec = pod["metadata"], pod["spec"]
    if scheduler == "kubernetes":
        assert "schedulerName" not in spec
        return spec["schedulingGroup"]["podGroupName"]
    assert spec["schedulerName"] == scheduler
    if scheduler == "volcano":
        return metadata["annotations"]["scheduling.k8s.io/group-name"]
    return metadata["labels"]["scheduling.x-k8s.io/pod-group"]


async def test_an_edited_policy_changes_the_group_and_what_others_filled_in_stays() -> None:
    world = await gang("volcano", runPolicy={"schedulingPolicy": {"minResources": {"cpu": "8", "memory": "1Gi"}, "priorityClass": "high"}})
    world.client.server.put(VOLCANO_POD_GROUPS, {**world.group, "spec": {**world.group["spec"], "queue": "default", "more": 1}})
    await world.policy(minAvailable=2, minResources={"cpu": "4", "memory": None}, priorityClass=None)
    assert world.group["spec"] == {"minMember": 2, "minResources": {"cpu": "4"}, "queue": "default", "more": 1}
    await world.policy(minResources=None, queue="mine")
    assert world.group["spec"] == {"minMember": 2, "queue": "mine", "more": 1}


async def test_scaling_changes_how_many_are_waited_for() -> None:
    world = await gang("my-scheduler")
    await world.change(mpiReplicaSpecs={"Worker": {"replicas": 5}})
    assert world.group["spec"]["minMember"] == 6


async def test_I38_no_sync_changes_a_stored_group() -> None:
    world = await gang("volcano")
    await world.policy(minAvailable=1)
    stored_group = world.stores[VOLCANO_POD_GROUPS].get(KEY)
    assert stored_group is not None
    stored_group["spec"] = {"changed": "in place"}
    with pytest.raises(MutationError, match="default/pi"):  # whether each of these syncs was checked
        await world.sync()


@pytest.mark.parametrize(("number", "count"), [pytest.param(0, 2, id="1.37: followed"), pytest.param(1, 3, id="1.36: at the next start")])
async def test_a_changed_number_in_native_gangs(number: int, count: int) -> None:
    world = await gang("kubernetes", number)
    await world.policy(minAvailable=2, priorityClass="high")
    assert world.group["spec"]["schedulingPolicy"]["gang"]["minCount"] == count
    await world.suspend()
    await world.resume()
    assert world.group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2


@pytest.mark.parametrize(("scheduler", "number", "kinds"), SCHEDULERS)
async def test_a_suspended_job_has_no_gang(scheduler: str, number: int, kinds: list[str]) -> None:
    world = await gang(scheduler, number, runPolicy={"suspend": True})
    resources = [part.resource for part in world.gang.api or ()]
    assert [world.names(resource) for resource in resources] == [[]] * len(kinds)
    await world.resume()
    assert [world.names(resource) for resource in resources] == [["pi"]] * len(kinds)
    await world.suspend()
    assert [world.names(resource) for resource in resources] == [[]] * len(kinds)


@pytest.mark.parametrize(("policy", "left"), [(c.CLEAN_NONE, ["pi"]), (c.CLEAN_RUNNING, []), (c.CLEAN_ALL, [])])
async def test_at_the_end_the_gang_goes_with_the_workers(policy: str, left: list[str]) -> None:
    world = await gang("volcano", runPolicy={"cleanPodPolicy": policy})
    await world.end()
    assert world.status.is_finished
    assert world.names(VOLCANO_POD_GROUPS) == left


async def test_a_group_of_somebody_elses_is_not_touched_and_no_pod_comes_before_it_is_gone() -> None:
    world = GangWorld("volcano")
    world.client.server.put(VOLCANO_POD_GROUPS, {"metadata": {"name": "pi", "namespace": "default"}, "spec": {"minMember": 9}})
    await world.submit()
    await world.sync_refused()
    await world.sync_refused()
    assert world.group["spec"] == {"minMember": 9}
    assert world.names(PODS) == []
    stalled = world.condition(c.CONDITION_STALLED)
    assert stalled.message.startswith('Resource "pi" of Kind "PodGroup" already exists and is not managed by MPIJob. ')
    world.client.server.remove(VOLCANO_POD_GROUPS, KEY)
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]


async def test_a_group_that_the_go_operator_made_is_taken_over() -> None:
    world = GangWorld("volcano")
    job = await world.submit()
    owner = {"apiVersion": c.API_VERSION, "kind": c.KIND, "name": "pi", "uid": job["metadata"].get("uid"), "controller": True}
    metadata = {"name": "pi", "namespace": "default", "ownerReferences": [owner]}
    made = world.client.server.put(VOLCANO_POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 3}})
    await world.sync_until_idle()
    assert world.group["metadata"]["uid"] == made["metadata"]["uid"]
    assert world.group["metadata"]["labels"][c.LABEL_OPERATOR_NAME] == c.OPERATOR_NAME
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]


@pytest.mark.parametrize(
    ("scheduler", "advice"),
    [
        ("volcano", "podgroups of scheduling.volcano.sh: install Volcano"),
        ("kubernetes", "GenericWorkload"),
        ("volcanoo", "install the coscheduling plugin of scheduler-plugins under the name 'volcanoo'"),
    ],
)
async def test_without_the_api_a_job_says_what_to_do_and_starts_when_it_is_there(scheduler: str, advice: str) -> None:
    world = GangWorld(scheduler, None)
    await world.submit()
    await world.sync_refused()
    await world.sync_refused()
    assert world.names(PODS) == []
    stalled = world.condition(c.CONDITION_RECONCILING)
    assert (stalled.status, stalled.reason) == ("True", "GangApiMissing")
    assert advice in stalled.message
    assert world.recorder.reasons == ["MPIJobCreated", "GangApiMissing"]
    world.serve()
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert world.status.summary.state == "Starting"


async def test_without_the_api_what_runs_already_runs_on_to_its_end() -> None:
    world = await gang("volcano", runPolicy={"cleanPodPolicy": "Running"})
    world.start_workers()
    world.gang.api = None
    world.end_launcher()
    for _ in range(3):
        await world.sync()
    assert world.status.is_finished
    assert world.names(PODS) == []


async def test_an_api_that_was_removed_later_is_reported_too() -> None:
    world = GangWorld("volcano")
    world.client.server.served.remove(VOLCANO_POD_GROUPS)
    await world.submit()
    await world.sync_refused()
    assert world.condition(c.CONDITION_RECONCILING).reason == "GangApiMissing"


def leaving(group: Object) -> Object:
    """Return the group as it waits for a finalizer."""
    return {**group, "metadata": {**group["metadata"], **TERMINATING, "finalizers": ["scheduling.k8s.io/podgroup-protection"]}}  # type: ignore[typeddict-item]


async def test_a_resumed_job_waits_until_the_old_group_is_gone() -> None:
    world = await gang("kubernetes", 1)
    group = world.group
    await world.suspend()
    world.client.server.put(NATIVE_POD_GROUPS_1_36, leaving(group))
    await world.edit({"metadata": {"labels": {"any": "change"}}})
    await world.sync_until_idle()
    assert world.writes == [], "what is on its way out is not deleted again"
    await world.resume()
    assert world.names(PODS) == [], "pods that name the old group would keep it from going"
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is True
    world.client.server.remove(NATIVE_POD_GROUPS_1_36, KEY)
    await world.sync_until_idle()
    assert world.names(NATIVE_POD_GROUPS_1_36) == ["pi"]
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is False


async def test_a_job_that_runs_does_not_wait_for_a_group_that_somebody_deletes() -> None:
    world = await gang("kubernetes", 1)
    world.start_workers()
    world.client.server.put(NATIVE_POD_GROUPS_1_36, leaving(world.group))
    world.client.server.remove(PODS, KEY._replace(name="pi-worker-0"))
    await world.sync_until_idle()
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]
    assert world.one(JOBS, "pi-launcher")["spec"]["suspend"] is False


def test_workers_that_have_ended_are_kept_while_the_old_group_goes() -> None:
    ended = worker(0, "Failed")
    observation = replace(observed(ended), gang={VOLCANO_POD_GROUPS: stored(build_volcano_pod_group(PI, {}), "group", **TERMINATING)})
    desired = desired_state(launcher_attempt(PI, observation), EPOCH)
    assert desired is not None
    assert (desired.worker_count, desired.keep_worker(ended)) == (0, True)


async def test_the_group_of_a_deleted_job_of_the_same_name_is_waited_for() -> None:
    world = await gang("volcano")
    world.client.server.remove(MPIJOBS, KEY)
    await world.submit()
    with pytest.raises(ExceptionGroup, match="sync of default/pi"):
        await world.sync()
    world.client.server.collect_garbage()
    await world.sync_until_idle()
    assert world.names(VOLCANO_POD_GROUPS) == ["pi"]
