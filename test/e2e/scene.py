"""Replicas under a steady stream of jobs, and what must hold at the end whatever happened to them."""

import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from e2e.audit import Request, requests_of_operators
from e2e.stream import JobStream, streaming
from e2e.team import Member, Team, team_of
from faults.testbed import FaultTestbed
from mpiop.kube.objects import Key
from mpiop.kube.resources import EVENTS, LEASES, MPIJOBS, Selection

REPLICAS = 3
JOBS_A_SECOND = 3.0
STEADY_JOBS = 5
MOST_SHOWN = 20
LEASE_NAME = "mpi-operator"
EXPECTED = ("MPIJobCreated", "MPIJobSucceeded")


@dataclass
class Scene:
    """Three replicas under a stream of jobs.

    Attributes:
        team: The replicas.
        stream: The jobs.
        unanswered: Most events that may be missing because a leader was ended between storing a status and reporting it.
    """

    team: Team
    stream: JobStream
    unanswered: int = 0

    @property
    def namespace(self) -> str:
        return self.team.namespace

    def requests(self) -> list[Request]:
        """Return what the replicas asked for until now."""
        return requests_of_operators(self.team.testbed.cluster, self.namespace)

    async def steady_leader(self) -> Member:
        """Return who leads, once jobs have come for a while."""
        leader = await self.team.until_led()
        await self.stream.until_more(STEADY_JOBS)
        return leader


@contextlib.asynccontextmanager
async def scene_of(testbed: FaultTestbed, namespace: str, *, unanswered: int = 0) -> AsyncIterator[Scene]:
    """Yield a scene; when it ends, every job of the stream must have come to its end, with one of each object and each event."""
    async with team_of(testbed, namespace, REPLICAS, lease_seconds=testbed.lease_seconds) as team:
        async with streaming(testbed.client, namespace, JOBS_A_SECOND) as stream:
            scene = Scene(team, stream, unanswered)
            yield scene
        await stream.until_succeeded()
        lease: Any = await testbed.client.get(LEASES, Key(namespace, LEASE_NAME))
        turns, takeovers = len(writers(scene.requests())), lease["spec"]["leaseTransitions"]
        ones, lost = scene.team.exits().count(1), sum(lost_leases(member) for member in team.members)
    # The replicas have ended in order: what they had to report is reported.
    wrong = [*miscounts(scene.requests(), stream.created), *await wrong_events(testbed, scene)]
    if turns > takeovers + 1:
        wrong.append(f"replicas wrote by turns, {turns} in all, with {takeovers} takeovers of the lease")
    if ones != lost:
        wrong.append(f"{ones} processes ended with 1, {lost} for a lost lease")
    assert not wrong, f"{len(wrong)} complaints: {'; '.join(wrong[:MOST_SHOWN])}"


def miscounts(requests: Sequence[Request], jobs: Sequence[str]) -> list[str]:
    """Return what was not created just once for each job, and what was deleted."""
    creations = [each for each in requests if each.verb == "create" and each.is_work]
    made = Counter((each.what, each.name) for each in creations if each.code == HTTPStatus.CREATED)
    # The server may store what it was asked for, and not report it to one that has hung up: a leader that was ended in between.
    perhaps = {(each.what, each.name) for each in creations if each.code == 0 or each.code >= HTTPStatus.INTERNAL_SERVER_ERROR}
    names = {"services": "", "configmaps": "-config", "secrets": "-ssh", "jobs": "-launcher", "pods": "-worker-0"}
    desired = {(what, f"{job}{suffix}") for job in jobs for what, suffix in names.items()}
    wrong = [each for each in sorted(desired | made.keys()) if made[each] > 1 or (not made[each] and each not in perhaps)]
    deleted = [f"{each.what} {each.name}: deleted" for each in requests if each.verb == "delete"]
    return [f"{what} {name}: created {made[what, name]} times" for what, name in wrong] + deleted


async def wrong_events(testbed: FaultTestbed, scene: Scene) -> list[str]:
    """Return the events that were reported twice, and those that were not reported, if they are too many."""
    page = await testbed.client.list_page(Selection(EVENTS, scene.namespace), resource_version="")
    reported = Counter[tuple[str, str]]()
    for event in page["items"]:
        wire: Any = event
        if wire["involvedObject"]["kind"] == MPIJOBS.kind:
            reported[wire["involvedObject"]["name"], wire["reason"]] += wire.get("count", 1)
    wrong = [f"{job}: {reason} reported {count} times" for (job, reason), count in sorted(reported.items()) if count != 1]
    # A job that ends while nobody leads is never seen running.
    unanswered = [f"{job}: {reason} not reported" for job in scene.stream.created for reason in EXPECTED if not reported[job, reason]]
    allowed = scene.unanswered + sum(lost_events(member) for member in scene.team.members)
    return wrong + (unanswered if len(unanswered) > allowed else [])


def lost_leases(member: Member) -> int:
    """Return how often the replica ended because its lease was lost: by a fault, or because the machine had no time for so long."""
    return sum(line.get("msg") == "leadership lost" for line in member.replica.log_lines())


def lost_events(member: Member) -> int:
    """Return how many events the replica reports as not written, as on a machine that has no time."""
    lines = member.replica.log_lines()
    return sum(
        int(line["events"]) if "events" in line else 1 for line in lines if line.get("msg") in {"events lost at the end", "event dropped"}
    )


def gap_seconds(requests: Sequence[Request], left: Member, at: float) -> float:
    """Return how long after `at` the first write for a job came that was not of the leader who `left` then."""
    return min(each.at for each in requests if each.is_work and each.at > at and each.credential != left.credential) - at


def writers(requests: Sequence[Request]) -> list[str]:
    """Return who wrote for jobs, by credential, one after another; two that write at the same time come by turns."""
    return [credential for credential, _ in itertools.groupby(each.credential for each in requests if each.is_work)]
