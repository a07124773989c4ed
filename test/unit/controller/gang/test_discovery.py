"""The operator with --gang-scheduling: which API it takes, and that one which is missing is not the end of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fakes.api_server import FakeClient
from fakes.following import background
from fakes.world import KEY, mpijob
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, key_of, uid_of
from mpiop.kube.resources import (
    COSCHEDULING_POD_GROUPS,
    EVENTS,
    JOBS,
    MPIJOBS,
    NATIVE_POD_GROUPS_1_36,
    NATIVE_POD_GROUPS_1_37,
    PODS,
    PRIORITY_CLASSES,
    VOLCANO_POD_GROUPS,
    WORKLOADS_1_36,
    WORKLOADS_1_37,
    Resource,
)
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

OURS = "training.kubeflow.org/operator-name=mpi-operator"
OLD = {WORKLOADS_1_36, NATIVE_POD_GROUPS_1_36}
NEW = {WORKLOADS_1_37, NATIVE_POD_GROUPS_1_37}


@asynccontextmanager
async def running(client: FakeClient, scheduler: str, *namespaces: str) -> AsyncIterator[Operator]:
    """Run one replica; the API server serves PriorityClasses, as all do."""
    client.server.served.add(PRIORITY_CLASSES)
    replica = Operator(
        Options(health_port=0, gang_scheduling=scheduler, namespaces=namespaces), client, Metrics(version="test"), VirtualClock()
    )
    async with background(asyncio.create_task(replica.run())):
        await asyncio.sleep(0)
        yield replica


def volcano() -> FakeClient:
    """Return a client of an API server that serves Volcano's PodGroups."""
    client = FakeClient()
    client.server.served.add(VOLCANO_POD_GROUPS)
    return client


async def submitted(client: FakeClient, seconds: float) -> None:
    """Submit the job, and let so much time pass."""
    await client.create(MPIJOBS, mpijob())
    await asyncio.sleep(seconds)


def names(client: FakeClient, resource: Resource) -> list[str]:
    return [obj["metadata"]["name"] for obj in client.server.objects(resource)]


def reasons(client: FakeClient) -> list[str]:
    events: list[Object] = client.server.objects(EVENTS)
    return [str(event.get("reason")) for event in events]


@pytest.mark.parametrize(
    ("scheduler", "served", "taken"),
    [
        pytest.param("volcano", {VOLCANO_POD_GROUPS, COSCHEDULING_POD_GROUPS}, {VOLCANO_POD_GROUPS}, id="Volcano"),
        pytest.param("mine", {VOLCANO_POD_GROUPS, COSCHEDULING_POD_GROUPS}, {COSCHEDULING_POD_GROUPS}, id="coscheduling"),
        pytest.param("kubernetes", OLD, OLD, id="Kubernetes 1.36"),
        pytest.param("kubernetes", NEW, NEW, id="Kubernetes 1.37"),
        pytest.param("kubernetes", OLD | NEW, NEW, id="both: the newer"),
        pytest.param("kubernetes", OLD | {WORKLOADS_1_37}, OLD, id="one kind of the newer is not enough"),
    ],
)
async def test_the_best_api_that_is_served_is_taken(scheduler: str, served: set[Resource], taken: set[Resource]) -> None:
    client = FakeClient()
    client.server.served |= served
    async with running(client, scheduler) as replica:
        await submitted(client, 10)
        assert {resource for resource in OLD | NEW | {VOLCANO_POD_GROUPS, COSCHEDULING_POD_GROUPS} if names(client, resource)} == taken
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]
        assert replica._gang_problems() == []
        watched = {
            request.resource: request.params.get("labelSelector", "") for request in client.server.requests if request.verb == "watch"
        }
        assert {watched[resource] for resource in taken} == {OURS}
        assert (PRIORITY_CLASSES in watched) == (scheduler != "kubernetes")


async def test_an_api_that_comes_later_starts_the_jobs_that_wait_for_it() -> None:
    client = FakeClient()
    async with running(client, "volcano") as replica:
        await submitted(client, 40)
        assert names(client, PODS) == []
        assert reasons(client) == ["MPIJobCreated", "GangApiMissing"]
        [reported] = replica._gang_problems()
        assert "install Volcano" in reported
        client.server.served.add(VOLCANO_POD_GROUPS)
        await asyncio.sleep(80)
        assert names(client, VOLCANO_POD_GROUPS) == ["pi"]
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]
        assert replica._gang_problems() == []


FORBIDDEN = {"code": 403, "reason": "Forbidden", "message": "podgroups.scheduling.volcano.sh is forbidden: no such right"}


@pytest.mark.parametrize("resource", [VOLCANO_POD_GROUPS, PRIORITY_CLASSES], ids=lambda resource: resource.plural)
@pytest.mark.parametrize("verbs", [("list", "watch"), ("discover",)], ids=str)
async def test_an_api_that_may_not_be_used_holds_up_nothing_but_what_needs_it(verbs: tuple[str, ...], resource: Resource) -> None:
    client = volcano()
    for verb in verbs:
        client.refuse(verb, None if verb == "discover" else resource, "", StatusError(verb, FORBIDDEN))
    async with running(client, "volcano") as replica:
        await submitted(client, 30)
        assert reasons(client) == ["MPIJobCreated", "GangApiMissing"]
        [job] = client.server.objects(MPIJOBS)
        assert "no such right" in job.get("status", {})["conditions"][0]["message"]
        assert [str(problem) for problem in replica._gang_problems() if "no such right" in problem]
        assert names(client, JOBS) == names(client, PODS) == []
        client.server.allow()
        await asyncio.sleep(90)
        assert names(client, VOLCANO_POD_GROUPS) == ["pi"]
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]
        assert replica._gang_problems() == []


async def test_a_namespace_without_the_right_to_gangs_delays_no_other() -> None:
    client = volcano()
    server = client.server
    client.refuse("*", VOLCANO_POD_GROUPS, "", StatusError("any", FORBIDDEN), namespace="team")
    async with running(client, "volcano", "default", "team") as replica:
        for namespace in ("default", "team"):
            await client.create(MPIJOBS, mpijob(namespace=namespace))
        await asyncio.sleep(10)
        assert {str(key_of(obj)) for obj in server.objects(PODS)} == {"default/pi-worker-0", "default/pi-worker-1"}
        assert reasons(client).count("GangApiMissing") == 0, "the right may be a matter of seconds"
        await asyncio.sleep(20)
        assert reasons(client).count("GangApiMissing") == 1
        message = server.storage.get(MPIJOBS, Key("team", "pi"))["status"]["conditions"][0]["message"]
        assert "podgroups in team" in message
        assert "give the operator the right" in message
        assert [*replica._gang_problems(), *replica._informer_problems()] == [], "ready, because another namespace is served"
        server.allow()
        await asyncio.sleep(90)
        assert len(server.objects(PODS)) == 4
        assert replica._gang_problems() == []


@pytest.mark.parametrize("namespaces", [("default",), ("default", "team")], ids=str)
async def test_without_the_right_to_gangs_in_any_namespace_a_replica_is_not_ready(namespaces: tuple[str, ...]) -> None:
    client = volcano()
    client.refuse("*", VOLCANO_POD_GROUPS, "", StatusError("any", FORBIDDEN))
    async with running(client, "volcano", *namespaces) as replica:
        await asyncio.sleep(30)
        assert ["no such right" in problem for problem in replica._gang_problems()] == [True] * len(namespaces)


@pytest.mark.parametrize("error", [TransportError("connection refused"), StatusError("discover", {"code": 503})])
async def test_without_an_answer_no_job_is_stalled_for_a_missing_api(error: StatusError | TransportError) -> None:
    client = volcano()
    client.refuse("discover", None, "", error, times=3 if isinstance(error, TransportError) else 1)
    async with running(client, "volcano"):
        await submitted(client, 10)
        assert reasons(client) == []
        await asyncio.sleep(70)
        assert "GangApiMissing" not in reasons(client)
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]


async def test_a_group_deleted_by_hand_is_made_again() -> None:
    client = volcano()
    async with running(client, "volcano"):
        await submitted(client, 10)
        [group] = client.server.objects(VOLCANO_POD_GROUPS)
        await client.delete(VOLCANO_POD_GROUPS, KEY, uid=uid_of(group))
        await asyncio.sleep(5)
        [again] = client.server.objects(VOLCANO_POD_GROUPS)
        assert uid_of(again) != uid_of(group)


async def test_the_values_of_priority_classes_come_from_the_server() -> None:
    client = volcano()
    client.server.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7})
    job = mpijob(runPolicy={"schedulingPolicy": {"minAvailable": 1}})
    worker = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}], "priorityClassName": "high"}
    job.get("spec", {})["mpiReplicaSpecs"]["Worker"]["template"] = {"spec": worker}
    async with running(client, "volcano"):
        await client.create(MPIJOBS, job)
        await asyncio.sleep(5)
        [group] = client.server.objects(VOLCANO_POD_GROUPS)
        assert group.get("spec", {})["minResources"] == {"cpu": "4"}


async def test_what_was_written_is_waited_for_and_not_written_again() -> None:
    client = volcano()
    async with running(client, "volcano"):
        await asyncio.sleep(5)
        client.refuse("watch", VOLCANO_POD_GROUPS, "", TransportError("connection refused"))
        client.server.cut_streams()
        await submitted(client, 20)
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]
        assert len([action for action in client.actions if action.resource is VOLCANO_POD_GROUPS]) == 1


async def test_off_nothing_is_asked() -> None:
    client = FakeClient()
    async with running(client, ""):
        await submitted(client, 10)
        assert names(client, PODS) == ["pi-worker-0", "pi-worker-1"]
        assert {request.verb for request in client.server.requests} & {"discover"} == set()
