"""The operator with a way to be hurt from within (`python -m faults.faulty_operator`, arguments as `mpiop`).

SIGUSR1 blocks its event loop for some seconds more than its lease lasts (LEASE_SECONDS), as a computation without end would. SIGUSR2 lets
the task whose name begins with FAULTS_VICTIM die of an exception.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import uvloop

from mpiop.cli import main

VICTIM = "FAULTS_VICTIM"
MORE_SECONDS = 4.0
"""The watchdog reports a block after three."""
_doomed = set[asyncio.Task[Any]]()


class InjectedError(Exception):
    """What the victim dies of."""


async def _mortal(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await coroutine
    except asyncio.CancelledError:
        if asyncio.current_task() in _doomed:
            raise InjectedError from None
        raise


def _new_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> asyncio.Task[Any]:
    return asyncio.Task(_mortal(coroutine), loop=loop, **how)


_make_loop = uvloop.new_event_loop
_loops = list[asyncio.AbstractEventLoop]()


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = _make_loop()
    loop.set_task_factory(_new_task)
    _loops.append(loop)
    return loop


def _block(_number: int, _frame: FrameType | None) -> None:
    time.sleep(float(os.environ["LEASE_SECONDS"]) + MORE_SECONDS)


def _doom(_number: int, _frame: FrameType | None) -> None:
    _loops[-1].call_soon_threadsafe(_kill)  # which wakes the loop


def _kill() -> None:
    for task in asyncio.all_tasks(_loops[-1]):
        if task.get_name().startswith(os.environ[VICTIM]):
            _doomed.add(task)
            task.cancel()


def faulty_main() -> int:
    """Run the operator; return its exit code."""
    signal.signal(signal.SIGUSR1, _block)
    signal.signal(signal.SIGUSR2, _doom)
    uvloop.new_event_loop = _new_loop  # type: ignore[assignment]  # the operator makes one
    return main()


if __name__ == "__main__":
    sys.exit(faulty_main())
