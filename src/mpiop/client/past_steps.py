"""The steps that an allocation has run, and what was kept of their output: the launcher's script prints both."""

import contextlib
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Final, NamedTuple

from mpiop.api.mpi_implementations import Implementation
from mpiop.client.allocation import script_command
from mpiop.client.errors import ClientError, NotFoundError
from mpiop.client.logs import MOST_BYTES
from mpiop.client.steps import HEARTBEAT_SECONDS
from mpiop.client.tags import RankLines, Tagged

_NOT_FOUND: Final = 3
_SHOWN_BYTES: Final = 4096


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
    lines = [line.decode(errors="replace") for line in _printed(kubectl, "history") if line]
    try:
        return [_step(line.split("\t", 6)) for line in lines]
    except (ValueError, OverflowError) as error:  # OverflowError is of times
        raise ClientError("the launcher's list of steps is invalid") from error


def step_output(
    kubectl: Sequence[str], number: int, library: Implementation, dropped: Callable[[], None], *, follow: bool = False
) -> Generator[Tagged]:
    """Yield the lines that were kept of the output of a step; with `follow`, also those that it prints until it ends.

    Args:
        kubectl: As for `Step`.
        number: Of the step.
        library: Of the allocation.
        dropped: Called where output was dropped, because only its end is kept: before the next line is yielded.
        follow: Whether to wait for the end of the step.

    Raises:
        NotFoundError: There is no such step, or nothing of it was kept.
        ClientError: As for `past_steps`.
    """
    printed = _printed(kubectl, "output", str(number), *(["follow"] if follow else []))
    tags = library if next(printed, b"") == b"1" else None
    ranks = RankLines(tags)
    for line in printed:
        if line is not None:
            yield from ranks.add(line)
            continue
        yield from ranks.rest()
        ranks = RankLines(tags)
        dropped()
    yield from ranks.rest()


def _step(fields: Sequence[str]) -> PastStep:
    number, code, started, ended, ranks, place, command = fields
    hosts = tuple(int(pair.partition(":")[0]) for pair in place.split())
    since, until = _time(started), _time(ended) if ended else None
    return PastStep(int(number), int(code) if code else None, since, until, int(ranks), hosts, command)


def _time(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _printed(kubectl: Sequence[str], *words: str) -> Generator[bytes | None]:
    """Yield the lines that the script prints, as soon as they are whole, and None where it dropped some.

    Its marks are lines with a token, each after a line end that is not of the output. The end has one too, because the end of a
    connection looks like success to kubectl.
    """
    token = secrets.token_hex(8)
    marks = {f"{token} {kind}\n".encode(): kind for kind in ("dropped", "end")}
    with tempfile.TemporaryFile() as errors:
        mark, is_empty = None, False
        with _running([*kubectl, "--", *script_command("client", token, *words)], errors) as process:
            while process.stdout is not None and (line := process.stdout.readline(MOST_BYTES)):
                mark = marks.get(line)
                if is_empty and mark is None:
                    yield b""
                is_empty = line == b"\n"
                if mark == "dropped":
                    yield None
                elif mark is None and not is_empty:
                    yield line.removesuffix(b"\n")
            code = process.wait()
        if mark == "end":
            return
        errors.seek(0)
        lines = errors.read(_SHOWN_BYTES).decode(errors="replace").splitlines()
    if code == _NOT_FOUND:
        raise NotFoundError(next(iter(lines), "not found"))
    raise ClientError(f"the launcher does not answer (kubectl: exit code {code}): {' '.join(lines[-1:])}")


@contextmanager
def _running(command: Sequence[str], errors: IO[bytes]) -> Generator["subprocess.Popen[bytes]"]:
    """Run a command that gets heartbeats on its standard input: servers end connections that are idle."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)  # noqa: S603 - kubectl, as the user could call it
    is_over = threading.Event()
    beats = threading.Thread(target=_beat, args=(process.stdin, is_over), daemon=True)
    beats.start()
    try:
        yield process
    finally:
        is_over.set()
        process.kill()
        process.wait()
        beats.join()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # kubectl has ended, and did not read a heartbeat
                    stream.close()


def _beat(stream: IO[bytes], is_over: threading.Event) -> None:
    while not is_over.wait(HEARTBEAT_SECONDS):
        with contextlib.suppress(OSError):  # kubectl has ended
            stream.write(b"\n")
            stream.flush()
