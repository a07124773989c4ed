"""Jobs that the Go operator had finished before we came: they get what they lack, and go with all that was made for them."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from example_jobs import PI
from fakes.world import World, running
from mpiop.clock import format_time
from mpiop.controller.gang.gang import Gang, candidates
from mpiop.controller.gang.pod_group import build_volcano_pod_group
from mpiop.informers.store import Store
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, SECRETS, SERVICES, VOLCANO_POD_GROUPS, Resource

TTL = 100
AGE = timedelta(seconds=30)
CHILDREN: dict[Resource, str] = {SERVICES: "pi", CONFIG_MAPS: "pi-config", SECRETS: "pi-ssh", JOBS: "pi-launcher"}


async def finished(end: str = "Failed", *, completed: bool = False, **run_policy: Any) -> World:
    """Return a world in which the Go operator has finished the job 30 s ago: its objects have no label of ours, and no note."""
    world = await running(runPolicy={"ttlSecondsAfterFinished": TTL, **run_policy})
    world.end_launcher()
    for resource, name in CHILDREN.items():
        world.put_metadata(resource, name, labels={"app": "pi"}, annotations={})
    ended = format_time(world.clock.now() - AGE)
    job = world.one(MPIJOBS, "pi")
    condition = {"type": end, "status": "True", "reason": f"MPIJob{end}", "lastTransitionTime": ended, "lastUpdateTime": ended}
    conditions = [*job["status"]["conditions"], condition]  # type: ignore[typeddict-item]  # it has one
    times = {"startTime": ended} | ({"completionTime": ended} if completed else {})
    world.client.server.put(MPIJOBS, {**job, "status": {"conditions": conditions, "replicaStatuses": {"Worker": {}}, **times}})
    world.client.actions.clear()
    world.client.server.requests.clear()
    return world


def left(world: World) -> list[str]:
    return [name for resource in CHILDREN for name in world.names(resource)]


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_one_gets_the_time_that_its_condition_has_and_is_over_in_its_time(end: str) -> None:
    world = await finished(end)
    before = world.clock.now() - AGE
    wait = await world.sync()
    assert world.status.completion_time == before.replace(microsecond=0)
    assert world.status.summary.workers == "", "by which it is known"
    assert f"MPIJob{end}" not in world.recorder.reasons, "which was reported"
    wait = await world.sync()
    assert wait is not None
    assert TTL - AGE.total_seconds() - 2 < wait <= TTL - AGE.total_seconds()
    await asyncio.sleep(wait)
    await world.sync()
    assert [name for name in left(world) if name != "pi-launcher"] == []


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_what_was_made_for_it_goes_although_no_watch_shows_it(end: str) -> None:
    world = await finished(end, completed=True)
    gang = Gang("volcano", candidates("volcano")[0], listers={VOLCANO_POD_GROUPS: Store()})
    world.build(gang)
    world.client.server.served.add(VOLCANO_POD_GROUPS)
    job = world.one(MPIJOBS, "pi")
    group = build_volcano_pod_group(replace(PI, uid=uid_of(job)), {})
    world.client.server.put(VOLCANO_POD_GROUPS, {**group, "metadata": {**group["metadata"], "labels": {}}})
    await world.sync_until_idle()
    world.client.server.collect_garbage()
    assert left(world) == world.names(VOLCANO_POD_GROUPS) == []
    preconditions = {action.body["preconditions"]["uid"] for action in world.client.actions if action.verb == "delete" and action.body}
    assert len(preconditions) == len([write for write in world.writes if write.startswith("delete")])


async def test_a_namespace_without_the_right_to_gangs_is_cleaned_up_without_them() -> None:
    world = await finished(completed=True)
    world.build(Gang("volcano", candidates("volcano")[0], listers={VOLCANO_POD_GROUPS: Store()}))
    world.client.refuse("get", VOLCANO_POD_GROUPS, "", StatusError("get", {"code": 403, "reason": "Forbidden"}))
    await world.sync_until_idle()
    world.client.server.collect_garbage()
    assert left(world) == []


@pytest.mark.parametrize(("resource", "name"), CHILDREN.items(), ids=CHILDREN.values())
async def test_what_has_the_name_of_such_a_child_and_is_somebody_elses_stays(resource: Resource, name: str) -> None:
    world = await finished(completed=True)
    world.client.server.remove(resource, Key("default", name))
    theirs = uid_of(world.client.server.put(resource, {"metadata": {"name": name, "namespace": "default"}}))
    await world.sync_until_idle()
    assert uid_of(world.one(resource, name)) == theirs


async def test_nothing_is_searched_for_before_its_time_nor_for_a_job_of_ours() -> None:
    world = await finished(completed=True, ttlSecondsAfterFinished=10**6)
    await world.sync()
    await world.sync()
    assert len(left(world)) == len(CHILDREN)
    ours = await running(runPolicy={"ttlSecondsAfterFinished": 0})
    await ours.end()
    ours.client.server.requests.clear()
    await ours.sync()
    for request in (*world.client.server.requests, *ours.client.server.requests):
        assert request.verb != "get"


async def test_a_question_without_an_answer_is_asked_again() -> None:
    world = await finished(completed=True)
    await asyncio.sleep(TTL)
    world.client.refuse("get", SERVICES, "pi", StatusError("get", {"code": 503}), times=1)
    await world.sync_refused(StatusError)
    await world.sync_until_idle()
    assert world.names(SERVICES) == []
