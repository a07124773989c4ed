"""The same for programs that run under asyncio: each call works in a thread."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mpiop.client.job import Job
from mpiop.client.mpi import MPI
from mpiop.client.status import JobStatus

_Value = TypeVar("_Value")


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
        """Wait until it has succeeded (see `Job.wait`); `report` is called in a thread."""
        return await asyncio.to_thread(self.job.wait, timeout, report=report)

    async def why(self) -> str:
        """Return why it is as it is (see `Job.why`)."""
        return await asyncio.to_thread(self.job.why)

    async def logs(self, *, follow: bool = False) -> AsyncIterator[str]:
        """Yield the lines of the launcher's log (see `Job.logs`)."""
        lines = self.job.logs(follow=follow)
        while (line := await asyncio.to_thread(_next, lines)) is not None:
            yield line

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
            await submitted.delete()

    async def run(self, function: Callable[..., _Value], *args: Any, **fields: Any) -> list[_Value]:
        """Call `function(*args)` on every rank, and return the results by rank (see `MPI.run`)."""
        return await asyncio.to_thread(self._mpi.run, function, *args, **fields)


def _next(lines: Iterator[str]) -> str | None:
    return next(lines, None)
