"""The Lease as the Go operator writes it, and what it can read of ours: either takes over from the other (L61, L63, L65)."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.api_server import FakeClient
from fakes.following import background
from mpiop.kube.objects import Key
from mpiop.kube.resources import LEASES
from mpiop.leaderelection import ElectionConfig, LeaderElector, unique_identity
from mpiop.leaderelection.record import format_micro_time
from virtual_time import VirtualClock

KEY = Key("mpi-operator", "mpi-operator")
THEIRS = "mpi-operator-7d9c5b9f6b-x2x8q_4a3f7f0e-6b0c-4c9e-9d55-0f3a6f4d1b7e"
ACQUIRED = "2025-12-31T23:00:00.000001Z"
HELD = {
    "holderIdentity": THEIRS,
    "leaseDurationSeconds": 15,
    "acquireTime": ACQUIRED,
    "renewTime": "2025-12-31T23:59:58.123456Z",
    "leaseTransitions": 7,
}
RELEASED = {**HELD, "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": HELD["renewTime"]}
WITHOUT_EMPTY_HOLDER = {key: value for key, value in RELEASED.items() if key != "holderIdentity"}
FIRST_HELD = {key: value for key, value in HELD.items() if key != "leaseTransitions"}
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
"""What client-go parses stamps of a Lease with: RFC 3339 with six digits of a second, no more and no less."""


def write_as_go(client: FakeClient, spec: dict[str, Any]) -> None:
    metadata = {"namespace": KEY.namespace, "name": KEY.name, "managedFields": [{"manager": "mpi-operator", "operation": "Update"}]}
    client.server.put(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def read(client: FakeClient) -> dict[str, Any]:
    [lease] = client.server.objects(LEASES)
    return lease.get("spec") or {}


async def work_for_ever() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def standing(client: FakeClient) -> AsyncIterator[LeaderElector]:
    """Stand for election with the operator's own defaults."""
    elector = LeaderElector(ElectionConfig(KEY), client, VirtualClock(), unique_identity("mpi-operator-0"))
    async with background(asyncio.create_task(elector.lead(work_for_ever))):
        yield elector


async def test_L61_a_lease_that_the_go_operator_renews_is_left_to_it() -> None:
    client = FakeClient()
    write_as_go(client, HELD)
    async with standing(client) as ours:
        for second in range(0, 60, 3):
            await asyncio.sleep(3)
            write_as_go(client, HELD | {"renewTime": f"2026-01-01T00:00:{second:02d}.000000Z"})
        assert not ours.is_leader
        assert client.actions == []


@pytest.mark.parametrize(
    ("spec", "wait_seconds", "transitions"),
    [
        pytest.param(HELD, 15, 8, id="its holder died"),
        pytest.param(FIRST_HELD, 15, 1, id="its first holder died: zero transitions are not written"),
        pytest.param(RELEASED, 0, 8, id="released"),
        pytest.param(WITHOUT_EMPTY_HOLDER, 0, 8, id="released by a client that writes no empty holder"),
    ],
)
async def test_L61_L63_a_lease_of_the_go_operator_is_taken_when_it_is_free(
    spec: dict[str, Any], wait_seconds: float, transitions: int
) -> None:
    client = FakeClient()
    write_as_go(client, spec)
    async with standing(client) as ours:
        if wait_seconds:
            await asyncio.sleep(wait_seconds - 0.5)
            assert not ours.is_leader
        await asyncio.sleep(1)
        assert ours.is_leader
        assert read(client)["leaseTransitions"] == transitions
        assert_go_can_read(read(client))
        assert read(client)["acquireTime"] != ACQUIRED


async def test_L65_what_we_release_is_free_for_the_go_operator() -> None:
    client = FakeClient()
    write_as_go(client, RELEASED)
    async with standing(client):
        await asyncio.sleep(1)
    spec = read(client)
    assert spec["holderIdentity"] == ""
    assert spec["leaseDurationSeconds"] == 1
    assert spec["leaseTransitions"] == 8, "it counts when it takes over, not we"
    assert_go_can_read(spec | {"holderIdentity": "nobody_1"})


def assert_go_can_read(spec: dict[str, Any]) -> None:
    assert set(spec) == set(HELD)
    assert spec["holderIdentity"].count("_") == 1
    assert isinstance(spec["leaseDurationSeconds"], int)
    assert isinstance(spec["leaseTransitions"], int)
    assert MICRO_TIME.fullmatch(spec["acquireTime"])
    assert MICRO_TIME.fullmatch(spec["renewTime"])


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        pytest.param(datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00.000000Z", id="a whole second"),
        pytest.param(datetime(2026, 1, 1, 0, 0, 0, 5, UTC), "2026-01-01T00:00:00.000005Z", id="five microseconds"),
        pytest.param(datetime.fromisoformat("2026-01-01T01:00:00.120000+02:00"), "2025-12-31T23:00:00.120000Z", id="another zone"),
    ],
)
def test_L63_stamps_have_six_digits_of_a_second(moment: datetime, text: str) -> None:
    assert format_micro_time(moment) == text
