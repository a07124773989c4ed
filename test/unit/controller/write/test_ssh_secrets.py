"""The SSH Secret when somebody deletes it, in each phase of the job: when another is made, and when the job reports what to do instead."""

import asyncio
from typing import Any

import pytest

from fakes.world import World, running, starting
from mpiop.api import constants as c
from mpiop.controller import names
from mpiop.controller.write.ssh_secrets import RECHECK_SECONDS
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, annotations_of, uid_of
from mpiop.kube.resources import CONFIG_MAPS, PODS, SECRETS

SECRET = Key("default", "pi-ssh")
CREATING = {"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}
RUNS = {"name": "worker", "state": {"running": {}}}


def lose(world: World) -> None:
    world.client.server.remove(SECRETS, SECRET)


def in_creation(world: World, name: str, **status: Any) -> None:
    """Let a pod be bound, and wait for its volumes."""
    pod = world.one(PODS, name)
    pod["spec"] = {**pod["spec"], "nodeName": "node"}
    world.client.server.put(PODS, pod)
    world.pod_status(name, "Pending", containerStatuses=[CREATING], **status)


def gets(world: World) -> int:
    return sum(request.verb == "get" and request.resource is SECRETS for request in world.client.server.requests)


def stalled(world: World) -> str:
    condition = world.status.condition(c.CONDITION_STALLED)
    return condition.reason if condition is not None and condition.status == "True" else ""


def noted(world: World) -> str:
    return annotations_of(world.one(CONFIG_MAPS, "pi-config"))[names.ANNOTATION_SECRET_UID]


async def test_a_lost_secret_is_made_anew_at_the_resume() -> None:
    world = await running()
    await world.suspend()
    world.client.server.remove(PODS, Key("default", "pi-launcher-x"))
    lose(world)
    await world.resume()
    assert world.keys_made == 2
    assert noted(world) == uid_of(world.one(SECRETS, "pi-ssh"))
    assert world.names(PODS) == ["pi-worker-0", "pi-worker-1"]


async def test_a_secret_that_is_there_at_the_resume_stays() -> None:
    world = await running()
    await world.suspend()
    await world.resume()
    assert (world.keys_made, gets(world)) == (1, 1)


async def test_while_pods_run_with_its_key_another_is_not_made_and_the_job_says_what_to_do() -> None:
    world = await running()
    lose(world)
    world.client.server.remove(PODS, Key("default", "pi-worker-1"))
    await world.sync()
    in_creation(world, "pi-worker-1")
    await world.sync()
    assert not world.status.is_true(c.CONDITION_STALLED), "not at once: it may be an image that is pulled"
    assert gets(world) == 0
    await asyncio.sleep(RECHECK_SECONDS)
    for _ in range(3):
        await world.sync_refused()
        assert stalled(world) == "SecretLost"
    condition = world.condition(c.CONDITION_STALLED)
    assert "Secret pi-ssh is gone" in condition.message
    assert "pi-worker-0, pi-launcher-x still run" in condition.message
    assert "Suspend and resume" in condition.message
    assert world.keys_made == 1
    assert [reason for reason in world.recorder.reasons if reason == "SecretLost"] == ["SecretLost"]
    await world.edit({"spec": {"runPolicy": {"suspend": True}}})
    await world.sync_refused()
    world.client.server.remove(PODS, Key("default", "pi-launcher-x"))
    await world.sync_until_idle()
    assert stalled(world) == ""
    await world.resume()
    assert world.keys_made == 2


async def test_a_secret_lost_before_any_pod_began_is_made_anew() -> None:
    world = await starting()
    lose(world)
    in_creation(world, "pi-worker-0")
    in_creation(world, "pi-worker-1")
    await world.sync()
    assert world.keys_made == 1
    await asyncio.sleep(RECHECK_SECONDS)
    await world.sync()
    assert world.keys_made == 2
    assert noted(world) == uid_of(world.one(SECRETS, "pi-ssh"))
    assert stalled(world) == ""


async def test_a_pod_that_is_long_in_creation_costs_one_question_in_a_while() -> None:
    world = await starting()
    in_creation(world, "pi-worker-0")
    await asyncio.sleep(RECHECK_SECONDS)
    for _ in range(5):
        await world.sync()
    assert gets(world) == 1
    await asyncio.sleep(RECHECK_SECONDS)
    await world.sync()
    assert gets(world) == 2
    assert world.keys_made == 1


async def test_a_pod_without_a_node_is_no_reason_for_doubt() -> None:
    world = await starting()
    world.pod_status("pi-worker-0", "Pending", containerStatuses=[CREATING])
    await asyncio.sleep(RECHECK_SECONDS)
    await world.sync()
    assert gets(world) == 0


@pytest.mark.parametrize(
    "status", [{"containerStatuses": [RUNS, CREATING]}, {"initContainerStatuses": [RUNS], "containerStatuses": [CREATING]}]
)
async def test_a_pod_of_which_something_runs_has_its_volumes(status: dict[str, Any]) -> None:
    world = await starting()
    in_creation(world, "pi-worker-0")
    world.pod_status("pi-worker-0", "Pending", **status)
    await asyncio.sleep(RECHECK_SECONDS)
    await world.sync()
    assert gets(world) == 0


async def test_both_secret_and_note_lost_while_pods_run_is_no_silent_change_of_the_key() -> None:
    world = await running()
    lose(world)
    world.client.server.remove(CONFIG_MAPS, Key("default", "pi-config"))
    await world.sync_refused()
    assert world.keys_made == 1
    assert world.names(SECRETS) == []
    assert stalled(world) == "SecretLost"


async def test_a_lost_note_is_written_again() -> None:
    world = await running()
    world.client.server.remove(CONFIG_MAPS, Key("default", "pi-config"))
    await world.sync_until_idle()
    assert noted(world) == uid_of(world.one(SECRETS, "pi-ssh"))
    assert world.keys_made == 1


async def test_a_question_without_answer_leaves_the_note_as_it_is() -> None:
    world = await starting()
    in_creation(world, "pi-worker-0")
    await asyncio.sleep(RECHECK_SECONDS)
    world.client.refuse("get", SECRETS, "pi-ssh", StatusError("test", {"code": 500}), times=1)
    before = noted(world)
    await world.sync_refused()
    assert noted(world) == before
    await world.sync()
    assert stalled(world) == ""


async def test_a_secret_of_somebody_else_in_its_place_is_not_taken_for_it() -> None:
    world = await running()
    await world.suspend()
    lose(world)
    world.client.server.put(SECRETS, {"metadata": {"name": "pi-ssh", "namespace": "default"}})
    await world.edit({"spec": {"runPolicy": {"suspend": False}}})
    await world.sync_refused()
    assert stalled(world) == "ResourceExists"


async def test_a_secret_of_the_go_operator_is_found_without_its_keys_and_not_labelled() -> None:
    world = await starting()
    secret = world.put_metadata(SECRETS, "pi-ssh", labels={"app": "pi"})
    world.put_metadata(CONFIG_MAPS, "pi-config", annotations={})
    world.client.actions.clear()
    await world.sync_until_idle()
    assert noted(world) == uid_of(secret)
    assert [write for write in world.writes if write.startswith("patch Secret")] == [], "there is no right to change one"
    asked = [request for request in world.client.server.requests if request.resource is SECRETS and request.verb == "get"]
    assert asked
    assert all(request.metadata_only for request in asked)
