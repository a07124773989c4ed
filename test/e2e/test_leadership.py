"""Who leads when replicas end, die, freeze, or lose the API server, under a steady stream of jobs; and with a client-go program as a rival.

The replicas are processes that use an embedded control plane with simulated nodes. What they wrote is read from the API server's audit log,
where each is known by its token. The last test is about the operator as it is deployed.
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
import pytest_asyncio

from e2e.clusters import ROOT
from e2e.jobs import LAUNCHER, is_true, pi_job, with_script
from e2e.kubectl import Kubectl
from e2e.operator_pods import Operator
from e2e.rival import Watched, rival_of
from e2e.scene import EXPECTED, STEADY_JOBS, Scene, gap_seconds, scene_of
from e2e.stream import short_job
from e2e.team import Member, team_of
from e2e.waiting import until
from faults.testbed import FaultTestbed, prepared
from mpiop.kube.objects import Key, uid_of
from mpiop.kube.resources import EVENTS, MPIJOBS, PODS, Selection

ON_SHARED_LOOP = pytest.mark.asyncio(loop_scope="module")
LEASE_SECONDS = 15
RIVAL_LEASE_SECONDS = 5
TERM_SECONDS = 1.5
SPARE_SECONDS = 2.0
OUTAGE_SECONDS = 60
ROLLING_PAUSE_SECONDS = 1.5
OWN_LOAD = 2.0
"""Load for each processor that these tests make by themselves."""

UNREPORTED = 3
"""Events that may be missing after a leader had no time to record its last ones: those that it was just writing."""
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HOLDER = re.compile(r"\S+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Say = Callable[[str], None]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def testbed() -> AsyncIterator[FaultTestbed]:
    """A control plane of this module's own, with simulated nodes, that logs every request."""
    folder, options = ROOT / "build" / "leadership", ("--kwok", "2", "--audit")
    async with prepared("leadership", folder, lease_seconds=LEASE_SECONDS, options=options) as testbed:
        yield testbed


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Print a figure, so that it is seen when the test passes too."""

    def print_figure(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")  # noqa: T201 - a figure is for people

    return print_figure


def others_than_lost(scene: Scene) -> list[int]:
    """Return the exit codes but for 1, which is that of a lost lease."""
    return [code for code in scene.team.exits() if code != 1]


def patience() -> float:
    """Return by what to multiply times that report how quick the operator is: 1, or more where others want the processors too."""
    return max(1.0, os.getloadavg()[0] / (OWN_LOAD * (os.cpu_count() or 1)))


@ON_SHARED_LOOP
async def test_a_leader_that_is_terminated_is_followed_at_once(testbed: FaultTestbed, say: Say) -> None:
    async with scene_of(testbed, "handover") as scene:
        left = list[tuple[Member, float]]()
        for _ in range(3):
            leader = await scene.steady_leader()
            left.append((leader, time.time()))
            leader.replica.signal(signal.SIGTERM)
            await scene.team.until_led(not_by=leader)
        await scene.stream.until_more(STEADY_JOBS)
    requests = scene.requests()
    gaps = [gap_seconds(requests, leader, at) for leader, at in left]
    say(f"SIGTERM to the successor's first write: {', '.join(f'{gap:.2f} s' for gap in gaps)}")
    assert min(gaps) <= TERM_SECONDS * patience(), "the best of three: other work on the machine is no fault of the operator's"
    assert max(gaps) < LEASE_SECONDS, "nobody waits for the end of a lease that was released"
    assert others_than_lost(scene) == [0, 0, 0]


@ON_SHARED_LOOP
async def test_a_leader_that_is_killed_is_followed_when_its_lease_ends(testbed: FaultTestbed, say: Say) -> None:
    async with scene_of(testbed, "killed", unanswered=UNREPORTED) as scene:
        leader = await scene.steady_leader()
        at = time.time()
        leader.replica.signal(signal.SIGKILL)
        await scene.team.until_led(not_by=leader)
        await scene.stream.until_more(STEADY_JOBS)
    requests = scene.requests()
    gap = gap_seconds(requests, leader, at)
    say(f"SIGKILL to the successor's first write: {gap:.2f} s, with a lease of {LEASE_SECONDS} s")
    assert gap <= LEASE_SECONDS + SPARE_SECONDS * patience()
    assert others_than_lost(scene) == [-signal.SIGKILL]


@ON_SHARED_LOOP
async def test_a_leader_that_was_frozen_writes_nothing_when_it_wakes(testbed: FaultTestbed, say: Say) -> None:
    async with scene_of(testbed, "frozen", unanswered=UNREPORTED) as scene:
        leader = await scene.steady_leader()
        at = time.time()
        leader.replica.signal(signal.SIGSTOP)
        await scene.team.until_led(not_by=leader)
        await asyncio.sleep(at + 2 * LEASE_SECONDS - time.time())
        woken_at = time.time()
        leader.replica.signal(signal.SIGCONT)
        await until("the frozen leader to end", lambda: has_ended(leader))
        ended_at = time.time()
        await until("it to stand by", leader.replica.is_ready)
        await scene.stream.until_more(STEADY_JOBS)
    requests = scene.requests()
    late = [each for each in requests if each.is_write and each.credential == leader.credential and woken_at < each.at <= ended_at]
    say(f"frozen for {woken_at - at:.0f} s; then {len(late)} writes of it; successor after {gap_seconds(requests, leader, at):.2f} s")
    assert late == []
    assert leader.replica.exits[0] == 1
    assert others_than_lost(scene) == []


@ON_SHARED_LOOP
async def test_an_api_server_that_is_away_for_a_minute_costs_no_pod_and_leaves_one_leader(testbed: FaultTestbed, say: Say) -> None:
    async with scene_of(testbed, "outage", unanswered=UNREPORTED) as scene:
        long = [f"long-{number}" for number in range(3)]
        for name in long:
            await testbed.client.create(MPIJOBS, short_job(Key(scene.namespace, name), runs_seconds=3600))
        leader = await scene.steady_leader()
        before = await running_pods(testbed, scene.namespace, long)
        await testbed.control("stop", "kube-apiserver")
        await asyncio.sleep(OUTAGE_SECONDS)
        alive = [await member.is_alive() for member in scene.team.members]
        await testbed.control("start", "kube-apiserver")
        back_at = time.time()
        await scene.team.until_led()
        await scene.stream.until_more(STEADY_JOBS)
        await scene.stream.until_succeeded()
        leaders = await scene.team.leaders()
        assert await running_pods(testbed, scene.namespace, long) == before
    requests = scene.requests()
    first = min(each.at for each in requests if each.is_work and each.at > back_at)
    say(f"API server away for {OUTAGE_SECONDS} s: first write {first - back_at:.2f} s after its return, exits {scene.team.exits()}")
    assert alive == [True, True, True]
    assert len(leaders) == 1
    assert leader.replica.exits[:1] == [1], "the leader ends, the others wait"
    assert others_than_lost(scene) == []


async def running_pods(testbed: FaultTestbed, namespace: str, jobs: Sequence[str]) -> dict[str, str]:
    """Return the UIDs of the Pods of `jobs` when each has its two and all run."""
    found = dict[str, str]()

    async def all_run() -> bool:
        page = await testbed.client.list_page(Selection(PODS, namespace), resource_version="")
        pods: Any = [pod for pod in page["items"] if pod["metadata"]["name"].startswith(tuple(f"{job}-" for job in jobs))]
        found.clear()
        found.update({pod["metadata"]["name"]: uid_of(pod) for pod in pods if pod.get("status", {}).get("phase") == "Running"})
        return len(found) == len(pods) == 2 * len(jobs)

    await until(f"two running Pods for each of {', '.join(jobs)}", all_run)
    return found


@ON_SHARED_LOOP
async def test_ours_takes_the_lease_from_a_client_go_elector(testbed: FaultTestbed, say: Say) -> None:
    async with (
        team_of(testbed, "from-go", 0, lease_seconds=RIVAL_LEASE_SECONDS) as team,
        rival_of(testbed, "from-go", lease_seconds=RIVAL_LEASE_SECONDS) as rival,
    ):
        lease = Watched(testbed, "from-go")
        await rival.start()
        theirs = await lease.until_held(not_by="")
        ours = await team.add()
        await lease.until_renewed(RIVAL_LEASE_SECONDS + 1)
        assert lease.holder == theirs, "a lease that is renewed is not taken"

        await rival.end(signal.SIGTERM)
        at = time.time()
        await lease.until_held(not_by=theirs)
        released = time.time() - at
        assert await team.until_led() is ours
        assert_has_the_shape_of_client_go(lease.spec, transitions=1)

        ours.replica.signal(signal.SIGSTOP)
        await rival.start()
        theirs = await lease.until_held(not_by=lease.holder)
        ours.replica.signal(signal.SIGCONT)
        await until("ours to end", lambda: has_ended(ours))
        await until("ours to stand by", ours.replica.is_ready)
        assert lease.spec["leaseTransitions"] == 2

        await rival.end(signal.SIGKILL)
        at = time.time()
        await lease.until_held(not_by=theirs)
        expired = time.time() - at
        assert_has_the_shape_of_client_go(lease.spec, transitions=3)
        assert await team.until_led() is ours
    say(f"from client-go, lease of {RIVAL_LEASE_SECONDS} s: released, ours after {released:.2f} s; killed, ours after {expired:.2f} s")
    assert released <= TERM_SECONDS * patience()
    assert expired <= RIVAL_LEASE_SECONDS + SPARE_SECONDS * patience()


@ON_SHARED_LOOP
async def test_a_client_go_elector_takes_the_lease_from_ours(testbed: FaultTestbed, say: Say) -> None:
    async with (
        team_of(testbed, "to-go", 1, lease_seconds=RIVAL_LEASE_SECONDS) as team,
        rival_of(testbed, "to-go", lease_seconds=RIVAL_LEASE_SECONDS) as rival,
    ):
        lease, [ours] = Watched(testbed, "to-go"), team.members
        first = await lease.until_held(not_by="")
        await rival.start()
        await lease.until_renewed(2 * RIVAL_LEASE_SECONDS)
        assert lease.holder == first
        assert_has_the_shape_of_client_go(lease.spec, transitions=0)

        at = time.time()
        await ours.replica.stop()  # and not started again before client-go has asked, or it would take its own lease back
        theirs = await lease.until_held(not_by=first)
        released = time.time() - at
        assert released < RIVAL_LEASE_SECONDS, "it was released, and did not run out"
        assert lease.spec["leaseTransitions"] == 1
        await ours.replica.start()
        await until("ours to stand by", ours.replica.is_ready)
        await lease.until_renewed(3)
        assert lease.holder == theirs
        assert await team.leaders() == []
    say(f"to client-go, which asks every 1 to 2.2 s: released by ours, client-go after {released:.2f} s")


async def has_ended(member: Member) -> bool:
    """Return whether a process of the replica has ended."""
    return bool(member.replica.exits)


def assert_has_the_shape_of_client_go(spec: dict[str, Any], *, transitions: int) -> None:
    """Assert that what we wrote into a Lease is what client-go writes; its readers take that for granted."""
    assert set(spec) == {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}
    assert HOLDER.fullmatch(spec["holderIdentity"])
    assert spec["leaseDurationSeconds"] == RIVAL_LEASE_SECONDS
    assert spec["leaseTransitions"] == transitions
    assert STAMP.fullmatch(spec["acquireTime"])
    assert STAMP.fullmatch(spec["renewTime"])


def test_a_rolling_update_of_the_deployment_loses_no_job_and_doubles_no_event(namespace: Kubectl, operator: Operator, say: Say) -> None:
    before = {pod["metadata"]["name"] for pod in operator.pods()}
    jobs = list[str]()

    def one_more() -> None:
        jobs.append(f"rolled-{len(jobs)}")
        namespace.apply(with_script(pi_job(jobs[-1], workers=1), "exit 0"))

    one_more()
    operator.kubectl.run("rollout", "restart", "deployment/mpi-operator")
    status = operator.kubectl.command("rollout", "status", "deployment/mpi-operator", "--timeout=120s")
    with subprocess.Popen(status, env=operator.kubectl.environment, stdout=subprocess.DEVNULL) as rolling:
        while rolling.poll() is None:
            one_more()
            with contextlib.suppress(subprocess.TimeoutExpired):
                rolling.wait(timeout=ROLLING_PAUSE_SECONDS)
    assert rolling.returncode == 0
    operator.wait_until_ready()
    one_more()
    ended = namespace.until(MPIJOBS, lambda found: all(is_true(job, "Succeeded") for job in found), timeout_seconds=150)
    assert [job["metadata"]["name"] for job in ended] == sorted(jobs)
    assert before.isdisjoint(pod["metadata"]["name"] for pod in operator.pods())
    reported = Counter[tuple[str, str]]()
    for event in namespace.read_all(EVENTS):
        if event["involvedObject"]["kind"] == MPIJOBS.kind:
            reported[event["involvedObject"]["name"], event["reason"]] += event.get("count", 1)
    assert {each: count for each, count in reported.items() if count != 1} == {}
    unanswered = [f"{job}: {reason}" for job in jobs for reason in EXPECTED if not reported[job, reason]]
    # A replica that ends has two seconds to write the events that wait: none is lost, but where all of that takes longer.
    assert len(unanswered) <= patience() - 1, unanswered
    launchers = namespace.read_all(PODS, LAUNCHER)
    assert len(launchers) == len(jobs)
    assert {status["restartCount"] for pod in launchers for status in pod["status"]["containerStatuses"]} == {0}
    say(f"rolling update of the Deployment under {len(jobs)} jobs: all Succeeded")
