"""Leader election: the invariants L60-L66, and the faults F13, F34, F40-F48 as far as they need no process. Times are virtual."""

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.api_server import FakeApiServer
from mpiop.clock import Clock
from mpiop.kube.client import Client
from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import Key, Object
from mpiop.kube.request import Request
from mpiop.kube.resources import LEASES
from mpiop.leaderelection import ElectionConfig, LeaderElector, LeaseLostError, unique_identity
from mpiop.options import Options
from virtual_time import VirtualClock, VirtualTimeLoop

KEY = Key("mpi-operator", "mpi-operator")
CONFIG = ElectionConfig(KEY)
NO_ANSWER = TransportError("get Lease: no answer")
Work = Callable[[], Awaitable[None]]


class AdjustableClock(VirtualClock):
    """The loop's clock, on a machine that can be suspended and whose wall clock people set."""

    def __init__(self) -> None:
        super().__init__()
        self._suspended_seconds = 0.0
        self._wall_ahead_seconds = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._suspended_seconds + self._wall_ahead_seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self._suspended_seconds

    def suspend(self, seconds: float) -> None:
        """Let time pass in which nothing runs, and that the loop's own clock (CLOCK_MONOTONIC) does not see."""
        self._suspended_seconds += seconds

    def set_wall_ahead(self, seconds: float) -> None:
        self._wall_ahead_seconds = seconds


class LeaseServer(FakeApiServer):
    """A fake API server whose requests can take time, before they take effect and after."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.seconds_before = 0.0
        self.seconds_after = 0.0
        self.calls = 0

    async def call(self, request: Request) -> dict[str, Any]:
        self.calls += 1
        assert self.calls < 10_000, "a hot loop"
        await asyncio.sleep(self.seconds_before)
        answer = await super().call(request)
        await asyncio.sleep(self.seconds_after)
        return answer

    def lease(self) -> Object:
        (lease,) = self.objects(LEASES)
        return lease

    def spec(self) -> dict[str, Any]:
        return self.lease().get("spec") or {}

    def label(self, value: str) -> None:
        """Let somebody else change the labels of the Lease alone."""
        lease = self.lease()
        self.put(LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {"touched": value}}})

    def spoil(self) -> None:
        """Store a Lease that only the watch sees, and that nothing can read."""
        lease = self.lease()
        self.put(LEASES, {**lease, "spec": "nonsense"})
        self.put(LEASES, lease)

    def held_by(self, holder: str, *, duration: Any = 15, **spec: Any) -> None:
        """Let somebody else write the Lease."""
        desired = {"holderIdentity": holder, "leaseDurationSeconds": duration, "leaseTransitions": 3, **spec}
        self.put(LEASES, {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "labels": {"team": "hpc"}}, "spec": desired})


class Replica:
    """One process that stands for election; its work notes when it begins and ends."""

    def __init__(self, server: "LeaseServer", identity: str, clock: Clock | None = None) -> None:
        self.clock = clock or server.clock
        self.elector = LeaderElector(CONFIG, Client(server), self.clock, identity)
        self.began_at: float | None = None
        self.ended_at: float | None = None
        self.led_at_end = False
        self.has_begun = asyncio.Event()
        self.seconds_to_stop = 0.0
        self.task = asyncio.create_task(self.elector.lead(self.work))

    async def work(self) -> None:
        self.began_at = now()
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.led_at_end = self.elector.is_leader
            await asyncio.sleep(self.seconds_to_stop)
            self.ended_at = now()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def lose(self, match: str | None = None) -> None:
        """Wait until it ends because its Lease is lost."""
        with pytest.raises(LeaseLostError, match=match):
            await self.task

    def kill(self) -> None:
        """Let it write nothing any more, as kill -9 does."""
        self.elector._lock._client = Client(FakeApiServer(self.clock))


def now() -> float:
    return asyncio.get_running_loop().time()


def conflict() -> StatusError:
    return StatusError("update Lease", {"kind": "Status", "code": 409, "reason": "Conflict", "message": "modified"})


def unavailable() -> StatusError:
    return StatusError("get Lease", {"kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": "try later"})


@asynccontextmanager
async def replica(server: LeaseServer, identity: str = "a", **how: Any) -> AsyncIterator[Replica]:
    candidate = Replica(server, identity, **how)
    try:
        yield candidate
    finally:
        await candidate.stop()


@asynccontextmanager
async def leading(server: LeaseServer) -> AsyncIterator[Replica]:
    async with replica(server) as leader:
        await leader.has_begun.wait()
        yield leader


@pytest.fixture
async def clock() -> AdjustableClock:
    return AdjustableClock()


@pytest.fixture
async def server(clock: AdjustableClock) -> LeaseServer:
    return LeaseServer(clock)


# L60


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        pytest.param((10, 10, 3), "--lease-duration 10s must be longer than --renew-deadline 10s", id="a second leader could start early"),
        pytest.param((15, 3.5, 3), "--renew-deadline 3.5s must be longer than 1.2 times --retry-period 3s", id="one failure would end it"),
        pytest.param((15, 6, 5), "--renew-deadline 6s must be longer than 1.2 times --retry-period 5s", id="one failure would just end it"),
        pytest.param((15, 10, 0), "--retry-period 0s must be longer than 0s", id="no pause"),
        pytest.param((15.5, 10, 3), "--lease-duration 15.5s must be whole seconds", id="a Lease has no fractions"),
    ],
)
def test_L60_times_that_cannot_keep_two_leaders_apart_are_refused(times: tuple[float, float, float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ElectionConfig(KEY, *times)


@pytest.mark.parametrize("key", [Key("", "x"), Key("x", "")], ids=["no namespace", "no name"])
def test_L60_a_lease_needs_namespace_and_name(key: Key) -> None:
    with pytest.raises(ValueError, match="--lock-namespace and --lease-name"):
        ElectionConfig(key)


async def test_L60_an_identity_is_needed(server: LeaseServer) -> None:
    with pytest.raises(ValueError, match="identity"):
        LeaderElector(CONFIG, Client(server), server.clock, "")


def test_L60_the_default_options_are_allowed() -> None:
    assert ElectionConfig.from_options(Options()) == ElectionConfig(Key("mpi-operator", "mpi-operator"), 15, 10, 3)


@pytest.mark.parametrize(("renew_deadline_seconds", "request_deadline_seconds"), [(10.0, 2.5), (4.0, 1.0), (3.0, 1.0), (1.5, 0.75)])
def test_F10_a_request_may_take_a_quarter_of_the_deadline_or_a_second_but_never_more_than_half_of_it(
    renew_deadline_seconds: float, request_deadline_seconds: float
) -> None:
    config = ElectionConfig(KEY, lease_duration_seconds=15, renew_deadline_seconds=renew_deadline_seconds, retry_period_seconds=0.4)
    assert config.request_deadline_seconds == request_deadline_seconds


def test_identities_differ_on_one_host() -> None:
    first, second = unique_identity("node-1"), unique_identity("node-1")
    assert first.startswith("node-1_")
    assert first != second


# L61


async def test_L61_an_absent_lease_is_taken_at_once(server: LeaseServer) -> None:
    async with leading(server) as candidate:
        assert candidate.began_at == 0
        assert server.spec() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }


@pytest.mark.parametrize("is_watch_refused", [False, True], ids=["with a watch", "by polling alone"])
@pytest.mark.parametrize("duration", [20, 0.5])
async def test_L61_an_unchanged_record_is_taken_after_its_own_duration(
    server: LeaseServer, duration: float, *, is_watch_refused: bool
) -> None:
    server.held_by("other", duration=duration)
    if is_watch_refused:
        server.refuse("watch", LEASES, "", unavailable())
    async with leading(server) as candidate:
        assert candidate.began_at == pytest.approx(duration, abs=0.2)


@pytest.mark.parametrize(
    ("change", "began_at"),
    [
        pytest.param(lambda server: server.held_by("other", renewTime="2026-01-01T00:00:14.000000Z"), 14 + 15, id="a renewal does"),
        pytest.param(lambda server: server.label("by kubectl"), 15, id="a new label does not"),
    ],
)
async def test_L61_a_change_of_the_record_begins_the_wait_anew(
    server: LeaseServer, change: Callable[[LeaseServer], None], began_at: float
) -> None:
    server.held_by("other")
    async with replica(server) as candidate:
        await asyncio.sleep(14)
        change(server)
        await candidate.has_begun.wait()
        assert candidate.began_at == pytest.approx(began_at, abs=0.2)


@pytest.mark.parametrize("is_watch_refused", [False, True], ids=["with a watch", "by polling alone"])
async def test_L61_a_holder_that_renews_is_never_replaced(server: LeaseServer, *, is_watch_refused: bool) -> None:
    if is_watch_refused:
        server.refuse("watch", LEASES, "", unavailable())
    server.held_by("other")
    async with replica(server) as candidate:
        for turn in range(20):
            server.held_by("other", renewTime=f"2026-01-01T00:00:{turn:02}.000000Z")
            await asyncio.sleep(10)
        assert not candidate.has_begun.is_set()


@pytest.mark.parametrize("renewed", ["2020-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z"], ids=["long ago", "in the future"])
@pytest.mark.parametrize("skew", [-3600.0, 600.0, 3600.0])
async def test_L61_F43_wall_clocks_are_never_compared(server: LeaseServer, clock: AdjustableClock, renewed: str, skew: float) -> None:
    server.held_by("other", renewTime=renewed)
    async with replica(server) as candidate:
        await asyncio.sleep(5)
        clock.set_wall_ahead(skew)
        await candidate.has_begun.wait()
        assert candidate.began_at == pytest.approx(15, abs=0.2)


@pytest.mark.parametrize("duration", [0, -1, None, "15", []], ids=repr)
@pytest.mark.parametrize("transitions", [-1, None, "many"], ids=repr)
async def test_L61_F46_a_record_that_says_no_duration_counts_for_ours(server: LeaseServer, duration: object, transitions: object) -> None:
    server.held_by("other", duration=duration, acquireTime="garbage", leaseTransitions=transitions)
    async with leading(server) as candidate:
        assert candidate.began_at == pytest.approx(15, abs=0.2)
        assert server.spec()["leaseTransitions"] == 1


@pytest.mark.parametrize("spec", [None, {"holderIdentity": ""}, {"holderIdentity": None}], ids=str)
async def test_L61_F46_a_lease_without_holder_is_taken_at_once(server: LeaseServer, spec: dict[str, Any] | None) -> None:
    server.put(LEASES, {"metadata": {"namespace": KEY.namespace, "name": KEY.name}, "spec": spec})  # type: ignore[typeddict-item]
    async with leading(server) as candidate:
        assert candidate.began_at == 0


async def test_L61_F44_a_standby_that_was_suspended_reads_again_before_it_takes_over(server: LeaseServer, clock: AdjustableClock) -> None:
    server.refuse("watch", LEASES, "", unavailable())
    server.held_by("other")
    async with replica(server) as candidate:
        await asyncio.sleep(1)
        clock.suspend(600)
        server.held_by("other", renewTime="2026-01-01T00:10:00.000000Z")
        await asyncio.sleep(14)
        assert not candidate.has_begun.is_set()


# L62

REFUSALS = [
    pytest.param("get", unavailable(), id="the read fails"),
    pytest.param("get", NO_ANSWER, id="the read has no answer"),
    pytest.param("update", conflict(), id="somebody else was faster"),
    pytest.param("update", NO_ANSWER, id="the write has no answer"),
]


@pytest.mark.parametrize(("verb", "error"), REFUSALS)
async def test_L62_who_is_refused_is_not_leader_and_tries_again(
    server: LeaseServer, verb: str, error: StatusError | TransportError
) -> None:
    server.held_by("")
    server.refuse("watch", LEASES, "", unavailable())
    server.refuse(verb, LEASES, "", error, times=1)
    async with replica(server) as candidate:
        await asyncio.sleep(1)
        assert not candidate.elector.is_leader
        await candidate.has_begun.wait()
        assert candidate.began_at is not None
        assert 3 <= candidate.began_at <= 6


async def test_L62_a_create_that_comes_second_does_not_lead(server: LeaseServer) -> None:
    server.seconds_before = 1.0
    async with replica(server) as candidate:
        await asyncio.sleep(1.5)  # it has read that there is no Lease
        server.held_by("other")
        await asyncio.sleep(14)
        assert not candidate.has_begun.is_set()
        assert server.spec()["holderIdentity"] == "other"


async def test_L62_tries_are_jittered(server: LeaseServer) -> None:
    server.refuse("*", LEASES, "", unavailable())
    async with replica(server):
        times: list[float] = []
        for _ in range(2000):
            before = len(server.requests)
            await asyncio.sleep(0.1)
            times += [now() for request in server.requests[before:] if request.verb == "get"]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(pauses) > 30
    assert 2.8 <= min(pauses) < max(pauses) <= 6.2
    assert len({round(pause, 1) for pause in pauses}) > 5


async def test_L62_T4_a_renewal_costs_one_request_and_reads_only_after_a_conflict(server: LeaseServer) -> None:
    async with leading(server) as leader:
        server.requests.clear()
        await asyncio.sleep(2.9)
        assert [request.verb for request in server.requests if request.verb != "watch"] == []
        await asyncio.sleep(7.1)
        assert [request.verb for request in server.requests if request.verb != "watch"] == ["update"] * 3
        server.label("by kubectl")
        server.requests.clear()
        await asyncio.sleep(3)
        assert [request.verb for request in server.requests] == ["update", "get", "update"]
        assert leader.elector.is_leader
        assert server.lease()["metadata"].get("labels") == {"touched": "by kubectl"}


async def test_L62_a_renewal_that_a_busy_server_refuses_is_tried_again_later_and_not_at_once(server: LeaseServer) -> None:
    async with leading(server) as leader:
        server.refuse("update", LEASES, "", unavailable(), times=1)
        server.requests.clear()
        await asyncio.sleep(3.5)
        assert [request.verb for request in server.requests] == ["update"]
        await asyncio.sleep(3)
        assert [request.verb for request in server.requests] == ["update", "get", "update"]
        assert leader.elector.is_leader


async def test_L62_T4_a_version_that_was_refused_is_not_sent_again(server: LeaseServer) -> None:
    async with leading(server) as leader:
        server.label("by kubectl")
        server.refuse("get", LEASES, "", unavailable(), times=1)
        server.requests.clear()
        await asyncio.sleep(6.5)
        assert [request.verb for request in server.requests] == ["update", "get", "get", "update"]
        assert leader.elector.is_leader


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_L62_F13_a_write_whose_answer_was_lost_is_found_to_be_ours(server: LeaseServer, verb: str) -> None:
    if verb == "update":
        server.held_by("")
    server.refuse("watch", LEASES, "", unavailable())
    server.refuse(verb, LEASES, "", NO_ANSWER, times=1, takes_effect=True)
    async with leading(server) as candidate:
        assert candidate.began_at is not None
        assert candidate.began_at <= 6, "at the next try, not when the lease ends"
        assert server.spec()["leaseTransitions"] == (0 if verb == "create" else 4)  # one takeover, however many requests
        assert server.spec()["acquireTime"] == "2026-01-01T00:00:00.000000Z"


async def test_L62_F13_a_renewal_whose_answer_was_lost_does_no_harm(server: LeaseServer) -> None:
    async with leading(server) as leader:
        server.refuse("update", LEASES, "", NO_ANSWER, times=1, takes_effect=True)
        await asyncio.sleep(60)
        assert leader.elector.is_leader


# L63


async def test_L63_a_takeover_counts_a_transition_and_keeps_what_is_not_ours(server: LeaseServer) -> None:
    server.held_by("other", strategy="OldestEmulationVersion", acquireTime="2025-01-01T00:00:00.000000Z")
    async with leading(server):
        await asyncio.sleep(0.5)
        spec = server.spec()
        assert spec["leaseTransitions"] == 4
        assert spec["acquireTime"] == spec["renewTime"] != "2025-01-01T00:00:00.000000Z"
        assert spec["strategy"] == "OldestEmulationVersion"
        assert server.lease()["metadata"].get("labels") == {"team": "hpc"}


async def test_L63_a_renewal_changes_the_renew_time_alone(server: LeaseServer) -> None:
    async with leading(server):
        first = server.spec()
        await asyncio.sleep(3.1)
        assert server.spec() == {**first, "renewTime": "2026-01-01T00:00:03.000000Z"}


# L64


async def test_L64_the_deadline_counts_from_when_the_last_success_was_sent(server: LeaseServer) -> None:
    server.seconds_after = 4.0  # of each request; the answer to the renewal that is sent at t comes at t + 4
    leader = Replica(server, "a")
    await leader.has_begun.wait()
    sent_at = now() - 4.0
    server.refuse("update", LEASES, "", unavailable())
    await leader.lose()
    assert leader.ended_at == pytest.approx(sent_at + 10, abs=0.01)


async def test_L64_an_answer_that_comes_after_its_own_deadline_makes_no_leader(server: LeaseServer) -> None:
    server.held_by("")
    server.seconds_after = 11.0
    async with replica(server) as candidate:
        await asyncio.sleep(100)
        assert not candidate.has_begun.is_set()
        assert candidate.elector.check() == []


@pytest.mark.parametrize("hangs", ["", "seconds_before", "seconds_after"])
async def test_L64_F45_without_renewal_work_is_cancelled_at_the_deadline(server: LeaseServer, hangs: str) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(7)  # renewed at 3 and at 6
    if hangs:
        setattr(server, hangs, 1000.0)
    else:
        server.refuse("update", LEASES, "", unavailable())
    await leader.lose("mpi-operator/mpi-operator is lost: the renew deadline has passed")
    assert leader.ended_at == pytest.approx(6 + 10, abs=0.01)
    assert not leader.elector.is_leader


async def test_L64_slow_failures_cost_no_tries(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(1)
    server.calls = 0
    server.seconds_before = 2.5
    server.refuse("update", LEASES, "", unavailable())
    await leader.lose()
    assert server.calls == 3  # begun at 3, 6 and 9, not 3 s after each failure


async def test_L64_a_success_in_time_keeps_the_lease(server: LeaseServer) -> None:
    async with replica(server) as leader:
        await asyncio.sleep(7)
        server.refuse("update", LEASES, "", unavailable())
        await asyncio.sleep(7)
        server.allow()
        await asyncio.sleep(60)
        assert leader.elector.is_leader
        assert leader.ended_at is None


async def test_L64_work_that_does_not_end_cannot_keep_the_process(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    leader.seconds_to_stop = 500.0
    await asyncio.sleep(1)
    server.refuse("update", LEASES, "", unavailable())
    await leader.lose()
    assert now() == pytest.approx(10 + 1, abs=0.01)  # before the lease itself ends at 15
    assert leader.ended_at is None


async def test_L64_F34_F44_a_blocked_loop_or_a_suspended_machine_ends_leadership_before_the_next_write(
    server: LeaseServer, clock: AdjustableClock
) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(1)
    leader.elector.assert_leading()
    clock.suspend(9.5)  # nothing ran meanwhile; the last renewal is 10.5 s old
    assert leader.elector.has_lost
    with pytest.raises(LeaseLostError):
        leader.elector.assert_leading()
    await leader.lose()
    assert now() == 1  # no further second of leading
    assert leader.ended_at == 1
    assert server.spec()["holderIdentity"] == "a"  # nothing was released


async def test_L64_an_answer_after_the_loss_brings_nothing_back(server: LeaseServer, clock: AdjustableClock) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(1)
    server.seconds_after = 1.0
    await asyncio.sleep(2.5)  # the renewal of second 3 is under way
    clock.suspend(7)
    assert not leader.elector.is_leader
    await leader.lose()
    assert not leader.elector.is_leader


class GrainyClock(VirtualClock):
    """A clock that reports it is a hair before second 10 for an instant longer than the loop does, as two real clocks may."""

    def monotonic(self) -> float:
        seconds = super().monotonic() - 10_000
        return math.nextafter(10, 0) if seconds == 10 else seconds


async def test_L64_a_hair_before_the_deadline_it_does_not_turn_hot(server: LeaseServer) -> None:
    await asyncio.sleep(10_000)
    leader = Replica(server, "a", clock=GrainyClock())
    await asyncio.sleep(1)
    server.refuse("update", LEASES, "", unavailable())
    await leader.lose()
    assert now() == pytest.approx(10_010, abs=0.01)


@pytest.mark.parametrize(
    ("is_lost", "reported", "holder"),
    [
        pytest.param(True, LeaseLostError, "a", id="lost: the loss is reported, and nothing is released"),
        pytest.param(False, RuntimeError, "", id="stopped: the error is reported, and the lease is released"),
    ],
)
async def test_L64_L65_work_that_fails_on_its_way_out_hides_no_loss_and_is_not_lost_itself(
    server: LeaseServer, reported: type[Exception], holder: str, *, is_lost: bool
) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("on the way out")

    elector = LeaderElector(CONFIG, Client(server), server.clock, "a")
    leading = asyncio.create_task(elector.lead(work))
    await asyncio.sleep(1)
    if is_lost:
        server.refuse("update", LEASES, "", unavailable())
    else:
        leading.cancel()
    with pytest.raises(reported):
        await leading
    assert server.spec()["holderIdentity"] == holder


async def test_L64_F40_a_stolen_lease_is_noticed_at_once_and_not_taken_back(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(4)
    assert leader.elector.is_leader
    server.held_by("thief")
    await leader.lose("thief holds it now")
    assert now() == pytest.approx(4, abs=0.1)
    assert not leader.led_at_end, "nothing may be written any more"
    assert server.spec()["holderIdentity"] == "thief"


@pytest.mark.parametrize("is_gone", [True, False], ids=["deleted", "emptied"])
async def test_L64_F46_a_lease_that_others_delete_or_empty_is_taken_again_by_the_leader(server: LeaseServer, *, is_gone: bool) -> None:
    async with replica(server) as leader:
        await asyncio.sleep(4)
        if is_gone:
            server.remove(LEASES, KEY)
        else:
            server.put(LEASES, {**server.lease(), "spec": {}})
        await asyncio.sleep(0.1)
        assert server.spec()["holderIdentity"] == "a"
        await asyncio.sleep(60)
        assert leader.elector.is_leader


# L65


async def test_L65_the_lease_is_released_after_the_work_has_ended(server: LeaseServer) -> None:
    server.held_by("")
    leader = Replica(server, "a")
    leader.seconds_to_stop = 40.0  # longer than the lease: it is renewed meanwhile
    await asyncio.sleep(4)
    leader.task.cancel()
    await asyncio.sleep(39)
    still_at_work, still_leading = leader.ended_at is None, leader.elector.is_leader
    assert still_at_work
    assert still_leading
    assert server.spec()["holderIdentity"] == "a"
    with pytest.raises(asyncio.CancelledError):
        await leader.task
    assert leader.ended_at == 44
    assert not leader.elector.is_leader
    assert not leader.elector.has_lost
    spec = server.spec()
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 4)
    assert spec["renewTime"] == spec["acquireTime"] == "2026-01-01T00:00:44.000000Z"


async def test_L65_a_standby_takes_over_at_once_after_a_release(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    await leader.has_begun.wait()
    async with replica(server, "b") as standby:
        await asyncio.sleep(100)
        assert not standby.has_begun.is_set()
        await leader.stop()
        await asyncio.sleep(0.1)
        assert standby.elector.is_leader
        assert server.spec()["holderIdentity"] == "b"
        assert server.spec()["leaseTransitions"] == 1


async def test_L65_a_standby_takes_over_a_killed_leaders_lease_when_it_ends(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    async with replica(server, "b") as standby:
        await asyncio.sleep(10)  # renewed at 9
        leader.kill()
        await standby.has_begun.wait()
        assert standby.began_at == pytest.approx(9 + 15, abs=0.2)
    await leader.stop()


@pytest.mark.parametrize("outcome", ["returns", "fails"])
async def test_L65_work_that_ends_by_itself_releases_too(server: LeaseServer, outcome: str) -> None:
    async def work() -> None:
        await asyncio.sleep(1)
        if outcome == "fails":
            raise RuntimeError("out of ideas")

    elector = LeaderElector(CONFIG, Client(server), server.clock, "a")
    leading = asyncio.create_task(elector.lead(work))
    await asyncio.wait({leading})
    assert isinstance(leading.exception(), RuntimeError if outcome == "fails" else type(None))
    assert server.spec()["holderIdentity"] == ""
    assert not elector.is_leader
    assert asyncio.all_tasks() == {asyncio.current_task()}, "neither the watch nor the renewal goes on"


@pytest.mark.parametrize("holders", [["thief"], []], ids=["somebody else's", "gone"])
async def test_L65_a_lease_that_is_not_ours_any_more_is_not_released(server: LeaseServer, holders: list[str]) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(4)
    leader.task.cancel()
    server.remove(LEASES, KEY)  # between the end of the work and the release
    for holder in holders:
        server.held_by(holder)
    await asyncio.wait({leader.task})
    assert [lease.get("spec", {})["holderIdentity"] for lease in server.objects(LEASES)] == holders


async def test_L65_nothing_is_released_after_a_loss(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(1)
    server.refuse("update", LEASES, "", unavailable(), times=4)  # renewals at 3, 6, 9: the deadline passes, then updates would work
    await leader.lose()
    assert server.spec()["holderIdentity"] == "a"
    assert leader.elector.has_lost


async def test_L65_a_stop_after_an_unnoticed_loss_releases_nothing(server: LeaseServer, clock: AdjustableClock) -> None:
    async def work() -> None:
        await asyncio.sleep(1)
        clock.suspend(600)

    elector = LeaderElector(CONFIG, Client(server), server.clock, "a")
    await elector.lead(work)
    assert elector.has_lost
    assert server.spec()["holderIdentity"] == "a"


ATTEMPT = ["get", "update"]


@pytest.mark.parametrize(
    ("error", "times", "requests", "holder"),
    [
        pytest.param(conflict(), 1, ATTEMPT * 2, "", id="a conflict: read and tried again"),
        pytest.param(conflict(), 9, ATTEMPT * 2, "a", id="conflicts for ever: twice at most"),
        pytest.param(unavailable(), 9, ATTEMPT, "a", id="refused otherwise: once"),
        pytest.param(NO_ANSWER, 9, ATTEMPT, "a", id="no answer: once"),
    ],
)
async def test_L65_T4_a_release_that_is_refused_is_tried_again_after_a_conflict_and_else_left_to_expire(
    server: LeaseServer, error: StatusError | TransportError, times: int, requests: list[str], holder: str
) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(4)
    server.refuse("update", LEASES, "", error, times=times)
    server.requests.clear()
    await leader.stop()
    assert [request.verb for request in server.requests] == requests
    assert (leader.task.cancelled(), now()) == (True, 4)
    assert server.spec()["holderIdentity"] == holder


async def test_L65_a_release_that_hangs_is_given_up(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    await asyncio.sleep(4)
    server.seconds_before = 1000.0
    await leader.stop()
    assert now() == pytest.approx(4 + 5)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_L65_a_lease_that_may_be_ours_is_released_when_the_wait_for_it_is_stopped(server: LeaseServer) -> None:
    server.refuse("watch", LEASES, "", unavailable())
    server.refuse("create", LEASES, "", NO_ANSWER, times=1, takes_effect=True)
    candidate = Replica(server, "a")
    await asyncio.sleep(1)
    assert server.spec()["holderIdentity"] == "a"
    await candidate.stop()
    assert not candidate.has_begun.is_set()
    assert server.spec()["holderIdentity"] == ""


async def test_L65_a_standby_that_is_stopped_writes_nothing(server: LeaseServer) -> None:
    server.held_by("other")
    candidate = Replica(server, "a")
    await asyncio.sleep(4)
    server.requests.clear()
    await candidate.stop()
    assert candidate.task.cancelled()
    assert server.requests == []


async def test_L65_stopped_twice_the_lease_is_left_to_expire_because_work_may_go_on(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    leader.seconds_to_stop = 40.0
    await asyncio.sleep(1)
    leader.task.cancel()
    await asyncio.sleep(1)
    leader.task.cancel()
    await asyncio.wait({leader.task})
    assert leader.task.cancelled()
    assert not leader.elector.is_leader
    assert now() == 2
    assert server.spec()["holderIdentity"] == "a"


async def test_L65_the_lease_is_lost_while_the_work_is_being_stopped(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    leader.seconds_to_stop = 40.0
    await asyncio.sleep(1)
    leader.task.cancel()
    server.refuse("update", LEASES, "", unavailable())
    await leader.lose()
    assert now() == pytest.approx(10, abs=0.01)


# L66


async def test_L66_a_leader_that_should_have_ended_is_unhealthy(server: LeaseServer, clock: AdjustableClock) -> None:
    leader = Replica(server, "a")
    assert leader.elector.check() == []
    await leader.has_begun.wait()
    await asyncio.sleep(100)  # renewed a second ago
    assert leader.elector.check() == []
    clock.suspend(29)
    assert leader.elector.check() == []  # it may be about to end
    clock.suspend(0.1)
    assert leader.elector.check() == ["leader for 30s without a renewal of Lease mpi-operator/mpi-operator"]
    await leader.lose()
    assert leader.elector.check() == []


async def test_L66_a_standby_is_healthy_however_long_it_waits(server: LeaseServer, clock: AdjustableClock) -> None:
    server.held_by("other", duration=3600)
    async with replica(server) as candidate:
        await asyncio.sleep(1)
        clock.suspend(1000)
        assert candidate.elector.check() == []


# The watch


async def test_a_watch_that_breaks_is_opened_again(server: LeaseServer) -> None:
    server.held_by("other", duration=3600)
    async with replica(server) as candidate:
        for _ in range(5):
            await asyncio.sleep(20)
            server.cut_streams()
        await asyncio.sleep(20)
        server.held_by("")
        await asyncio.sleep(0.1)
        assert candidate.elector.is_leader


@pytest.mark.parametrize("seconds", [20, 300.01], ids=["while it is watched", "just after the server ended the watch"])
@pytest.mark.parametrize("is_gone", [True, False], ids=["deleted", "released"])
async def test_a_lease_that_becomes_free_is_noticed_at_once(server: LeaseServer, seconds: float, *, is_gone: bool) -> None:
    server.held_by("other", duration=3600)
    async with replica(server) as candidate:
        await asyncio.sleep(seconds)
        if is_gone:
            server.remove(LEASES, KEY)
        else:
            server.held_by("")
        await asyncio.sleep(0.1)
        assert candidate.elector.is_leader


async def test_a_watch_that_is_refused_is_not_asked_for_in_a_hot_loop(server: LeaseServer) -> None:
    server.refuse("watch", LEASES, "", unavailable())
    server.held_by("other", duration=3600)
    async with replica(server):
        await asyncio.sleep(300)
    assert 40 <= len([request for request in server.requests if request.verb == "watch"]) <= 100


@pytest.mark.parametrize("holder", ["other", ""], ids=["while standing by", "while leading"])
async def test_F36_a_defect_of_the_watch_ends_the_election(server: LeaseServer, holder: str) -> None:
    server.held_by(holder)
    candidate = Replica(server, "a")
    await asyncio.sleep(1)
    server.spoil()
    with pytest.raises(AttributeError):
        await candidate.task
    assert now() == pytest.approx(1, abs=0.1), "at once, not at the next try"


async def test_L65_after_a_defect_the_lease_is_left_to_expire_while_the_work_goes_on(server: LeaseServer) -> None:
    leader = Replica(server, "a")
    leader.seconds_to_stop = 500.0
    await asyncio.sleep(1)
    server.spoil()  # ends the watch
    with pytest.raises(AttributeError):
        await leader.task
    assert leader.ended_at is None
    assert server.spec()["holderIdentity"] == "a"


# Two leaders, never


class SkewedClock(VirtualClock):
    """A clock that runs faster or slower than the others."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def monotonic(self) -> float:
        return super().monotonic() * self._rate


FAULTS = st.sampled_from(["refuse reads", "refuse writes", "lose answers", "refuse watches", "cut", "slow", "heal", "stop", "touch"])
SCRIPTS = st.lists(st.tuples(st.floats(0.1, 12.0), FAULTS), max_size=12)


@settings(max_examples=25, deadline=None)
@given(script=SCRIPTS, rates=st.tuples(*[st.sampled_from([0.95, 1.0, 1.1])] * 3))
def test_L61_L64_F48_there_are_never_two_leaders_whatever_fails(script: list[tuple[float, str]], rates: tuple[float, float, float]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(live_through(script, rates))


async def live_through(script: list[tuple[float, str]], rates: tuple[float, float, float]) -> None:
    server = LeaseServer(AdjustableClock())
    replicas = [Replica(server, name, clock=SkewedClock(rate)) for name, rate in zip("abc", rates, strict=True)]
    judge = asyncio.create_task(watch_for_two_leaders(replicas))
    for pause, fault in script:
        await asyncio.sleep(pause)
        await inflict(server, replicas, fault)
    server.allow()
    server.seconds_before = server.seconds_after = 0.0
    replicas.append(Replica(server, "fresh"))
    await asyncio.sleep(45)
    assert sum(one.elector.is_leader for one in replicas) == 1, "when all is well there is a leader again"
    judge.cancel()
    for one in replicas:
        await one.stop()
    (ended,) = await asyncio.gather(judge, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError), ended


async def watch_for_two_leaders(replicas: list[Replica]) -> Never:
    while True:
        assert sum(one.elector.is_leader for one in replicas) <= 1
        await asyncio.sleep(0.25)


async def inflict(server: LeaseServer, replicas: list[Replica], fault: str) -> None:
    match fault:
        case "refuse reads":
            server.refuse("get", LEASES, "", unavailable())
        case "refuse writes":
            server.refuse("update", LEASES, "", unavailable())
        case "lose answers":
            server.refuse("update", LEASES, "", NO_ANSWER, times=3, takes_effect=True)
        case "refuse watches":
            server.refuse("watch", LEASES, "", unavailable())
        case "cut":
            server.cut_streams()
        case "slow":
            server.seconds_before, server.seconds_after = 2.0, 3.0
        case "stop":
            await replicas[0].stop()
            replicas.append(Replica(server, f"next-{len(replicas)}"))
            replicas.append(replicas.pop(0))
        case "touch" if server.objects(LEASES):
            server.label(str(now()))
        case _:
            server.allow()
            server.seconds_before = server.seconds_after = 0.0
