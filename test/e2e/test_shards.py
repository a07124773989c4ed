"""Two operators side by side, each with a namespace and a Lease of its own: neither touches what is the other's, nor misses it.

They are processes that use an embedded control plane with simulated nodes. Their rights are those of the manifests, bound in the namespaces
of jobs and not in the whole cluster. What each asked for is read from the audit log of the API server, which knows it by its token.
"""

import asyncio
import contextlib
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import pytest_asyncio

from e2e.audit import Request, entries, requests_of_operators, resource_of
from e2e.clusters import ROOT
from e2e.scene import MOST_SHOWN, miscounts
from e2e.stream import JobStream
from e2e.team import Member, Team, team_of
from e2e.waiting import until
from embedded.layout import layout_of
from faults.testbed import NAMESPACE, FaultTestbed, make_namespace, prepared
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import CONFIG_MAPS, LEASES, Resource

ON_SHARED_LOOP = pytest.mark.asyncio(loop_scope="module")
LEASE_SECONDS = 15
JOBS = 10
JOBS_A_SECOND = 5.0
DONE_SECONDS = 180
LOG_LINES = 8
RBAC = "rbac.authorization.k8s.io"
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def testbed() -> AsyncIterator[FaultTestbed]:
    """A control plane of this module's own, with simulated nodes, that logs every request; nowhere has the operator rights as yet."""
    folder, options = ROOT / "build" / "shards", ("--kwok", "2", "--audit")
    async with prepared("shards", folder, lease_seconds=LEASE_SECONDS, options=options) as testbed:
        everywhere = Key("", NAMESPACE)
        binding = await testbed.client.get(CLUSTER_ROLE_BINDINGS, everywhere)
        await testbed.client.delete(CLUSTER_ROLE_BINDINGS, everywhere, uid=uid_of(binding))
        yield testbed


@dataclass(frozen=True, slots=True)
class Touch:
    """Something that an operator asked for, whatever the answer; a watch counts from its begin.

    Attributes:
        namespace: Of the object; "" is all namespaces, or an object that is in none.
        what: Resource, or resource/subresource; "" is not a resource at all, like `/version`.
    """

    verb: str
    namespace: str
    what: str
    name: str

    def __str__(self) -> str:
        """Render as `list pods in *`."""
        return f"{self.verb} {'/'.join(filter(None, (self.what, self.name)))} in {self.namespace or '*'}"


def touches(cluster: str, credential: str) -> Counter[Touch]:
    """Return what the bearer of a token asked for in the whole cluster, and how often."""
    found = Counter[Touch]()
    for entry in entries(cluster, credential):
        if [credential] not in entry["user"].get("extra", {}).values():
            continue  # the token was only being issued
        target = entry.get("objectRef", {})
        found[Touch(entry["verb"], target.get("namespace", ""), resource_of(target), target.get("name", ""))] += 1
    return found


@dataclass
class Shard:
    """One operator, its namespace and its Lease.

    Attributes:
        team: The operator, as a team of one.
        lease: Where its Lease is.
        stream: Its jobs.
    """

    team: Team
    lease: Key
    stream: JobStream

    @property
    def namespace(self) -> str:
        return self.team.namespace

    @property
    def member(self) -> Member:
        return self.team.members[0]

    @property
    def exits(self) -> Sequence[int]:
        """Return the exit codes of its processes that have ended by themselves."""
        return self.team.exits()

    async def start(self) -> None:
        """Let its operator have its rights, start it, and return when it leads."""
        await bind(self.team.testbed, self.namespace)
        with self.explained("should be ready and lead"):
            await self.team.add()
            await self.team.until_led()

    async def create(self) -> None:
        """Create `JOBS` more jobs."""
        self.stream.most = len(self.stream.created) + JOBS
        with self.explained(f"{self.stream.most} jobs should have been created"):
            async with asyncio.timeout(DONE_SECONDS):
                await self.stream.run()

    async def until_succeeded(self) -> None:
        """Return when all of its jobs have Succeeded."""
        with self.explained("its jobs should have Succeeded"):
            await self.stream.until_succeeded(timeout_seconds=DONE_SECONDS)

    async def work(self) -> None:
        """See `JOBS` more jobs to their ends."""
        await self.create()
        await self.until_succeeded()

    async def lease_spec(self) -> dict[str, Any]:
        """Return what its Lease reports."""
        lease = await self.team.testbed.client.get(LEASES, self.lease)
        return lease.get("spec", {})

    def requests(self) -> list[Request]:
        """Return what operators asked for in its namespace; who asked is in each."""
        return requests_of_operators(self.team.testbed.cluster, self.namespace)

    def first_create(self, after: float) -> float:
        """Return when it first made an object of a job after that time."""
        made = [each.at for each in self.requests() if each.verb == "create" and each.is_work and each.at > after]
        assert made, f"{self.namespace}: nothing was created after the kill; {self.situation()}"
        return min(made)

    def complaints(self) -> list[str]:
        """Return what its operator did outside of its namespace and its Lease, and what it did not do once for each of its jobs."""
        asked = touches(self.team.testbed.cluster, self.member.credential)
        wrong = [
            f"asked outside of its namespace and its Lease: {touch} ({count} times)"
            for touch, count in asked.items()
            if self._strays(touch)
        ]
        wrong += [
            f"the audit log has no request of it in {place}: it is not known by {self.member.credential}"
            for place in (self.namespace, self.lease.namespace)
            if all(touch.namespace != place for touch in asked)
        ]
        strangers = {each.credential for each in self.requests() if each.is_work} - {self.member.credential}
        wrong += [f"{stranger}, who is not its operator, wrote in its namespace" for stranger in sorted(strangers)]
        return [f"{self.namespace}: {each}" for each in (*wrong, *miscounts(self.requests(), self.stream.created))]

    def situation(self) -> str:
        """Return what there is to report about it when something is wrong."""
        stream, log = self.stream, self.member.replica.log if self.team.members else None
        left = [name for name in stream.created if name not in stream.succeeded]
        said = (
            []
            if log is None
            else [f"{line.get('level')}: {line.get('msg', line)}" for line in self.member.replica.log_lines()[-LOG_LINES:]]
        )
        jobs = f"{len(stream.created)} jobs, not Succeeded: {left or 'none'}, Failed: {sorted(stream.failed) or 'none'}"
        return f"{jobs}; exits of its operator: {list(self.exits)}; the end of {log}: {' | '.join(said)}"

    @contextlib.contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Report which shard it was, and how it is, when the block finds that something is not as it should be."""
        try:
            yield
        except (TimeoutError, AssertionError) as error:
            raise AssertionError(f"shard {self.namespace}: {what}, but: {str(error) or 'not in time'}; {self.situation()}") from error

    def _strays(self, touch: Touch) -> bool:
        if touch.namespace == self.lease.namespace:
            return touch.what != "leases" or touch.name not in {"", self.lease.name}
        # What is not a resource shows no object of anybody.
        return touch.namespace != self.namespace and bool(touch.what)


async def bind(testbed: FaultTestbed, namespace: str) -> None:
    """Let the operator have the rights of the manifests in that namespace."""
    made: Any = {
        "apiVersion": ROLE_BINDINGS.api_version,
        "kind": ROLE_BINDINGS.kind,
        "metadata": {"namespace": namespace, "name": NAMESPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAMESPACE},
        "subjects": [{"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}],
    }
    await testbed.client.create(ROLE_BINDINGS, cast("Object", made))


@contextlib.asynccontextmanager
async def shards_of(testbed: FaultTestbed, name: str) -> AsyncIterator[tuple[Shard, Shard]]:
    """Yield two shards that lead; their namespaces are `<name>-a` and `<name>-b`, both Leases in `<name>-leases`.

    At the end their operators end in order, and all that they asked for is in the audit log.
    """
    leases = f"{name}-leases"
    await make_namespace(testbed.client, leases)
    async with contextlib.AsyncExitStack() as stack:
        shards = list[Shard]()
        for letter in "ab":
            team = await stack.enter_async_context(team_of(testbed, f"{name}-{letter}", 0, lease_seconds=LEASE_SECONDS))
            lease = Key(leases, f"mpi-operator-{letter}")
            # Of two flags of one name the last one counts.
            team.launch = replace(team.launch, flags=(f"--lock-namespace={lease.namespace}", f"--lease-name={lease.name}"))
            shards.append(Shard(team, lease, JobStream(testbed.client, team.namespace, JOBS_A_SECOND)))
        for shard in shards:
            await shard.start()
        first, second = shards
        yield first, second
    await until_logged(testbed, leases)


async def until_logged(testbed: FaultTestbed, namespace: str) -> None:
    """Return when all requests that were answered until now are in the audit log, which is written in their order."""
    mark = f"mark-{uuid.uuid4()}"
    with contextlib.suppress(StatusError):  # there is none of that name
        await testbed.client.get(CONFIG_MAPS, Key(namespace, mark))

    async def is_logged() -> bool:
        return mark.encode() in layout_of(testbed.cluster).log("audit").read_bytes()

    await until("the last request in the audit log", is_logged)


@ON_SHARED_LOOP
async def test_two_shards_lead_at_the_same_time_and_each_touches_its_own_namespace_alone(testbed: FaultTestbed) -> None:
    async with shards_of(testbed, "shard") as shards:
        await asyncio.gather(*(shard.work() for shard in shards))
        leading = await asyncio.gather(*(shard.team.leaders() for shard in shards))
        specs = [await shard.lease_spec() for shard in shards]
    for shard, leaders, spec in zip(shards, leading, specs, strict=True):
        assert list(leaders) == [shard.member], f"{shard.namespace} does not lead: {shard.situation()}"
        assert spec["holderIdentity"], f"nobody holds {shard.lease} while its operator says that it leads"
        assert len(shard.stream.succeeded) == JOBS
    assert specs[0]["holderIdentity"] != specs[1]["holderIdentity"], "one operator holds both Leases"
    wrong = [complaint for shard in shards for complaint in shard.complaints()]
    assert not wrong, f"{len(wrong)} complaints: {'; '.join(wrong[:MOST_SHOWN])}"


@ON_SHARED_LOOP
async def test_the_death_of_one_operator_does_not_disturb_the_other_shard(
    testbed: FaultTestbed, capsys: pytest.CaptureFixture[str]
) -> None:
    async with shards_of(testbed, "killed") as shards:
        dead, other = shards
        await asyncio.gather(*(shard.work() for shard in shards))
        lease_before, at = await other.lease_spec(), time.time()
        dead.member.replica.signal(signal.SIGKILL)
        await asyncio.gather(*(shard.create() for shard in shards))
        await asyncio.gather(*(shard.until_succeeded() for shard in shards))
        lease_after, exits = await other.lease_spec(), list(other.exits)
    gaps = [shard.first_create(at) - at for shard in shards]
    with capsys.disabled():
        print(f"\nSIGKILL to the next object made: {gaps[0]:.2f} s in its own shard, {gaps[1]:.2f} s in the other")  # noqa: T201 - for people
    assert list(dead.exits) == [-signal.SIGKILL], f"{dead.namespace} ended more than once: {dead.situation()}"
    assert exits == [], (
        f"{other.namespace} ended, though nobody killed it (1: its lease was lost, as on a busy machine): {other.situation()}"
    )
    for field in ("holderIdentity", "leaseTransitions"):
        assert lease_after[field] == lease_before[field], f"{field} of {other.lease} changed: {lease_before} became {lease_after}"
    assert gaps[1] < gaps[0], f"{other.namespace} made nothing while nobody led in {dead.namespace}: {other.situation()}"
    wrong = [complaint for shard in shards for complaint in shard.complaints()]
    assert not wrong, f"{len(wrong)} complaints: {'; '.join(wrong[:MOST_SHOWN])}"
