"""What a Lease reports and what is asked about it, without an election around: the small print of L60, L61, L63 and L65."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.api_server import FakeApiServer
from mpiop.kube.client import Client
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object
from mpiop.kube.resources import LEASES
from mpiop.leaderelection import ElectionConfig
from mpiop.leaderelection.lock import LeaseLock
from mpiop.leaderelection.record import Observation, held, released
from virtual_time import VirtualClock

KEY = Key("mpi-operator", "mpi-operator")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONFLICT = StatusError("update Lease", {"kind": "Status", "code": 409, "reason": "Conflict", "message": "modified"})


class SetClock:
    """A clock that shows what a test sets."""

    seconds = 1000.0

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds


def lease(holder: object, **spec: Any) -> Object:
    return {"metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": {"holderIdentity": holder, **spec}}


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [(1, 1), (0.5, 0.5), (15, 15), (0, 20), (-1, 20), (None, 20), ("15", 20)],
)
def test_L61_a_record_counts_for_its_own_duration_from_when_it_came_and_changed(duration: object, seconds: float) -> None:
    clock = SetClock()
    observation = Observation(clock, fallback_duration_seconds=20)
    assert observation.remaining_seconds() == math.inf
    first = lease("b", leaseDurationSeconds=duration)
    assert observation.note(first)
    clock.seconds += 5
    assert not observation.note(first)
    assert observation.remaining_seconds() == seconds - 5
    assert observation.note(lease("b", leaseDurationSeconds=duration, renewTime="later"))
    assert observation.remaining_seconds() == seconds


def test_L61_a_record_that_says_nothing_counts_for_our_own_duration() -> None:
    observation = Observation(SetClock(), fallback_duration_seconds=20)
    assert observation.note({"metadata": {}})
    assert observation.remaining_seconds() == 20


@pytest.mark.parametrize(("reported", "counted"), [(0, 0), (1, 1), (7, 7), (-1, 0), (None, 0), ("7", 0)])
def test_L63_transitions_are_counted_from_what_the_record_says(reported: object, counted: int) -> None:
    old = lease("b", leaseTransitions=reported)
    assert held(old, "a", 15, NOON)["spec"]["leaseTransitions"] == counted + 1
    assert held(old, "b", 15, NOON)["spec"]["leaseTransitions"] == counted
    assert released(old, NOON)["spec"]["leaseTransitions"] == counted


@pytest.mark.parametrize(
    ("holder", "refusals", "was_released"),
    [("a", 0, True), ("a", 1, True), ("a", 2, False), ("b", 0, False), ("", 0, False), (None, 0, False)],
    ids=["ours", "ours after a conflict", "ours but for conflicts", "somebody else's", "nobody's", "no Lease at all"],
)
async def test_L65_a_release_reports_whether_there_was_something_to_release(
    holder: str | None, refusals: int, *, was_released: bool
) -> None:
    clock = VirtualClock()
    server = FakeApiServer(clock)
    if holder is not None:
        server.put(LEASES, lease(holder))
    server.refuse("update", LEASES, "", CONFLICT, times=refusals)
    lock = LeaseLock(ElectionConfig(KEY), Client(server), clock, "a")
    assert await lock.release() is was_released
    holders = [one["spec"]["holderIdentity"] for one in server.objects(LEASES)]
    assert holders == ([] if holder is None else [""] if was_released else [holder])
