"""The same for programs that run under asyncio: each request works in a thread."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack

from mpiop.client.allocation import wait_until_running
from mpiop.client.allocations import Allocation, in_order, share
from mpiop.client.errors import JobTimeoutError
from mpiop.client.fields import JobFields, Options
from mpiop.client.files import Files
from mpiop.client.functions import FunctionCall
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import MPI, delete_or_warn
from mpiop.client.program_steps import ProgramStep, StepOptions
from mpiop.client.status import JobStatus

_Value = TypeVar("_Value")
_Argument = TypeVar("_Argument")
_MOST_WAITING = 1000
"""Lines of a log that wait to be taken."""
_Item: TypeAlias = str | Exception | None
"""A line of a log, or at its end None or what went wrong."""


class AsyncJob:
    """A job under asyncio; `job` is the same for threads."""

    def __init__(self, job: Job) -> None:
        """Wrap a job."""
        self.job = job

    @property
    def name(self) -> str:
        """Return its name."""
        return self.job.name

    @property
    def status(self) -> JobStatus:
        """Return how it was at the last `refresh`."""
        return self.job.status

    async def refresh(self) -> JobStatus:
        """Read it again and return how it is (see `Job.refresh`)."""
        return await asyncio.to_thread(self.job.refresh)

    async def wait(self, timeout: float | None = None, *, report: Callable[[str], None] | None = None) -> JobStatus:  # noqa: ASYNC109 - as in Job
        """Wait until the job has succeeded (see `Job.wait`). Cancelling the wait leaves the job running."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        async for line in self._watch(report):
            if until is not None and loop.time() >= until and not self.status.is_finished:
                raise JobTimeoutError(f"job {self.name} has not ended within {timeout:g} s: {line}")
        if not self.status.has_succeeded:
            raise await asyncio.to_thread(self.job.failure)
        return self.status

    async def wait_for_output(self, report: Callable[[str], None] | None = None) -> None:
        """Wait until its launcher has begun to run, or it has ended (see `Job.wait_for_output`)."""
        async for _ in self._watch(report):
            if self.job.has_output:
                return

    async def _watch(self, report: Callable[[str], None] | None) -> AsyncGenerator[str]:
        """Yield the progress until the job has ended. A thread is needed only during a request, not between two."""
        reported = None
        while True:
            line, is_last = await asyncio.to_thread(self.job.look)
            if report is not None and line != reported:
                report(line)
            reported = line
            yield line
            if is_last:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def why(self) -> str:
        """Explain the job's state and suggest a fix (see `Job.why`)."""
        return await asyncio.to_thread(self.job.why)

    async def logs(self, *, follow: bool = False) -> AsyncGenerator[str]:
        """Yield the lines of the launcher's log (see `Job.logs`); a thread of its own reads them."""
        loop, items, is_over = asyncio.get_running_loop(), asyncio.Queue[_Item](), threading.Event()
        room = threading.Semaphore(_MOST_WAITING)

        def pause(seconds: float) -> None:
            if is_over.wait(seconds):
                raise _OverError

        job = self.job.pausing_by(pause)

        def read() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                for item in _items(job.logs(follow=follow)):
                    while not room.acquire(timeout=POLL_SECONDS) and not is_over.is_set():
                        pass
                    if is_over.is_set():
                        return
                    loop.call_soon_threadsafe(items.put_nowait, item)

        threading.Thread(target=read, name=f"log of {self.name}", daemon=True).start()
        try:
            while isinstance(item := await items.get(), str):
                yield item
                room.release()
        finally:
            is_over.set()
        self.job.raw = job.raw
        if item is not None:
            raise item

    async def delete(self) -> None:
        """Delete it with all that belongs to it."""
        await asyncio.to_thread(self.job.delete)


class _Step(Protocol):
    def end(self) -> None:
        """End the ranks."""
        ...


_StepT = TypeVar("_StepT", bound=_Step)


async def _done(task: asyncio.Task[Any]) -> None:
    """Return when a task is done, also if this is cancelled meanwhile: what the task makes is still to be ended or deleted."""
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})


async def _started(start: Callable[[], _StepT]) -> _StepT:
    """Return the step that `start` starts. If this is cancelled meanwhile, the step is ended."""
    starting = asyncio.create_task(asyncio.to_thread(start))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _done(starting)
        if starting.exception() is None:
            starting.result().end()
        raise


async def _ended(step: _Step, wait: Callable[[], _Value]) -> _Value:
    """Return what `wait` returns when the step ends. It has a thread of its own, because those of asyncio are few and others need them."""
    executor = ThreadPoolExecutor(1, "step")
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, wait)
    except asyncio.CancelledError:
        step.end()
        raise
    finally:
        executor.shutdown(wait=False)


class AsyncProgramStep:
    """A program that runs on ranks of an allocation, under asyncio; `step` is the same for threads."""

    def __init__(self, step: ProgramStep) -> None:
        """Wrap a step."""
        self.step = step

    async def wait(self) -> str:
        """Wait until the program ends, and return its last lines (see `ProgramStep.wait`). If it is cancelled, the ranks are ended."""
        return await _ended(self.step, self.step.wait)

    def end(self) -> None:
        """End the ranks (see `ProgramStep.end`)."""
        self.step.end()


class AsyncAllocation:
    """An allocation under asyncio; `allocation` is the same for threads."""

    def __init__(self, allocation: Allocation) -> None:
        """Wrap an allocation."""
        self.allocation = allocation

    async def run(
        self, function: Callable[..., _Value], *args: Any, kwargs: Mapping[str, Any] | None = None, ranks: int | None = None
    ) -> list[_Value]:
        """Call a function on every rank (see `Allocation.run`). If it is cancelled, the ranks are ended."""
        step = await _started(partial(self.allocation.start, FunctionCall(function, args, kwargs), ranks))
        return await _ended(step, step.results)

    async def submit(self, command: Sequence[str], **options: Unpack[StepOptions]) -> AsyncProgramStep:
        """Run a program as a step, and return at once (see `Allocation.submit`). If it is cancelled, the ranks are ended."""
        return AsyncProgramStep(await _started(partial(self.allocation.submit, command, **options)))

    async def map(self, function: Callable[[_Argument], _Value], items: Iterable[_Argument], *, ranks: int | None = None) -> list[_Value]:
        """Call a function on each item (see `Allocation.map`)."""
        values = list(items)
        return in_order(await self.run(share(function, values), ranks=ranks)) if values else []


class AsyncMPI:
    """MPI jobs in a namespace, under asyncio (see `MPI`)."""

    def __init__(self, **options: Unpack[Options]) -> None:
        """Take the arguments of `MPI`."""
        self._mpi = MPI(**options)

    async def submit(
        self, command: str | Sequence[str], *, name: str = "", files: Files | None = None, **fields: Unpack[JobFields]
    ) -> AsyncJob:
        """Create a job (see `MPI.submit`)."""
        return AsyncJob(await asyncio.to_thread(self._mpi.submit, command, name=name, files=files, **fields))

    async def get(self, name: str) -> AsyncJob:
        """Return a job (see `MPI.get`)."""
        return AsyncJob(await asyncio.to_thread(self._mpi.get, name))

    async def jobs(self, *, everywhere: bool = False) -> Sequence[AsyncJob]:
        """Return the jobs (see `MPI.jobs`)."""
        return [AsyncJob(job) for job in await asyncio.to_thread(self._mpi.jobs, everywhere=everywhere)]

    @asynccontextmanager
    async def job(
        self, command: str | Sequence[str], *, name: str = "", files: Files | None = None, **fields: Unpack[JobFields]
    ) -> AsyncGenerator[AsyncJob]:
        """Submit a job that is deleted at the end of the `async with` block."""
        async with _deleted(partial(self._mpi.submit, command, name=name, files=files, **fields)) as submitted:
            yield submitted

    @asynccontextmanager
    async def allocation(
        self, *, name: str = "", idle: int = 0, report: Callable[[str], None] | None = None, **fields: Unpack[JobFields]
    ) -> AsyncGenerator[AsyncAllocation]:
        """Allocate workers until the end of the `async with` block (see `MPI.allocation`)."""
        async with _deleted(partial(self._mpi.allocate, name=name, idle=idle, **fields)) as job:
            await asyncio.to_thread(wait_until_running, job.job, report)
            yield AsyncAllocation(Allocation(job.job, self._mpi.kubectl_options))

    async def run(
        self,
        function: Callable[..., _Value],
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        name: str = "",
        report: Callable[[str], None] | None = None,
        **fields: Unpack[JobFields],
    ) -> list[_Value]:
        """Call `function(*args, **kwargs)` on every rank (see `MPI.run`). If it is cancelled, the job is deleted."""
        call = FunctionCall(function, args, kwargs)
        async with _deleted(partial(self._mpi.submit_call, call, name, fields)) as job:
            await job.wait_for_output(report)
            async for line in job.logs(follow=True):
                call.read(line)
            return await asyncio.to_thread(call.results, job.job)


@asynccontextmanager
async def _deleted(create: Callable[[], Job]) -> AsyncGenerator[AsyncJob]:
    """Create a job that is deleted at the end of the `async with` block, or if this is cancelled while it is created."""
    creation = asyncio.create_task(asyncio.to_thread(create))
    try:
        yield AsyncJob(await asyncio.shield(creation))
    finally:
        await _done(creation)
        if not creation.cancelled() and creation.exception() is None:
            await asyncio.to_thread(delete_or_warn, creation.result())


class _OverError(Exception):
    """Nobody reads the log any more."""


def _items(lines: Iterator[str]) -> Iterator[_Item]:
    """Yield `lines`, and at their end None, or what went wrong."""
    try:
        yield from lines
    except Exception as error:  # noqa: BLE001 - the reader of the log raises it
        yield error
    else:
        yield None
