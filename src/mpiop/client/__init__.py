"""A Python client for MPI jobs: from a program, or a function, to ranks in one line."""

from mpiop.api.status_types import Attempt, Condition
from mpiop.client.allocations import Allocation
from mpiop.client.asynchronous import AsyncAllocation, AsyncJob, AsyncMPI
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
from mpiop.client.spec import JobSpec
from mpiop.client.status import JobStatus

__all__ = [
    "MPI",
    "Allocation",
    "AsyncAllocation",
    "AsyncJob",
    "AsyncMPI",
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
    "UnreachableError",
    "read_files",
]
