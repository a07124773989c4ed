"""Somebody undoes what the operator writes: how often it writes again, and what the job reports. Whole operators, a server in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from fakes.api_server import FakeClient
from fakes.following import background
from fakes.world import KEY, World, mpijob
from mpiop.api import constants as c
from mpiop.api.status import parse_status
from mpiop.api.status_types import Condition
from mpiop.kube.objects import Key
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource
from mpiop.metrics import Metrics
from mpiop.operator import Operator
from mpiop.options import Options
from virtual_time import VirtualClock

ONE = Options(health_port=0)
OTHER = Options(health_port=0, lease_name="other", cluster_domain="other.example")
FIRST_MINUTE, LATER = 20, 2
"""The most writes of one object: in the first minute, and in each minute after that."""
POLL_SECONDS = 0.02
QUIET_SECONDS = 240
"""How soon the job reports that nobody undoes anything any more."""


class Case(NamedTuple):
    """Who undoes what, and what the job reports of it."""

    id: str
    disturb: Callable[[FakeClient], Awaitable[None]]
    fought: tuple[Resource, str]
    reason: str
    message: str
    others: tuple[Options, ...] = ()
    condition: str = c.CONDITION_RECONCILING


async def nothing(_client: FakeClient) -> None:
    """The operators alone disturb one another."""
    await asyncio.Event().wait()


async def set_cluster_ip(client: FakeClient) -> None:
    """A webhook gives each Service an address."""
    client.server.admit(SERVICES, lambda service: {**service, "spec": {**service["spec"], "clusterIP": "10.0.0.1"}})
    await asyncio.Event().wait()


async def stamp(client: FakeClient) -> None:
    """A policy stamps a label of ours with something new at each write."""
    stamps = iter(range(1_000_000))

    def stamped(config_map: dict[str, Any]) -> dict[str, Any]:
        metadata = config_map["metadata"]
        return {**config_map, "metadata": {**metadata, "labels": {**metadata["labels"], "app": f"stamp {next(stamps)}"}}}

    client.server.admit(CONFIG_MAPS, stamped)
    await asyncio.Event().wait()


async def relabel(client: FakeClient) -> None:
    """A controller changes a label as soon as it is set."""
    other = client.fenced(lambda: None, "kyverno")
    while True:
        service: Any = client.server.storage.get(SERVICES, KEY)
        if service is not None and service["metadata"]["labels"]["app"] != "team":
            await other.patch(SERVICES, KEY, {"metadata": {"labels": {"app": "team"}}})
        await asyncio.sleep(POLL_SECONDS)


async def delete_service(client: FakeClient) -> None:
    """A janitor removes each Service."""
    while True:
        if client.server.storage.get(SERVICES, KEY) is not None:
            client.server.remove(SERVICES, KEY)
        await asyncio.sleep(POLL_SECONDS)


async def take_label_away(client: FakeClient) -> None:
    """A policy removes the label by which the operator finds its objects."""

    def bare(service: dict[str, Any]) -> dict[str, Any]:
        labels = {name: value for name, value in service["metadata"]["labels"].items() if name != c.LABEL_OPERATOR_NAME}
        annotations = {"stamp": str(asyncio.get_running_loop().time())}
        return {**service, "metadata": {**service["metadata"], "labels": labels, "annotations": annotations}}

    client.server.admit(SERVICES, bare)
    await asyncio.Event().wait()


async def wipe_status(client: FakeClient) -> None:
    """Kubeflow's operator stores the status without the fields that it does not know."""
    other = client.fenced(lambda: None, "mpi-operator")
    while True:
        job: Any = client.server.storage.get(MPIJOBS, KEY)
        if job is not None and "summary" in job.get("status", {}):
            await other.patch(MPIJOBS, KEY, {"status": {"summary": None, "startTime": "2026-01-01T00:00:00Z"}}, subresource="status")
        await asyncio.sleep(POLL_SECONDS)


CASES = [
    Case(
        id="two operators with different cluster domains",
        disturb=nothing,
        others=(OTHER,),
        fought=(CONFIG_MAPS, "pi-config"),
        reason="SecondOperator",
        message="mpiop:mpi-operator/mpi-operator and mpiop:mpi-operator/other write different values to data.hostfile"
        " of ConfigMap pi-config. Stop one of them, or give each its own namespaces (--namespace).",
    ),
    Case(
        id="a webhook that sets clusterIP",
        disturb=set_cluster_ip,
        fought=(SERVICES, "pi"),
        reason="ChangedBack",
        message="a webhook or an admission policy changes spec.clusterIP of Service pi each time the operator has set it",
    ),
    Case(
        id="a policy that stamps a label",
        disturb=stamp,
        fought=(CONFIG_MAPS, "pi-config"),
        reason="ChangedBack",
        message="a webhook or an admission policy changes metadata.labels.app of ConfigMap pi-config each time the operator has set it",
    ),
    Case(
        id="a controller that changes a label",
        disturb=relabel,
        fought=(SERVICES, "pi"),
        condition=c.CONDITION_DEGRADED,
        reason="ChangedBack",
        message="kyverno changes metadata.labels.app of Service pi each time the operator has set it",
    ),
    Case(
        id="a janitor that deletes the Service",
        disturb=delete_service,
        fought=(SERVICES, "pi"),
        reason="ChangedBack",
        message="Service pi is missing again each time the operator has created it",
    ),
    Case(
        id="a policy that takes our label away",
        disturb=take_label_away,
        fought=(SERVICES, "pi"),
        reason="ChangedBack",
        message="a webhook or an admission policy changes metadata.labels[training.kubeflow.org/operator-name] of Service pi",
    ),
    Case(
        id="Kubeflow's operator beside ours",
        disturb=wipe_status,
        fought=(MPIJOBS, "pi"),
        reason="SecondOperator",
        message="mpi-operator and mpiop:mpi-operator/mpi-operator write different values to status.summary",
    ),
]


def writes(client: FakeClient, resource: Resource, name: str) -> int:
    """Return how often operators wrote an object: only they name the UID of what they patch."""
    done = [action for action in client.actions if (action.resource, action.key.name, action.error) == (resource, name, None)]
    return sum(action.verb != "patch" or "uid" in action.body.get("metadata", {}) for action in done if action.body is not None)


def problem(client: FakeClient) -> Condition | None:
    """Return the problem that the job reports."""
    status = parse_status((client.server.storage.get(MPIJOBS, KEY) or {}).get("status"))
    waits_for = (status.true_condition(type_) for type_ in (c.CONDITION_STALLED, c.CONDITION_RECONCILING))
    return next((row for row in waits_for if row is not None and row.reason != c.STARTING), None) or status.true_condition(
        c.CONDITION_DEGRADED
    )


@asynccontextmanager
async def operating(client: FakeClient, options: Options = ONE) -> AsyncIterator[Metrics]:
    """Run an operator that leads."""
    metrics = Metrics(version="test")
    async with background(asyncio.create_task(Operator(options, client, metrics, VirtualClock()).run())):
        await asyncio.sleep(1)
        yield metrics


def damped(metrics: Metrics) -> list[str]:
    """Return the resources of which writes were delayed."""
    families = (family for family in metrics.registry.collect() if family.name == "mpiop_damped_writes")
    return [sample.labels["resource"] for family in families for sample in family.samples]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_what_is_undone_each_time_is_written_ever_more_slowly_and_the_job_says_who_undoes_it(case: Case) -> None:
    client = FakeClient()
    async with operating(client):
        async with AsyncExitStack() as disturbance:
            for options in case.others:
                await disturbance.enter_async_context(operating(client, options))
            await disturbance.enter_async_context(background(asyncio.create_task(case.disturb(client))))
            await client.create(MPIJOBS, mpijob())
            if case.condition == c.CONDITION_DEGRADED:
                await asyncio.sleep(1)
                world = World(client=client)
                world.start_workers()
                world.start_launcher()
            counts = [0]
            for _ in range(4):
                await asyncio.sleep(60)
                counts.append(writes(client, *case.fought))
            found = problem(client)
        assert found is not None
        assert (found.type, found.reason) == (case.condition, case.reason)
        assert case.message in found.message
        first, *later = [after - before for before, after in pairwise(counts)]
        assert first <= FIRST_MINUTE
        assert max(later) <= LATER
        client.server.writes.admissions.clear()
        await asyncio.sleep(QUIET_SECONDS)
        left = problem(client)
        assert left is None or left.reason != case.reason  # there is no Job controller, so a cause may be left


async def test_other_jobs_are_not_affected() -> None:
    client = FakeClient()
    async with operating(client), background(asyncio.create_task(delete_service(client))):
        await client.create(MPIJOBS, mpijob())
        await asyncio.sleep(60)
        client.actions.clear()
        await client.create(MPIJOBS, mpijob("other"))
        await asyncio.sleep(1)
        made = [str(action) for action in client.actions if "other" in action.key.name and action.verb == "create"]
    assert len(made) == len(set(made)) == 1 + 6 + 1, "the job, its six children and an event"


async def toggle_suspend(client: FakeClient, number: int) -> None:
    """A user or Kueue suspends and resumes; up to Kubernetes 1.35 each resume removes the launcher Job's startTime."""
    await client.patch(MPIJOBS, KEY, {"spec": {"runPolicy": {"suspend": number % 2 == 0}}})
    if number % 2 == 0:
        await asyncio.sleep(0.5)
        client.server.put_status(JOBS, Key("default", "pi-launcher"), {"startTime": "2026-01-01T00:00:00Z", "active": 0})


async def scale(client: FakeClient, number: int) -> None:
    await client.patch(MPIJOBS, KEY, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1 + number % 2}}}})


async def lose_a_worker(client: FakeClient, number: int) -> None:
    """Workers are lost one after the other, and their replacements run."""
    client.server.remove(PODS, Key("default", f"pi-worker-{number % 2}"))


async def end_a_worker(client: FakeClient, number: int) -> None:
    World(client=client).pod_status(f"pi-worker-{number % 2}", "Failed")


@pytest.mark.parametrize("happens", [toggle_suspend, scale, lose_a_worker, end_a_worker])
async def test_an_ordinary_life_is_never_slowed_down(happens: Callable[[FakeClient, int], Awaitable[None]]) -> None:
    client = FakeClient()
    async with operating(client) as metrics:
        world = World(client=client)
        await client.create(MPIJOBS, mpijob())
        for number in range(20):
            await asyncio.sleep(4)
            world.start_workers()
            world.start_launcher()
            await asyncio.sleep(4)
            await happens(client, number)
        assert damped(metrics) == []
        found = problem(client)
        assert found is None or found.reason not in {"ChangedBack", "SecondOperator"}


async def test_an_operator_that_restarts_meanwhile_reports_the_same_and_writes_no_faster() -> None:
    client = FakeClient()
    async with operating(client):
        async with operating(client, OTHER):
            await client.create(MPIJOBS, mpijob())
            await asyncio.sleep(180)
        async with operating(client, OTHER):
            for _ in range(8):
                before = writes(client, CONFIG_MAPS, "pi-config"), writes(client, MPIJOBS, "pi")
                await asyncio.sleep(60)
                found = problem(client)
                assert found is not None
                assert found.reason == "SecondOperator"
                assert writes(client, CONFIG_MAPS, "pi-config") - before[0] <= LATER + 1, "the new process knows nothing yet"
                assert writes(client, MPIJOBS, "pi") - before[1] <= LATER
