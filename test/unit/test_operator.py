"""The operator as a whole over a server in memory: what its parts do together, and how it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from fakes.api_server import FakeClient
from fakes.http_server import free_port
from fakes.world import KEY, mpijob
from kubeconfig_cases import kubeconfig
from mpiop import operator
from mpiop.api import constants as c
from mpiop.api.capabilities import NAME as CAPABILITIES
from mpiop.api.status import parse_status
from mpiop.informers.listener import Listener
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object, key_of
from mpiop.kube.resources import CONFIG_MAPS, EVENTS, JOBS, LEASES, MPIJOBS, PODS, SECRETS, SERVICES
from mpiop.leaderelection import LeaseLostError
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from mpiop.server import ServerError
from virtual_time import VirtualClock

OPTIONS = Options(health_port=0)
LEASE = Key("mpi-operator", "mpi-operator")
LAUNCHER = Key("default", "pi-launcher")
CHILDREN = (JOBS, PODS, SERVICES)


@pytest.fixture
async def client() -> FakeClient:
    return FakeClient()


@asynccontextmanager
async def running(client: FakeClient, options: Options = OPTIONS) -> AsyncIterator[tuple[Operator, Metrics, asyncio.Task[None]]]:
    """Run one replica."""
    metrics = Metrics(version="test")
    replica = Operator(options, client, metrics, VirtualClock())
    task = asyncio.create_task(replica.run())
    await asyncio.sleep(0)
    try:
        yield replica, metrics, task
    finally:
        task.cancel()
        await asyncio.wait({task})


def lease(client: FakeClient) -> Object:
    return next(obj for obj in client.server.objects(LEASES) if obj["metadata"]["name"] == LEASE.name)


def holder(client: FakeClient) -> str:
    return str(lease(client)["spec"].get("holderIdentity") or "")


async def test_a_job_is_run_from_its_creation_by_whoever_leads(client: FakeClient) -> None:
    async with running(client) as (_, metrics, _task):
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(10)
        assert [obj["metadata"]["name"] for obj in client.server.objects(PODS)] == ["pi-worker-0", "pi-worker-1"]
        assert [obj["metadata"]["name"] for obj in client.server.objects(JOBS)] == ["pi-launcher"]
        assert [obj["reason"] for obj in client.server.objects(EVENTS)] == ["MPIJobCreated"]  # type: ignore[typeddict-item]  # an event
        assert metrics.registry.get_sample_value("mpi_operator_is_leader") == 1
        private = client.server.objects(SECRETS)[0].get("data", {})["ssh-privatekey"]
        assert len(private) > 100


async def test_only_the_leader_shows_how_many_jobs_are_in_each_state(client: FakeClient) -> None:
    async with running(client) as (_, metrics, _task):
        await asyncio.sleep(5)
        async with running(client) as (_, standby_metrics, _standby):
            await client.create(MPIJOBS, mpijob())
            await asyncio.sleep(2)
            assert metrics.registry.get_sample_value("mpiop_jobs", {"state": "Starting"}) == 1
            assert standby_metrics.registry.get_sample_value("mpiop_jobs", {"state": "Starting"}) is None


async def test_a_planned_stop_releases_the_lease_and_another_replica_continues(client: FakeClient) -> None:
    async with running(client) as (_, metrics, task):
        await asyncio.sleep(5)
        first = holder(client)
        assert first
        async with running(client) as (_, second_metrics, _second):
            await asyncio.sleep(5)
            assert holder(client) == first
            assert second_metrics.registry.get_sample_value("mpi_operator_is_leader") == 0
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            assert metrics.registry.get_sample_value("mpi_operator_is_leader") == 0
            await asyncio.sleep(2)
            assert holder(client) not in {"", first}
            await client.create(MPIJOBS, mpijob())
            await asyncio.sleep(5)
            assert client.server.storage.get(JOBS, LAUNCHER) is not None


async def test_how_a_job_ended_is_recorded_by_the_next_leader_although_its_launcher_job_is_gone(client: FakeClient) -> None:
    async with running(client) as (_, _metrics, leader), running(client):
        await client.create(MPIJOBS, mpijob(runPolicy={"ttlSecondsAfterFinished": 0}))
        await asyncio.sleep(10)
        leader.cancel()
        await asyncio.wait({leader})
        client.server.put_status(JOBS, LAUNCHER, {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1})
        client.server.remove(JOBS, LAUNCHER)
        assert parse_status(client.server.storage.get(MPIJOBS, KEY).get("status")).is_finished is False
        await asyncio.sleep(10)
        assert parse_status(client.server.storage.get(MPIJOBS, KEY).get("status")).is_true(c.CONDITION_SUCCEEDED)


async def test_a_sync_before_the_notification_of_a_deletion_knows_how_the_launcher_ended(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(client) as (replica, _metrics, _task):
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(10)
        monkeypatch.setattr(Listener, "push", lambda *_: None)
        client.server.put_status(JOBS, LAUNCHER, {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1})
        client.server.remove(JOBS, LAUNCHER)
        await asyncio.sleep(1)
        vars(replica)["_queue"].add(KEY)
        await asyncio.sleep(5)
        assert LAUNCHER not in [key_of(job) for job in client.server.objects(JOBS)], "it does not run again"
        assert parse_status(client.server.storage.get(MPIJOBS, KEY).get("status")).is_true(c.CONDITION_SUCCEEDED)


async def test_a_lost_lease_ends_the_process_and_nothing_is_written_any_more(client: FakeClient) -> None:
    async with running(client) as (_, _metrics, task):
        await asyncio.sleep(5)
        client.refuse("*", LEASES, "", TransportError("lost"))
        await asyncio.wait({task}, timeout=30)
        error = task.exception()
        assert isinstance(error, ExceptionGroup)
        assert error.subgroup(LeaseLostError) is not None
        client.server.allow()
        await client.create(MPIJOBS, mpijob())
        before = len(client.actions)
        await asyncio.sleep(30)
        assert len(client.actions) == before


async def test_the_tasks_of_the_event_loop_are_counted_on_each_scrape(client: FakeClient) -> None:
    async with running(client) as (_, metrics, _task):
        await asyncio.sleep(5)

        def shown() -> float | None:
            return metrics.registry.get_sample_value("mpi_operator_asyncio_tasks")

        before = shown()
        assert before == len(asyncio.all_tasks())
        one_more = asyncio.create_task(asyncio.sleep(1))
        assert shown() == before + 1
        await one_more
        assert shown() == before


async def test_what_the_informers_do_is_counted(client: FakeClient) -> None:
    async with running(client) as (_, metrics, _task):
        await asyncio.sleep(5)

        def value(what: str) -> float | None:
            return metrics.registry.get_sample_value(f"mpiop_informer_{what}", {"informer": "pods"})

        assert [value(what) for what in ("lists_total", "watches_total", "failures_total", "backlog")] == [1, 1, 0, 0]
        client.refuse("watch", PODS, "", TransportError("connection refused"), times=2)
        client.server.cut_streams()
        await asyncio.sleep(30)
        assert [value(what) for what in ("lists_total", "watches_total", "backlog")] == [1, 2, 0]
        assert (value("failures_total") or 0) >= 2


async def test_F16_F45_what_cannot_be_followed_for_a_while_is_reported_by_readiness_until_it_can(client: FakeClient) -> None:
    async with running(client) as (replica, _metrics, _task):
        await asyncio.sleep(5)
        assert replica._informer_problems() == []
        client.refuse("watch", PODS, "", TransportError("connection refused"))
        client.server.cut_streams()
        await asyncio.sleep(9)
        assert replica._informer_problems() == [], "a restart of the API server is nothing to report"
        await asyncio.sleep(2)
        [reported] = replica._informer_problems()
        assert "pods" in reported
        assert "out of reach" in reported
        client.server.allow()
        await asyncio.sleep(120)
        assert replica._informer_problems() == []


async def test_a_part_that_dies_takes_the_process_with_it(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(client) as (replica, _metrics, task):
        await asyncio.sleep(5)

        def broken(_obj: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(replica._queue, "done", broken)
        await client.create(MPIJOBS, mpijob())
        await asyncio.wait({task}, timeout=30)
        assert isinstance(task.exception(), ExceptionGroup)


async def test_what_is_not_of_this_operator_is_not_even_listed(client: FakeClient) -> None:
    client.server.put(PODS, {"metadata": {"name": "stranger", "namespace": "default"}})
    async with running(client):
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(10)
        asked = {request.resource: request.params.get("labelSelector", "") for request in client.server.requests if request.verb == "watch"}
    assert asked[PODS] == asked[JOBS] == "training.kubeflow.org/operator-name=mpi-operator"
    assert asked[MPIJOBS] == ""
    assert {request.verb for request in client.server.requests if request.resource is SECRETS} == {"create"}


async def test_the_caches_of_a_standby_are_warm_before_it_is_elected(client: FakeClient) -> None:
    await client.create(MPIJOBS, mpijob())
    async with running(client):
        await asyncio.sleep(5)
        before = len(client.server.requests)
        async with running(client):
            await asyncio.sleep(5)
            asked = {request.resource for request in client.server.requests[before:] if request.verb in {"list", "watch"}}
            assert {MPIJOBS, PODS, JOBS, SERVICES, CONFIG_MAPS} <= asked


async def test_without_the_crd_it_waits_for_it(client: FakeClient) -> None:
    client.server.served.discard(MPIJOBS)
    async with running(client) as (_, _metrics, task):
        await asyncio.sleep(120)
        assert not task.done()
        client.server.served.add(MPIJOBS)
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(60)
        assert client.server.storage.get(JOBS, LAUNCHER) is not None


async def test_with_a_namespace_others_are_left_alone(client: FakeClient) -> None:
    async with running(client, Options(health_port=0, namespaces=("default",))):
        await client.create(MPIJOBS, mpijob(namespace="elsewhere"))
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(5)
        assert [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in client.server.objects(JOBS)] == [
            ("default", "pi-launcher")
        ]
        assert client.server.storage.get(MPIJOBS, KEY) is not None


async def test_with_several_namespaces_each_is_served_and_others_are_left_alone(client: FakeClient) -> None:
    async with running(client, Options(health_port=0, namespaces=("default", "team", "idle"))) as (replica, _, _task):
        for namespace in ("default", "team", "elsewhere"):
            await client.create(MPIJOBS, mpijob(namespace=namespace))
        await asyncio.sleep(5)
        assert {obj["metadata"]["namespace"] for resource in CHILDREN for obj in client.server.objects(resource)} == {"default", "team"}
        published = {obj["metadata"]["namespace"] for obj in client.server.objects(CONFIG_MAPS) if obj["metadata"]["name"] == CAPABILITIES}
        assert published == {"default", "team", "idle"}
        assert client.server.storage.get(LEASES, LEASE) is not None
        # What is lost is created again at once, although nothing happens in the others that would show how current their stores are.
        for namespace in ("default", "team"):
            client.server.remove(SERVICES, Key(namespace, "pi"))
            await asyncio.sleep(2)
            assert client.server.storage.get(SERVICES, Key(namespace, "pi")) is not None
        client.server.remove(MPIJOBS, Key("default", "pi"))
        await asyncio.sleep(2)
        assert [key.namespace for key in replica._job_keys()] == ["team"]


async def test_a_namespace_that_takes_our_rights_away_does_not_stop_the_others(client: FakeClient) -> None:
    server = client.server
    client.refuse("*", None, "", StatusError("any", {"code": 403, "reason": "Forbidden"}), namespace="team")
    for namespace in ("team", "default"):
        server.put(MPIJOBS, mpijob(namespace=namespace))
    async with running(client, Options(health_port=0, namespaces=("team", "default"))) as (replica, _, _task):
        await asyncio.sleep(10)
        assert [str(key_of(obj)) for obj in server.objects(JOBS)] == ["default/pi-launcher"]
        assert replica._informer_problems() == [], "ready"
        server.allow()
        await asyncio.sleep(100)
        assert {str(key_of(obj)) for obj in server.objects(JOBS)} == {"default/pi-launcher", "team/pi-launcher"}


@pytest.mark.real_time
async def test_without_an_api_server_it_lives_is_not_ready_and_shows_its_metrics(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(kubeconfig({"server": "http://127.0.0.1:1"}, {"token": "t"})))
    health_port, monitoring_port = free_port(), free_port()
    options = Options(kubeconfig=str(config), health_port=health_port, monitoring_port=monitoring_port)
    task = asyncio.create_task(operator.run(options))
    async with aiohttp.ClientSession() as session:
        await answering(session, health_port, task)
        async with session.get(f"http://127.0.0.1:{health_port}/healthz") as response:
            assert response.status == 200
        async with session.get(f"http://127.0.0.1:{health_port}/readyz") as response:
            assert response.status == 503
            assert "mpijobs not synced" in await response.text()
        async with session.get(f"http://127.0.0.1:{monitoring_port}/metrics") as response:
            text = await response.text()
            assert "mpi_operator_is_leader 0.0" in text
            assert 'mpiop_informer_staleness_seconds{informer="pods"} +Inf' in text
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def answering(session: aiohttp.ClientSession, port: int, task: asyncio.Task[None]) -> None:
    """Wait until something listens on `port`."""
    while not task.done():
        try:
            async with session.get(f"http://127.0.0.1:{port}/healthz"):
                return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.01)
    task.result()


@pytest.mark.real_time
async def test_secure_metrics_are_shown_by_leader_and_standby_to_whom_the_api_server_lets_and_probes_to_everybody(
    client: FakeClient,
) -> None:
    client.server.reviews.users["of-prometheus"] = {"username": "prometheus"}
    client.server.reviews.allowed.add(("get", "/metrics", "prometheus"))
    token = {"Authorization": "Bearer of-prometheus"}
    replicas = [Options(health_port=free_port(), monitoring_port=free_port(), metrics_secure=True) for _ in range(2)]
    async with (
        running(client, replicas[0]) as (_, _, one),
        running(client, replicas[1]) as (_, _, other),
        aiohttp.ClientSession() as session,
    ):
        for options, task in zip(replicas, (one, other), strict=True):
            await answering(session, options.health_port, task)
            url = f"https://127.0.0.1:{options.monitoring_port}/metrics"
            async with session.get(url, ssl=False) as response:
                assert response.status == 401
            async with session.get(url, ssl=False, headers=token) as response:
                assert "mpi_operator_is_leader" in await response.text()
            async with session.get(f"http://127.0.0.1:{options.health_port}/healthz") as response:
                assert response.status == 200


@pytest.mark.real_time
async def test_a_certificate_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    options = Options(health_port=0, monitoring_port=free_port(), metrics_secure=True, metrics_cert_dir=str(tmp_path))
    async with running(FakeClient(), options) as (_, _, task):
        await asyncio.wait({task}, timeout=30)
        error = task.exception()
    assert isinstance(error, ExceptionGroup)
    assert error.subgroup(ServerError) is not None
