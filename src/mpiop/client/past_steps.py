"""The steps that an allocation has run, and what was kept of their output: the launcher's script prints both."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mpiop.api.mpi_implementations import Implementation
from mpiop.client.allocation import script_command
from mpiop.client.errors import ClientError, NotFoundError
from mpiop.client.tags import RankLines, Tagged

_END: Final = b"\nend\n"
_NOT_FOUND: Final = 3


class PastStep(NamedTuple):
    """A step that has begun.

    Attributes:
        number: Of the step.
        code: Its exit code; None while it runs.
        started: When its `mpirun` was started.
        ended: When it ended; None while it runs.
        ranks: How many.
        hosts: Numbers of lines of the hostfile.
        command: The first line of its command.
    """

    number: int
    code: int | None
    started: datetime
    ended: datetime | None
    ranks: int
    hosts: tuple[int, ...]
    command: str


def past_steps(kubectl: Sequence[str]) -> Sequence[PastStep]:
    """Return the steps of an allocation by number; `kubectl` is as for `Step`.

    Raises:
        ClientError: The launcher does not answer, or its answer is invalid: a program there may have written it.
    """
    lines = _printed(kubectl, "history").decode(errors="replace").split("\n")
    try:
        return [_step(line.split("\t", 6)) for line in lines if line]
    except (ValueError, OverflowError) as error:  # OverflowError is of times
        raise ClientError("the launcher's list of steps is invalid") from error


def step_output(kubectl: Sequence[str], number: int, library: Implementation) -> tuple[Sequence[Tagged], bool]:
    """Return what was kept of the output of a step, and whether its beginning was dropped.

    Raises:
        NotFoundError: There is no such step, or nothing of it was kept.
        ClientError: As for `past_steps`.
    """
    head, _, text = _printed(kubectl, "output", str(number)).partition(b"\n")
    is_tagged, _, is_cut = head.partition(b" ")
    lines = text.removesuffix(b"\n").split(b"\n") if text else []
    return [*RankLines(library if is_tagged == b"1" else None).whole(lines)], is_cut == b"1"


def _step(fields: Sequence[str]) -> PastStep:
    number, code, started, ended, ranks, place, command = fields
    hosts = tuple(int(pair.partition(":")[0]) for pair in place.split())
    since, until = _time(started), _time(ended) if ended else None
    return PastStep(int(number), int(code) if code else None, since, until, int(ranks), hosts, command)


def _time(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _printed(kubectl: Sequence[str], *words: str) -> bytes:
    """Return what the script prints; the end of a connection looks like success to kubectl, so the script marks its own."""
    command = [*kubectl, "--", *script_command("client", *words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - kubectl, as the user could call it
    if done.returncode == 0 and done.stdout.endswith(_END):
        return done.stdout.removesuffix(_END)
    lines = done.stderr.decode(errors="replace").splitlines()
    if done.returncode == _NOT_FOUND:
        raise NotFoundError(next(iter(lines), "not found"))
    raise ClientError(f"the launcher does not answer (kubectl: exit code {done.returncode}): {' '.join(lines[-1:])}")
