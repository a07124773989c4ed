"""`wait`: waits until jobs have ended, and ends with the exit code of the program."""

import time
from collections.abc import Sequence
from typing import Final

import click

from mpiop.client.errors import NotFoundError, UnreachableError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.kubectl.completion import complete_job
from mpiop.kubectl.inputs import seconds_of
from mpiop.kubectl.output import printable
from mpiop.kubectl.session import Session, cluster_options

TIMED_OUT: Final = 124
"""As of `timeout`, which no program is likely to end with."""


@click.command("wait")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=complete_job)
@click.option("--timeout", default="", metavar="DURATION", help="Stop waiting after this time, such as 30m, with exit code 124.")
@cluster_options()
def wait_verb(session: Session, names: Sequence[str], *, timeout: str) -> int:
    """Wait until jobs have ended: kubectl mpi wait JOB... --timeout 2h.

    Ends with the exit code of the program. For several jobs, it is the first one other than 0, in the order of the arguments.
    """
    mpi = session.mpi()
    jobs = [mpi.get(name) for name in dict.fromkeys(names)]
    until = time.monotonic() + seconds_of(timeout) if timeout else None
    codes: dict[str, int] = {}
    while True:
        for job in jobs:
            if job.name not in codes and (code := _exit_code(job)) is not None:
                codes[job.name] = code
        running = [job for job in jobs if job.name not in codes]
        if not running:
            return next(filter(None, (codes[job.name] for job in jobs)), 0)
        if until is not None and time.monotonic() >= until:
            states = ", ".join(f"{job.name} ({printable(job.status.state)})" for job in running)
            click.echo(f"error: after {timeout}, not ended yet: {states}", err=True)
            return TIMED_OUT
        time.sleep(POLL_SECONDS)


def _exit_code(job: Job) -> int | None:
    """Report how a job ended, and return its exit code; None while it runs, or while the API server does not answer."""
    try:
        status = job.refresh()
    except UnreachableError:
        return None
    except NotFoundError:
        click.echo(f"job {job.name} was deleted before it ended", err=True)
        return NotFoundError.exit_code
    if not status.is_finished:
        return None
    text = f"job {job.name} succeeded" if status.has_succeeded else str(status.failure(job.name)).partition("\n")[0]
    click.echo(printable(text))
    return 0 if status.has_succeeded else status.exit_code or 1
