"""What is left of a job when it has ended: by policy, by how it ended and by how its workers were, and when its time to live is over."""

import asyncio
from itertools import product
from typing import Any

import pytest

from fakes.world import KEY, World, running
from mpiop.api.annotations import TTL_DELETES_JOB
from mpiop.controller.names import ANNOTATION_SECRET_UID
from mpiop.controller.observe import pods
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES

POLICIES = ("None", "Running", "All")
ENDS = ("Succeeded", "Failed", "Evicted", "Lost")
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
KEPT = {"None": set(PHASES), "Running": {"Succeeded", "Failed"}, "All": set[str]()}
CHILDREN = (SERVICES, CONFIG_MAPS, SECRETS, JOBS, PODS)
TTL = 100


def end(world: World, how: str) -> None:
    """Let the job end: its launcher does, or a worker is evicted, or the launcher Job is gone."""
    match how:
        case "Succeeded":
            world.end_launcher()
        case "Failed":
            world.end_launcher("Failed", reason="DeadlineExceeded")
        case "Evicted":
            world.pod_status("pi-worker-1", "Failed", reason="Evicted")
        case _:
            world.client.server.remove(JOBS, Key("default", "pi-launcher"))


def workers(world: World) -> set[str]:
    return {pod["metadata"]["name"] for pod in world.client.server.objects(PODS) if "-worker-" in pod["metadata"]["name"]}


@pytest.mark.parametrize(("policy", "how", "phase"), tuple(product(POLICIES, ENDS, PHASES)), ids=str)
async def test_workers_stay_by_policy_and_phase_however_the_job_ended(policy: str, how: str, phase: str) -> None:
    world = await running(runPolicy={"cleanPodPolicy": policy})
    world.pod_status("pi-worker-0", phase)
    world.pod_status("pi-worker-1", "Running")
    end(world, how)
    await world.sync_until_idle()
    assert world.status.is_finished
    evicted = {"pi-worker-1"} if how == "Evicted" and policy == "Running" else set[str]()
    expected = {"pi-worker-0"} if phase in KEPT[policy] else set[str]()
    assert workers(world) == expected | evicted | ({"pi-worker-1"} if policy == "None" else set())
    world.client.actions.clear()
    await world.sync_until_idle()
    assert world.writes == [], "and that is that"


@pytest.mark.parametrize(("policy", "how"), tuple(product(POLICIES, ENDS)))
async def test_no_launcher_runs_on_and_one_that_ended_stays_for_its_log(policy: str, how: str) -> None:
    world = await running(runPolicy={"cleanPodPolicy": policy})
    end(world, how)
    await world.sync_until_idle()
    launchers = world.client.server.objects(JOBS)
    if how == "Lost" or (how == "Evicted" and policy == "All"):
        assert all("deletionTimestamp" in job["metadata"] for job in launchers)
    elif how == "Evicted":
        assert launchers[0]["spec"]["suspend"] is True
    else:
        assert pods.job_outcome(launchers[0]) is not None
        assert "deletionTimestamp" not in launchers[0]["metadata"]


async def test_a_worker_that_appears_after_the_end_goes_too() -> None:
    world = await running(runPolicy={"cleanPodPolicy": "All"})
    left = world.one(PODS, "pi-worker-0")
    await world.end()
    world.client.server.put(PODS, {**left, "metadata": {**left["metadata"], "resourceVersion": ""}})
    await world.sync_until_idle()
    assert workers(world) == set()


async def test_scaling_a_finished_job_makes_nothing() -> None:
    world = await running()
    await world.end()
    await world.change(mpiReplicaSpecs={"Worker": {"replicas": 5}})
    assert workers(world) == {"pi-worker-0", "pi-worker-1"}


# ttlSecondsAfterFinished


async def expired(how: str = "Succeeded", **run_policy: Any) -> World:
    """Return a world in which the job's time to live is just over."""
    world = await running(runPolicy={"ttlSecondsAfterFinished": TTL, **run_policy})
    end(world, how)
    await ended(world)
    await asyncio.sleep(TTL)
    world.client.actions.clear()
    return world


async def ended(world: World) -> None:
    """Sync until the end is recorded and the clean-up done, well before the time to live is over."""
    for _ in range(4):
        await world.sync()
    assert world.status.is_finished


def left(world: World) -> list[str]:
    return [name for resource in CHILDREN for name in world.names(resource)]


@pytest.mark.parametrize(("policy", "how"), tuple(product(POLICIES, ENDS)))
async def test_after_its_time_to_live_nothing_of_a_job_is_left_but_itself_and_its_status(policy: str, how: str) -> None:
    world = await expired(how, cleanPodPolicy=policy)
    before = world.status.conditions
    await world.sync_until_idle()
    world.client.server.collect_garbage()
    if "pi-launcher" in world.names(JOBS):
        assert "deletionTimestamp" in world.one(JOBS, "pi-launcher")["metadata"]
        world.client.server.remove(JOBS, Key("default", "pi-launcher"))
    world.client.server.collect_garbage()
    await world.sync_until_idle()
    assert left(world) == []
    assert world.names(MPIJOBS) == ["pi"]
    assert world.status.conditions == before
    world.client.actions.clear()
    await world.sync_until_idle()
    assert world.writes == []


async def test_a_time_to_live_of_0_is_over_once_the_end_is_recorded() -> None:
    world = await running(runPolicy={"ttlSecondsAfterFinished": 0})
    end(world, "Succeeded")
    world.client.actions.clear()
    await world.sync()
    assert world.writes == ["patch MPIJob/status default/pi"]
    await world.sync()
    assert "delete Secret default/pi-ssh" in world.writes


async def test_it_can_be_set_when_the_job_has_ended() -> None:
    world = await running()
    end(world, "Succeeded")
    await ended(world)
    await asyncio.sleep(TTL)
    await world.edit({"spec": {"runPolicy": {"ttlSecondsAfterFinished": TTL}}})
    await world.sync()
    assert world.names(SECRETS) == world.names(CONFIG_MAPS) == world.names(SERVICES) == []


async def test_the_config_map_which_knows_the_secret_goes_last_and_not_before_it() -> None:
    world = await expired()
    world.client.refuse("delete", SECRETS, "pi-ssh", StatusError("test", {"code": 403, "message": "no"}), times=1)
    await world.sync_refused()
    assert world.names(CONFIG_MAPS) == ["pi-config"]
    assert world.names(SERVICES) == [], "what is not refused goes"
    await world.sync_until_idle()
    assert world.names(CONFIG_MAPS) == world.names(SECRETS) == []
    assert world.writes[-2:] == ["delete Secret default/pi-ssh", "delete ConfigMap default/pi-config"]


@pytest.mark.parametrize("noted", [{}, {ANNOTATION_SECRET_UID: "garbled"}], ids=["not at all", "wrongly"])
async def test_a_secret_that_is_not_noted_is_removed_if_it_is_the_jobs(noted: dict[str, str]) -> None:
    world = await expired()
    world.put_metadata(CONFIG_MAPS, "pi-config", annotations=noted)
    await world.sync_until_idle()
    assert world.names(SECRETS) == world.names(CONFIG_MAPS) == []


@pytest.mark.parametrize(
    ("is_noted", "left"),
    [(False, ["pi-ssh"]), (True, ["pi-ssh"]), (True, [])],
    ids=["somebody else's, and none was noted", "somebody else's in its place", "gone already"],
)
async def test_a_secret_that_is_not_the_jobs_stays_and_holds_nothing_up(left: list[str], *, is_noted: bool) -> None:
    world = await expired()
    labels = world.one(SECRETS, "pi-ssh")["metadata"].get("labels")
    world.client.server.remove(SECRETS, Key("default", "pi-ssh"))
    for name in left:
        world.client.server.put(SECRETS, {"metadata": {"name": name, "namespace": "default", "labels": labels}})
    if not is_noted:
        world.put_metadata(CONFIG_MAPS, "pi-config", annotations={})
    await world.sync_until_idle()
    assert world.names(SECRETS) == left
    assert world.names(CONFIG_MAPS) == []


@pytest.mark.parametrize(("value", "goes"), [("true", True), ("false", False)])
async def test_the_mpijob_goes_too_only_if_it_says_so(value: str, *, goes: bool) -> None:
    world = await expired()
    await world.client.patch(MPIJOBS, KEY, {"metadata": {"annotations": {TTL_DELETES_JOB.name: value}}})
    world.client.actions.clear()
    uid = uid_of(world.one(MPIJOBS, "pi"))
    await world.sync_until_idle()
    assert (world.names(MPIJOBS) == []) == goes
    if goes:
        assert world.writes == ["delete MPIJob default/pi"], "the garbage collector does the rest"
        assert world.client.actions[0].body["preconditions"] == {"uid": uid}


async def test_a_job_that_has_ended_is_left_alone_though_a_worker_is_broken() -> None:
    world = await running()
    killed = {"name": "worker", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    world.pod_status("pi-worker-1", "Failed", containerStatuses=[killed])
    await world.end()
    assert world.status.is_finished
    assert await world.sync() is None
