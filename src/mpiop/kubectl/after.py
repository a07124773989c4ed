"""`--after JOB`: creates a job only after others have succeeded, as `sbatch --dependency=afterok` does.

Nothing in the cluster waits for another job, so this command does: until then there is nothing that it could leave behind.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from mpiop.client.errors import ClientError, NotFoundError, UnreachableError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import MPI
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.output import counted, progress_line

_MOST_SHOWN: Final = 5


def after_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the option `--after`."""
    text = "Create a job only after this one has succeeded. Can be repeated."
    return click.option("--after", metavar="JOB", multiple=True, shell_complete=complete_job, help=text)(verb)


def wait_for(mpi: MPI, names: Sequence[str]) -> None:
    """Wait until each of these jobs has succeeded, also while the API server does not answer.

    Raises:
        NotFoundError: There is no such job now.
        ClientError: One failed, was deleted, or was replaced by another job of its name.
    """
    if not names:
        return
    running = [mpi.get(name) for name in dict.fromkeys(names)]
    with progress_line("") as show:
        reported = ""
        while True:
            running, line = _look(running)
            if not running:
                return
            if line != reported:
                show(line)
            reported = line
            time.sleep(POLL_SECONDS)


def _look(jobs: Sequence[Job]) -> tuple[list[Job], str]:
    """Return the jobs that have not succeeded yet, and a line about them."""
    running = list(jobs)
    try:
        for job in jobs:
            if _has_succeeded(job):
                running.remove(job)
    except UnreachableError as error:
        return running, f"waits for the API server: {error}"
    shown = ", ".join(f"{job.name} ({job.status.state})" for job in running[:_MOST_SHOWN])
    others = f" and {counted(len(running) - _MOST_SHOWN, 'other')}" if len(running) > _MOST_SHOWN else ""
    return running, f"waits for {shown}{others}"


def _has_succeeded(job: Job) -> bool:
    try:
        status = job.refresh()
    except NotFoundError as error:
        raise ClientError(f"nothing was created, because job {job.name} was deleted or replaced before it had succeeded") from error
    if not status.is_finished:
        return False
    if status.has_succeeded:
        return True
    first, *_ = str(status.failure(job.name)).splitlines()
    raise ClientError(f"nothing was created, because {first}")
