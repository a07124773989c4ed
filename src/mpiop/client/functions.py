"""A Python function on every rank: how it travels to the ranks, and its results back."""

import base64
import pickle
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import cloudpickle  # type: ignore[import-untyped]

from mpiop.client.errors import JobFailed
from mpiop.client.files import Files
from mpiop.client.job import Job
from mpiop.client.spec import FILES_PATH

MARK: Final = "mpiop-result:"
"""Begins each line of the log that has a piece of the results."""
RAISED: Final = "mpiop-raised:"
"""Begins the line of the log that has a rank and its traceback."""
LIMIT_BYTES: Final = 8 * 2**20
_RUNNER: Final = f"""
import base64, pickle, sys, time, traceback
sys.path.insert(0, "{FILES_PATH}")
from mpi4py import MPI

world = MPI.COMM_WORLD
try:
    if sys.version_info[:2] != VERSION:
        raise RuntimeError("the function was made by Python %d.%d, and the image has %d.%d" % (VERSION + tuple(sys.version_info[:2])))
    with open("{FILES_PATH}/function.pkl", "rb") as file:
        function, args = pickle.load(file)
    result = pickle.dumps(function(*args))
except BaseException:
    trace = traceback.format_exc()
    sys.stderr.write(trace)
    # The ranks mix their output by the piece: a line of less than 4 KiB stays whole.
    text = base64.b64encode(trace[-2500:].encode(errors="replace")[-2500:]).decode()
    sys.stdout.flush()
    sys.stdout.write("\\n{RAISED}%d:%s\\n" % (world.rank, text))
    sys.stdout.flush()
    time.sleep(1)  # mpirun has read the line before it ends the ranks
    world.Abort(1)  # the others may wait for this rank for ever
sys.stdout.flush()
results = world.gather(result)
if world.rank == 0:
    text = base64.b64encode(pickle.dumps(results)).decode()
    if len(text) > {LIMIT_BYTES}:
        sys.exit("the results have %d bytes, and {LIMIT_BYTES} may come back: write large ones to a volume" % len(text))
    for start in range(0, len(text), 1000):
        sys.stdout.write("\\n{MARK}%s\\n" % text[start : start + 1000])
        sys.stdout.flush()
"""


class FunctionFiles(NamedTuple):
    """The files of a function, and the command that calls it on a rank."""

    files: Files
    command: Sequence[str]


def function_files(function: Callable[..., Any], args: Sequence[Any]) -> FunctionFiles:
    """Return `function(*args)`, ready to travel.

    Raises:
        InvalidError: It is too large.
    """
    package = Path(cloudpickle.__file__).parent
    sources = {f"cloudpickle/{each.name}": each.read_bytes() for each in package.glob("*.py")}
    runner = textwrap.dedent(_RUNNER).replace("VERSION", repr(sys.version_info[:2]))
    pickled: bytes = cloudpickle.dumps((function, tuple(args)))  # pyright: ignore[reportUnknownMemberType]
    content = {"function.pkl": pickled, "runner.py": runner.encode(), **sources}
    return FunctionFiles(Files(content), ("python3", f"{FILES_PATH}/runner.py"))


def results_of(job: Job, lines: Sequence[str]) -> list[Any]:
    """Return the results by rank from the lines of the launcher's log, after the job was seen to end.

    Raises:
        JobFailed: A rank raised, or the job failed before.
    """
    text = "".join(_marked(lines, MARK))
    if (results := _unpickled(text)) is not None:
        return [pickle.loads(result) for result in results]  # noqa: S301 - from the job that we made
    if raised := _marked(lines, RAISED):
        rank, _, trace = raised[0].partition(":")
        raise JobFailed(job.name, "FunctionRaised", f"rank {rank} raised:\n{_traceback(trace)}", 1)
    status = job.status
    if status.has_succeeded:
        raise JobFailed(job.name, "NoResults", "the results in its log are not whole" if text else "the program ended without results")
    raise status.failure(job.name)


def _marked(lines: Sequence[str], mark: str) -> list[str]:
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


def _unpickled(text: str) -> list[bytes] | None:
    """Return the pickled results by rank; None if they are not whole."""
    try:
        # Two tries of the launcher may both have printed them: what comes after the first is left out.
        results: list[bytes] = pickle.loads(base64.b64decode(text))  # noqa: S301 - from the job that we made
    except (ValueError, EOFError, pickle.UnpicklingError):
        return None
    return results


def _traceback(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except ValueError:
        return "its traceback in the log is not whole"
