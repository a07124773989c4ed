"""Virtual time for asyncio: a loop whose clock jumps to the next timer, and that knows when a test has come to a standstill.

Nothing waits for real. When all tasks wait, the clock jumps to the earliest timer; ten minutes of back-off take microseconds and always
happen in the same order. When there is no timer either, nothing can ever happen again: that is a deadlock in the code under test (or a test
that waits for something that never comes), so the loop raises `StandstillError` and names the tasks and where they wait.

Work in threads (`asyncio.to_thread`) is waited for in real time, and the clock is frozen meanwhile. Sockets are not served: a test that
needs one is marked `real_time` and runs on an ordinary loop.
"""

import asyncio
import selectors
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

import pytest

ArgTs = TypeVarTuple("ArgTs")
ResultT = TypeVar("ResultT")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""What the wall clock shows when a test begins."""

HORIZON_SECONDS = 90 * 86400.0
"""How far the clock may go: a test that gets here only turns in a circle of timers."""

THREAD_PATIENCE_SECONDS = 60.0
"""How long (in real time) work in a thread may take before it counts as stuck."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Choose the event loop of a test (a hook of pytest-asyncio, for a conftest to name)."""
    if item.get_closest_marker("real_time"):
        return {"real_time": asyncio.SelectorEventLoop}
    return {"virtual_time": VirtualTimeLoop}


class StandstillError(AssertionError):
    """Nothing can happen any more, but the test still waits."""


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that moves the loop's clock where an ordinary one would wait."""

    loop: "VirtualTimeLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; when nothing is, let virtual time pass instead of real time."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if self.loop.threads_at_work:
            ready = super().select(THREAD_PATIENCE_SECONDS)
            if ready:
                return ready
            raise StandstillError(f"a thread has not answered for {THREAD_PATIENCE_SECONDS} s of real time")
        if timeout is None:
            raise StandstillError(f"nothing is scheduled and nothing can wake a task; waiting:\n{self.loop.waiting_tasks()}")
        self.loop.advance(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting costs no time."""

    def __init__(self) -> None:
        """Start at zero seconds."""
        selector = _JumpingSelector()
        selector.loop = self
        self.threads_at_work = 0
        self._virtual_seconds = 0.0
        super().__init__(selector)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual_seconds

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass without running anything, as when the processor is busy or the machine is suspended."""
        self._virtual_seconds += seconds
        if self._virtual_seconds > HORIZON_SECONDS:
            raise StandstillError(f"only timers for {HORIZON_SECONDS} virtual seconds; waiting:\n{self.waiting_tasks()}")

    def run_in_executor(self, executor: Executor | None, func: Callable[[*ArgTs], ResultT], *args: *ArgTs) -> asyncio.Future[ResultT]:
        """Run `func` in a thread; the virtual clock is frozen until it has returned."""
        future = super().run_in_executor(executor, func, *args)
        self.threads_at_work += 1
        future.add_done_callback(self._thread_ended)
        return future

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        """Wait for the threads at the end of the loop's life; they answer in real time. Python 3.12 and newer give a timeout."""
        self.threads_at_work += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self.threads_at_work -= 1

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self.threads_at_work -= 1

    def waiting_tasks(self) -> str:
        """Return one line for each unfinished task: its name and where it waits."""
        lines = []
        for task in sorted(asyncio.all_tasks(self), key=asyncio.Task.get_name):
            frames = task.get_stack(limit=1)
            place = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "not started"
            lines.append(f"  {task.get_name()} at {place} ({task.get_coro()!r})")
        return "\n".join(lines)


class VirtualClock:
    """The clock (`mpiop.clock.Clock`) that belongs to the running virtual loop: both move together."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Follow `loop`, by default the running one."""
        self._loop = loop or asyncio.get_running_loop()

    def now(self) -> datetime:
        """Return the wall clock's time: `EPOCH` and the loop's time."""
        return EPOCH + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        """Return the loop's time in seconds."""
        return self._loop.time()


class ManualClock:
    """A clock that only moves when a test sets it, for tests on an ordinary loop."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


async def turns_until(condition: Callable[[], bool], limit: int = 10_000) -> int:
    """Let other tasks run, while no virtual time passes, until `condition` holds; return the turns of the loop that it took."""
    for turn in range(limit):
        if condition():
            return turn
        await asyncio.sleep(0)
    raise AssertionError(f"still not so after {limit} turns of the event loop")


async def run_ready_tasks(turns: int = 50) -> None:
    """Let every task that can run do so, while no virtual time passes."""
    for _ in range(turns):
        await asyncio.sleep(0)
