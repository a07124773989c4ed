"""Measures by turns: each round runs the reference and mpiop, in changing order."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from bench import reference, results
from bench.bench_cluster import BenchCluster, bench_cluster
from bench.operator_process import OperatorProcess, Program, ours, start_operator
from bench.results import OURS, REFERENCE, Result, Round, Sample
from bench.scenarios import Scenario
from embedded.progress import Progress, Step

NAMESPACE: Final = "bench"
"""Of the jobs."""
OPERATORS: Final = (REFERENCE, OURS)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured where.

    Attributes:
        cluster: Name of the embedded cluster.
        folder: Where results and logs go.
    """

    scenario: Scenario
    cluster: str
    folder: Path

    def bench_cluster(self, *, has_audit: bool = False) -> AbstractAsyncContextManager[BenchCluster]:
        """Return a new cluster with simulated nodes, which ends with the block."""
        return bench_cluster(self.cluster, self.folder / "logs" / self.scenario.name, nodes=self.scenario.nodes, has_audit=has_audit)


Turn: TypeAlias = Callable[[Step], Awaitable[Sample]]
"""One run; returns its figures, and reports to the step what it waits for."""
Turns: TypeAlias = Callable[[Setting], AbstractAsyncContextManager[Mapping[str, Turn]]]
"""Yields whose turns there are, by name; what the rounds share lives as long as the block."""


def by_operator(turn: Callable[[Setting, str, Step], Awaitable[Sample]]) -> Turns:
    """Return the turns of each operator, which share nothing."""
    return lambda setting: contextlib.nullcontext({who: partial(turn, setting, who) for who in OPERATORS})


async def measure(setting: Setting, turns: Turns, rounds: int, progress: Progress) -> None:
    """Measure a scenario; what is known is kept after each round."""
    scenario, known, conditions = setting.scenario, list[Round](), results.conditions()
    async with turns(setting) as who:
        for number in range(rounds):
            found = dict[str, Sample]()
            # Nobody has the better minutes of a machine that gets faster or slower.
            for name in list(who)[:: 1 if number % 2 == 0 else -1]:
                with progress.step(f"{scenario.name}, round {number + 1} of {rounds}: {name}") as step:
                    found[name] = await who[name](step)
            known.append(found)
            results.write(setting.folder, Result(scenario.name, conditions, tuple(known)))


async def program_of(who: str) -> Program:
    """Return the program of an operator: the reference, or mpiop with its default flags."""
    return await reference.reference() if who == REFERENCE else ours()


@contextlib.asynccontextmanager
async def operator_at(here: BenchCluster, who: str) -> AsyncIterator[OperatorProcess]:
    """Let an operator lead at a new cluster for as long as the block runs."""
    if who == REFERENCE:
        await reference.give_rights(here)
    async with leading(here, await program_of(who)) as operator, operator.alive():
        yield operator


@contextlib.asynccontextmanager
async def leading(here: BenchCluster, program: Program) -> AsyncIterator[OperatorProcess]:
    """Start a program, yield it when it leads and has nothing left to do, and end it with the block."""
    await here.free_lease()
    async with _started(here, program) as operator:
        await operator.until_leading()
        await operator.until_quiet()
        yield operator


@contextlib.asynccontextmanager
async def standing_by(here: BenchCluster, program: Program) -> AsyncIterator[OperatorProcess]:
    """Start a program next to one that leads, yield it when it is ready and has nothing left to do, and end it with the block."""
    async with _started(here, replace(program, name=f"{program.name}-standby")) as operator:
        await operator.until_ready()
        await operator.until_quiet()
        yield operator


@contextlib.asynccontextmanager
async def _started(here: BenchCluster, program: Program) -> AsyncIterator[OperatorProcess]:
    operator = await start_operator(here.access, here.folder, program.name, program)
    try:
        yield operator
    finally:
        await operator.stop()
