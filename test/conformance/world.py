"""All cases and scenarios, run once for all tests."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.life import Life, Lived
from conformance.place import Place, place
from conformance.recordings import recorded_cases


@dataclass(frozen=True, slots=True)
class World:
    """What came of everything.

    Attributes:
        lived: By name of the case.
    """

    lived: Mapping[str, Lived]


async def run(folder: Path) -> World:
    """Run everything, with logs in `folder`."""
    async with place(folder) as here:
        async with here.operator("ours"):
            lived = await _live(here)
        return World(lived)


async def _live(here: Place) -> dict[str, Lived]:
    turn = asyncio.Lock()
    cases = recorded_cases()
    outcomes = await asyncio.gather(*(Life(case, here.client, here.follower).live(turn) for case in cases))
    return {case.name: lived for case, lived in zip(cases, outcomes, strict=True)}
