"""Replicas of the operator as processes outside the cluster: which of them leads, and under which credential it is known."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from e2e.operator_pods import samples_of
from e2e.waiting import until
from embedded.layout import layout_of
from faults.replica import Launch, Replica
from faults.testbed import FaultTestbed, make_namespace, new_token


@dataclass(frozen=True, slots=True)
class Member:
    """One replica.

    Attributes:
        replica: Its processes, one after another.
        credential: Id of its token, as the audit log names it; no other replica has it.
    """

    replica: Replica
    credential: str

    async def metrics(self) -> dict[str, float]:
        """Return every sample by series; {} when it does not answer: it is not there, or frozen."""
        return samples_of((await self.replica.fetch("/metrics")).partition("\r\n\r\n")[2])

    async def is_alive(self) -> bool:
        """Return whether /healthz reports it."""
        return (await self.replica.fetch("/healthz")).startswith("200 ")


@dataclass
class Team:
    """Replicas that stand for one Lease.

    Attributes:
        ground: The control plane.
        namespace: Where the Lease and the jobs are.
        launch: How replicas are started, but for what each has of its own.
        members: The replicas.
    """

    testbed: FaultTestbed
    namespace: str
    launch: Launch
    members: list[Member] = field(default_factory=list[Member])

    async def add(self) -> Member:
        """Start one more replica and return it when it is ready."""
        token = await new_token(self.testbed.client)
        member = Member(Replica(replace(self.launch, token=token), f"operator-{len(self.members)}"), credential_of(token))
        self.members.append(member)
        await member.replica.start()
        await until("a replica that is ready", member.replica.is_ready)
        return member

    async def leaders(self) -> Sequence[Member]:
        """Return who reports that it leads."""
        found = await asyncio.gather(*(member.metrics() for member in self.members))
        return [member for member, samples in zip(self.members, found, strict=True) if samples.get("mpi_operator_is_leader") == 1]

    async def until_led(self, *, not_by: Member | None = None, timeout_seconds: float = 60) -> Member:
        """Return who leads, as soon as one other than `not_by` does."""
        found = list[Member]()

        async def is_led() -> bool:
            found.extend(each for each in await self.leaders() if each is not not_by)
            return bool(found)

        await until("another leader" if not_by else "a leader", is_led, timeout_seconds=timeout_seconds)
        return found[0]

    def exits(self) -> list[int]:
        return [code for member in self.members for code in member.replica.exits]


@contextlib.asynccontextmanager
async def team_of(testbed: FaultTestbed, namespace: str, size: int, *, lease_seconds: int) -> AsyncIterator[Team]:
    """Yield `size` replicas that serve a new namespace; they are ended, the namespace goes with its cluster."""
    await make_namespace(testbed.client, namespace)
    launch = Launch(
        server=testbed.upstream.url,
        authority=layout_of(testbed.cluster).certificates.joinpath("ca.crt").read_text(encoding="ascii"),
        token="",
        namespace=namespace,
        folder=testbed.folder / namespace,
        lease_seconds=lease_seconds,
    )
    team = Team(testbed, namespace, launch)
    try:
        await asyncio.gather(*(team.add() for _ in range(size)))
        yield team
    finally:
        await asyncio.gather(*(member.replica.stop() for member in team.members))


def credential_of(token: str) -> str:
    """Return how the audit log names a token: by the id in it."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"
