"""`run --array`: the same program many times, a few at a time."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from mpiop.client.errors import InvalidError
from mpiop.client.job import POLL_SECONDS, Job
from mpiop.client.mpi import MPI
from mpiop.client.spec import generated_name

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


def run_array(
    mpi: MPI, numbers: Sequence[int], parallel: int, fields: dict[str, Any], *, pause: Callable[[float], None] = time.sleep
) -> int:
    """Run a job for each number, `parallel` at a time; return 1 if one failed, else 0.

    The ranks find the number in `MPIOP_ARRAY_INDEX`. Each job that ends is reported; a failed one with its cause.
    """
    name = fields.pop("name") or generated_name(fields["command"])
    waiting, running, failed = list(numbers), list[Job](), 0
    while waiting or running:
        while waiting and len(running) < parallel:
            number = waiting.pop(0)
            settings: dict[str, Any] = {**fields, "env": {**fields.get("env", {}), INDEX: str(number)}, "name": f"{name}-{number}"}
            running.append(mpi.submit(**settings))
        for job in list(running):
            if not job.refresh().is_finished:
                continue
            running.remove(job)
            failed += not job.status.has_succeeded
            click.echo(f"{job.name}: " + ("succeeded" if job.status.has_succeeded else job.why()))
        if running:
            pause(POLL_SECONDS)
    click.echo(f"{len(numbers) - failed} of {len(numbers)} jobs succeeded", err=True)
    return int(failed > 0)
