"""The process that forks operators: what they print, how they end, and that nothing is left of them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from faults.fork_server import FAULTY, MPIOP, ForkServer, fork_server
from faults.replica import surroundings

pytestmark = pytest.mark.real_time
# An operator that waits: nobody answers at this address.
WAITING = ("--master=http://127.0.0.1:9", "--health-port=0", "--log-format=json")


@pytest.fixture
async def started() -> AsyncIterator[ForkServer]:
    async with fork_server(surroundings()) as made:
        yield made


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - nothing notifies
            await asyncio.sleep(0.02)


def is_waiting(log: Path) -> bool:
    return log.exists() and "waiting for the lease" in log.read_text(encoding="utf-8")


def has_ended(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


async def test_an_operator_ends_with_its_own_exit_code_and_its_output_is_in_its_log(started: ForkServer, tmp_path: Path) -> None:
    for module, flag, code, phrase in ((MPIOP, "--version", 0, "mpiop "), (FAULTY, "--bogus", 2, "there is no flag --bogus")):
        log = tmp_path / f"{code}.log"
        child = await started.spawn(module, [flag], surroundings(), log)
        assert await child.wait() == code
        assert phrase in log.read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
async def test_a_signal_reaches_it(started: ForkServer, tmp_path: Path, number: signal.Signals, code: int) -> None:
    log = tmp_path / "operator.log"
    child = await started.spawn(MPIOP, WAITING, surroundings(), log)
    await until(lambda: is_waiting(log))
    child.send_signal(number)
    assert await child.wait() == code


async def test_those_that_are_left_end_with_it(tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    async with fork_server(surroundings()) as made:
        child = await made.spawn(MPIOP, WAITING, surroundings(), log)
        await until(lambda: is_waiting(log))
    await until(lambda: has_ended(child.pid))


async def test_one_that_nobody_waits_for_any_more_is_killed_and_the_next_order_gets_its_own(started: ForkServer, tmp_path: Path) -> None:
    unwanted = asyncio.create_task(started.spawn(MPIOP, WAITING, surroundings(), tmp_path / "unwanted.log"))
    await asyncio.sleep(0)
    unwanted.cancel()
    child = await started.spawn(FAULTY, ["--bogus"], surroundings(), tmp_path / "wanted.log")
    assert await child.wait() == 2
    await until(lambda: not started.running)
