"""All cases and scenarios, run once for all tests."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.control_plane import CLUSTER, ControlPlane, control_plane
from conformance.gangs import GROUPS, Gangs, define_pod_groups, live_as_gangs
from conformance.life import Life, Lived, namespace_of
from conformance.recordings import recorded_cases
from conformance.stale_writes import StaleWrites, hold
from e2e.audit import Request, Rights, requests_of_operators, rights_asked_for


@dataclass(frozen=True, slots=True)
class World:
    """What came of everything.

    Attributes:
        lived: By name of the case.
        writes: What the operator wrote in the namespace of each case, in order; Events are left out.
        held: Result of the client that keeps old versions.
        gangs: By name of the scheduler.
        rights: What the operator asked for in all of it.
    """

    lived: Mapping[str, Lived]
    writes: Mapping[str, Sequence[Request]]
    held: StaleWrites
    gangs: Mapping[str, Gangs]
    rights: Rights


async def run(folder: Path) -> World:
    """Run everything, with logs in `folder`."""
    async with control_plane(folder) as here:
        async with here.operator("ours"):
            lived, held = await _live(here)
        await define_pod_groups(here)
        gangs = {scheduler: await live_as_gangs(here, scheduler) for scheduler in GROUPS}
        await here.stop_api_server()
        writes = {name: [each for each in requests_of_operators(CLUSTER, namespace_of(name)) if each.is_work] for name in lived}
        return World(lived, writes, held, gangs, rights_asked_for(CLUSTER))


async def _live(here: ControlPlane) -> tuple[dict[str, Lived], StaleWrites]:
    turn, cases = asyncio.Lock(), recorded_cases()
    holding = asyncio.create_task(hold(here, turn))
    outcomes = await asyncio.gather(*(Life(case, here.client, here.follower).live(turn) for case in cases))
    return {case.name: lived for case, lived in zip(cases, outcomes, strict=True)}, await holding
