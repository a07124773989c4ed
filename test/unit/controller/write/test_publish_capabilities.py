"""The ConfigMap with what the operator offers: kept up to date, and never in the way of jobs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from fakes.api_server import FakeApiServer, FakeClient
from fakes.following import background
from fakes.world import mpijob
from mpiop.api.capabilities import NAME
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.request import Request
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

PUBLISHED = {"version": "0.1.0", "ssh-modes": "Image Injected", "ssh-auto": "Injected"}
KEY = Key("mpi-operator", NAME)


@asynccontextmanager
async def leading(client: FakeClient, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Run a replica for 5 s, and then on."""
    settings = Options(**{"health_port": 0, "agent_image": "agent:1"} | options)
    async with background(asyncio.create_task(Operator(settings, client, Metrics(version="test"), VirtualClock()).run())) as task:
        await asyncio.sleep(5)
        yield task


def found(client: FakeClient, key: Key = KEY) -> Object:
    return client.server.storage.get(CONFIG_MAPS, key)


def writes(client: FakeClient) -> list[str]:
    return [request.verb for request in client.server.requests if request.resource == CONFIG_MAPS and request.key.name == NAME]


@pytest.mark.parametrize(("namespaces", "where"), [((), ("mpi-operator",)), (("team-b",), ("team-b",)), (("a", "b"), ("a", "b"))])
async def test_the_leader_publishes_where_it_serves_else_in_its_own_namespace(namespaces: Sequence[str], where: Sequence[str]) -> None:
    client = FakeClient()
    async with leading(client, namespaces=namespaces), leading(client, namespaces=namespaces):
        assert [found(client, Key(each, NAME)).get("data") for each in where] == [PUBLISHED] * len(where)
        first = writes(client)
        assert sorted(first) == sorted(["get", "create"] * len(where)), "a replica that stands by writes nothing"
        await asyncio.sleep(120)
        assert writes(client)[len(first) :] == ["get", "get"] * len(where), "what has not changed is not written again"


@pytest.mark.parametrize(
    "theirs",
    [
        {"data": {"old": "x", "ssh-auto": "Image"}},
        {"data": PUBLISHED, "binaryData": {"drop": "eA=="}},
        {"data": {"ssh-auto": "Image"}, "immutable": True},
        {"data": None},
    ],
    ids=["other data", "more data", "it cannot be changed", "none"],
)
async def test_what_an_older_operator_or_somebody_else_wrote_is_replaced(theirs: Any) -> None:
    client = FakeClient()
    client.server.put(CONFIG_MAPS, {"metadata": {"name": NAME, "namespace": "mpi-operator"}, **theirs})
    async with leading(client):
        assert (found(client).get("data"), found(client).get("binaryData")) == (PUBLISHED, None)
        client.server.remove(CONFIG_MAPS, KEY)
        await asyncio.sleep(60)
        assert found(client).get("data") == PUBLISHED


class Strange(FakeApiServer):
    """Answers each read of the ConfigMap with `answer`."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def _answer(self, request: Request) -> dict[str, Any]:
        return self.answer if request.key == KEY and request.verb == "get" else super()._answer(request)


@pytest.mark.parametrize("answer", [{}, [], {"metadata": None}, {"metadata": {}, "data": []}, {"metadata": {"labels": 1}}], ids=str)
async def test_whatever_is_answered_the_leader_goes_on(answer: Any) -> None:
    client = FakeClient(server=Strange(answer))
    with capture_logs() as logs:
        async with leading(client) as task:
            await asyncio.sleep(120)
            assert not task.done()
    assert [entry["config_map"] for entry in logs if entry["event"] == "capabilities not published"] == [f"mpi-operator/{NAME}"]


async def test_a_refused_write_is_logged_once_and_repeated_and_jobs_run() -> None:
    client = FakeClient()
    client.refuse("create", CONFIG_MAPS, NAME, StatusError("create", {"code": 403, "reason": "Forbidden", "message": "no right"}))
    with capture_logs() as logs:
        async with leading(client) as task:
            await client.create(MPIJOBS, mpijob())
            await asyncio.sleep(180)
            assert [obj["metadata"]["name"] for obj in client.server.objects(JOBS)] == ["pi-launcher"]
            client.server.allow()
            await asyncio.sleep(60)
            assert found(client).get("data") == PUBLISHED
            assert not task.done()
    assert [entry["config_map"] for entry in logs if entry["event"] == "capabilities not published"] == [f"mpi-operator/{NAME}"]
