"""`doctor --run`: a small job, from its creation to its end."""

import secrets
from typing import Final

from mpiop.client.api import Api
from mpiop.client.errors import ClientError, JobFailed, JobTimeoutError, NotFoundError
from mpiop.client.job import Job
from mpiop.client.mpi import MPI, delete_or_warn

IMAGE: Final = "mpiop.invalid/mpi-pi:openmpi"
"""Small, and one of those that `make push` pushes."""
SMOKE_SECONDS: Final = 180.0
_RANKS: Final = 2


def smoke_problem(api: Api, image: str) -> str:
    """Run `hostname` on two workers, delete the job, and return what went wrong; "" if nothing did.

    Raises:
        ClientError: The job could not be created.
    """
    job = MPI(api=api).submit(["hostname"], name=f"doctor-{secrets.token_hex(3)}", image=image, ranks=_RANKS)
    try:
        return _problem(job)
    finally:
        delete_or_warn(job)


def _problem(job: Job) -> str:
    try:
        job.wait(SMOKE_SECONDS)
        lines = [line for line in job.logs() if line.strip()]
    except JobTimeoutError:
        return f"job {job.name} has not ended within {SMOKE_SECONDS:g} s: {_why(job)}"
    except JobFailed:
        return _why(job)
    if len(set(lines)) < _RANKS:
        return f"job {job.name} succeeded, but its {_RANKS} ranks printed {len(set(lines))} host names: {', '.join(lines)}"
    return ""


def _why(job: Job) -> str:
    try:
        return job.why()
    except NotFoundError:
        return f"job {job.name} was deleted before it ended"
    except ClientError as error:
        return str(error)
