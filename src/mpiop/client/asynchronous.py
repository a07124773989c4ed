"""The same for programs that run under asyncio: each request works in a thread."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from mpiop.client.errors import JobTimeoutError
from mpiop.client.functions import FunctionCall
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import MPI, delete_or_warn
from mpiop.client.status import JobStatus

_Value = TypeVar("_Value")
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
        """Wait until it has succeeded (see `Job.wait`). If that is cancelled, the job goes on."""
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        async for line in self._watch(report):
            if until is not None and loop.time() >= until and not self.status.is_finished:
                raise JobTimeoutError(f"job {self.name} has not ended within {timeout:g} s: {line}")
        if not self.status.has_succeeded:
            raise self.status.failure(self.name)
        return self.status

    async def wait_for_output(self, report: Callable[[str], None] | None = None) -> None:
        """Wait until its launcher has begun to run, or it has ended (see `Job.wait_for_output`)."""
        async for _ in self._watch(report):
            if self.job.has_output:
                return

    async def _watch(self, report: Callable[[str], None] | None) -> AsyncGenerator[str]:
        """Yield where it stands until it has ended. A thread is needed for each request only, not between them."""
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
        """Return why it is as it is (see `Job.why`)."""
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


class AsyncMPI:
    """MPI jobs in a namespace, under asyncio (see `MPI`)."""

    def __init__(self, **options: Any) -> None:
        """Take the arguments of `MPI`."""
        self._mpi = MPI(**options)

    async def submit(self, command: Sequence[str], **fields: Any) -> AsyncJob:
        """Create a job (see `MPI.submit`)."""
        return AsyncJob(await asyncio.to_thread(self._mpi.submit, command, **fields))

    async def get(self, name: str) -> AsyncJob:
        """Return a job (see `MPI.get`)."""
        return AsyncJob(await asyncio.to_thread(self._mpi.get, name))

    async def jobs(self, *, everywhere: bool = False) -> Sequence[AsyncJob]:
        """Return the jobs (see `MPI.jobs`)."""
        return [AsyncJob(job) for job in await asyncio.to_thread(self._mpi.jobs, everywhere=everywhere)]

    @asynccontextmanager
    async def job(self, command: Sequence[str], **fields: Any) -> AsyncGenerator[AsyncJob]:
        """Submit a job that is deleted at the end of the `async with` block."""
        submitted = await self.submit(command, **fields)
        try:
            yield submitted
        finally:
            await asyncio.to_thread(delete_or_warn, submitted.job)

    async def run(self, function: Callable[..., _Value], *args: Any, **fields: Any) -> list[_Value]:
        """Call `function(*args)` on every rank, and return the results by rank (see `MPI.run`). If it is cancelled, the job is deleted."""
        call = FunctionCall(function, args)
        report: Callable[[str], None] | None = fields.pop("report", None)
        async with self.job(call.command, files=call.files, **{"is_tagged": False, **fields}) as job:
            await job.wait_for_output(report)
            async for line in job.logs(follow=True):
                call.read(line)
            return await asyncio.to_thread(call.results, job.job)


class _OverError(Exception):
    """Nobody reads the log any more."""


def _items(lines: Iterator[str]) -> Iterator[_Item]:
    """Yield `lines`, and at their end None, or what went wrong."""
    try:
        yield from lines
    except Exception as error:  # noqa: BLE001 - whoever reads the log raises it
        yield error
    else:
        yield None
