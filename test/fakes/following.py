"""Reflectors and other background tasks that run for the length of a block, and what came of them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fakes.scripted_server import SELECTION, ScriptedServer
from mpiop.informers.compaction import preparation
from mpiop.informers.pager import Pager
from mpiop.informers.reflector import Output, Reflector, ReflectorSettings
from mpiop.informers.watching import Apply, Bookmark
from mpiop.kube.objects import Item, Object, Unreadable, known_part, labels_of
from mpiop.kube.resources import Selection

CHANCE_SEED = 7


def by_role(obj: Object) -> list[str]:
    """Index under the label `role`."""
    return [labels_of(obj).get("role", "")]


@dataclass(slots=True)
class Measured:
    """Metrics that remember."""

    failures: list[Exception] = field(default_factory=list[Exception])
    lists: list[int] = field(default_factory=list[int])
    watches: int = 0
    events: int = 0

    def listed(self, _selection: Selection, objects: int) -> None:
        self.lists.append(objects)

    def watch_opened(self, _selection: Selection) -> None:
        self.watches += 1

    def event_received(self, _selection: Selection) -> None:
        self.events += 1

    def failed(self, _selection: Selection, error: Exception) -> None:
        self.failures.append(error)


@dataclass(slots=True)
class Followed:
    """A running reflector and what came of it."""

    reflector: Reflector
    measured: Measured
    outputs: list[Output]
    task: asyncio.Task[Any]

    def said(self) -> list[str]:
        """Return the outputs as one line each."""
        return [_line(output) for output in self.outputs]


def _line(output: Output) -> str:
    if isinstance(output, Bookmark):
        return f"bookmark {output.resource_version}"
    if isinstance(output, Apply):
        return f"{'delete' if output.is_deleted else 'put'} {_name(output.object)} {output.resource_version}".rstrip()
    return f"replace {','.join(map(_name, output.items))} {output.resource_version}"


def _name(item: Item) -> str:
    """Return the name of an object, with a question mark if it cannot be decoded."""
    name = known_part(item)["metadata"].get("name", "")
    return f"{name}?" if isinstance(item, Unreadable) else name


@asynccontextmanager
async def background(task: asyncio.Task[Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Cancel `task` at the end of the block; if it died before, raise what it died of."""
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def seeded(settings: ReflectorSettings) -> ReflectorSettings:
    """Return `settings` with chance that is the same in each run."""
    return replace(settings, chance=random.Random(CHANCE_SEED))  # noqa: S311 - chance, not secrets


LISTS = seeded(ReflectorSettings(streams=False))
STREAMS = seeded(ReflectorSettings(streams=True))


@asynccontextmanager
async def following(server: ScriptedServer, settings: ReflectorSettings = LISTS) -> AsyncIterator[Followed]:
    """Run a reflector against `server`."""
    measured = Measured()
    outputs: list[Output] = []
    reflector = Reflector(Pager(server, SELECTION, preparation()), outputs.append, seeded(settings), measured)
    async with background(asyncio.create_task(reflector.run())) as task:
        yield Followed(reflector, measured, outputs, task)


async def follow(server: ScriptedServer, seconds: float, settings: ReflectorSettings = LISTS) -> Followed:
    """Run a reflector against `server` for so many seconds; return what came of it."""
    async with following(server, settings) as followed:
        await asyncio.sleep(seconds)
    return followed
