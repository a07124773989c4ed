"""`run --array`: the same program many times, a few at a time."""

import re
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from mpiop.client.errors import ClientError, InvalidError, NotFoundError, UnreachableError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import MPI
from mpiop.client.spec import generated_name
from mpiop.kubectl.output import printable

INDEX: Final = "MPIOP_ARRAY_INDEX"
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_MOST: Final = 10_000


def indexes(text: str) -> Sequence[int]:
    """Return the indexes of a list such as `1-20` or `1,3,7-9`.

    Raises:
        InvalidError: It is none, or far too long.
    """
    found: dict[int, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) - int(match[1]) not in range(_MOST):
            raise InvalidError(f"--array {text}: write indexes such as 1-20 or 1,3,7-9, at most {_MOST:,}")
        found |= dict.fromkeys(range(int(match[1]), int(match[2] or match[1]) + 1))
    return list(found)


def run_array(mpi: MPI, numbers: Sequence[int], parallel: int, fields: dict[str, Any], *, is_removed: bool = False) -> int:
    """Run a job for each number, `parallel` at a time; return 1 if one failed, else 0.

    The ranks find the number in `MPIOP_ARRAY_INDEX`. Each job that ends is reported, a failed one with its cause, and then deleted if
    `is_removed`. While the API server
    is away the jobs go on, and it is asked again.
    """
    name = fields.pop("name") or generated_name(fields["command"])
    waiting, running, failed = list(numbers), list[Job](), 0
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                settings: dict[str, Any] = {**fields, "env": {**fields.get("env", {}), INDEX: str(waiting[0])}}
                running.append(mpi.submit(**settings, name=f"{name}-{waiting[0]}"))
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
    """Return how a job ended; None while it goes on, or if that cannot be asked now."""
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
    """Return what goes on after the command, and what was not begun."""
    names = " ".join(job.name for job in running)
    begin = f"; not begun: --array {','.join(map(str, waiting))}" if waiting else ""
    return f"{len(running)} jobs go on: kubectl mpi list, or kubectl mpi delete {names}{begin}"
