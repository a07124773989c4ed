"""A Python client for MPI jobs: from a program, or a function, to ranks in one line."""

from importlib import import_module
from typing import TYPE_CHECKING

from mpiop.api.status_types import Attempt, Condition
from mpiop.client.allocations import Allocation
from mpiop.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    JobFailed,
    JobTimeoutError,
    NotFoundError,
    UnreachableError,
)
from mpiop.client.files import Files, read_files
from mpiop.client.job import Job
from mpiop.client.live import Live
from mpiop.client.mpi import MPI
from mpiop.client.program_steps import ProgramStep
from mpiop.client.spec import JobSpec
from mpiop.client.status import JobStatus

if TYPE_CHECKING:
    from mpiop.client.asynchronous import AsyncAllocation, AsyncJob, AsyncMPI, AsyncProgramStep

__all__ = [
    "MPI",
    "Allocation",
    "AsyncAllocation",
    "AsyncJob",
    "AsyncMPI",
    "AsyncProgramStep",
    "Attempt",
    "ClientError",
    "Condition",
    "ConflictError",
    "Files",
    "ForbiddenError",
    "InvalidError",
    "Job",
    "JobFailed",
    "JobSpec",
    "JobStatus",
    "JobTimeoutError",
    "Live",
    "NotFoundError",
    "ProgramStep",
    "UnreachableError",
    "read_files",
]


def __getattr__(name: str) -> object:
    """Import asyncio only for those who use it, because `kubectl mpi` starts faster without it."""
    if name in {"AsyncAllocation", "AsyncJob", "AsyncMPI", "AsyncProgramStep"}:
        return getattr(import_module("mpiop.client.asynchronous"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
