"""`run --array`: runs the same program many times, a few jobs at a time."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from mpiop.client.errors import ClientError, InvalidError, NotFoundError, UnreachableError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.manifest import generated_name
from mpiop.client.mpi import MPI
from mpiop.kubectl.output import printable

INDEX: Final = "MPIOP_ARRAY_INDEX"
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?")
_MOST: Final = 10_000


def indexes(text: str) -> Sequence[int]:
    """Return the indexes of a list such as `1-20`, `1,3,7-9` or `0-12:4`, which is every fourth.

    Raises:
        InvalidError: The list is invalid, or far too long.
    """
    found: dict[int, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) - int(match[1]) not in range(_MOST):
            raise InvalidError(f"--array {text}: write indexes such as 1-20, 1,3,7-9 or 0-12:4, at most {_MOST:,}")
        found |= dict.fromkeys(range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1)))
    return list(found)


def starter(mpi: MPI, fields: Mapping[str, Any]) -> Callable[[int], Job]:
    """Return the function that submits the job of an index, which its ranks find in `MPIOP_ARRAY_INDEX`.

    `fields` are those of `JobSpec`, and `name`.
    """
    settings = dict(fields)
    name = settings.pop("name") or generated_name(fields["command"])

    def start(number: int) -> Job:
        settings["env"] = {**fields.get("env", {}), INDEX: str(number)}
        return mpi.submit(**settings, name=f"{name}-{number}")

    return start


def run_array(start: Callable[[int], Job], numbers: Sequence[int], parallel: int, *, is_removed: bool = False) -> int:
    """Run a job for each number, `parallel` at a time; return 1 if one failed, else 0.

    Each job that ends is reported, a failed one with its cause, and then deleted if `is_removed`. While the API server cannot be reached,
    the jobs keep running, and it is asked again.
    """
    waiting, running, failed = list(numbers), list[Job](), 0
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                running.append(start(waiting[0]))
                waiting.pop(0)
            for job in list(running):
                if (end := _end(job)) is not None:
                    running.remove(job)
                    failed += not job.status.has_succeeded
                    click.echo(f"{job.name}: {end}")
                    if is_removed:
                        _delete(job)
            if running:
                time.sleep(POLL_SECONDS)
    finally:
        if running:
            click.echo(_left(running, waiting), err=True)
    click.echo(f"{len(numbers) - failed} of {len(numbers)} jobs succeeded", err=True)
    return int(failed > 0)


def _end(job: Job) -> str | None:
    """Return how a job ended; None while it runs, or if the API server does not answer."""
    try:
        if not job.refresh().is_finished:
            return None
        return "succeeded" if job.status.has_succeeded else printable(job.why())
    except UnreachableError:
        return None
    except NotFoundError:
        return "somebody deleted it before it ended"


def _delete(job: Job) -> None:
    try:
        job.delete()
    except ClientError as error:
        click.echo(f"{job.name} was not deleted: {error}", err=True)


def _left(running: Sequence[Job], waiting: Sequence[int]) -> str:
    """Return which jobs keep running after the command, and which indexes were not started."""
    names = " ".join(job.name for job in running)
    not_started = f"; not started: --array {','.join(map(str, waiting))}" if waiting else ""
    return f"{len(running)} jobs keep running: kubectl mpi list, or kubectl mpi delete {names}{not_started}"
