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
LIMIT_BYTES: Final = 8 * 2**20
_RUNNER: Final = f"""
import base64, pickle, sys, traceback
sys.path.insert(0, "{FILES_PATH}")
from mpi4py import MPI

world = MPI.COMM_WORLD
try:
    if sys.version_info[:2] != VERSION:
        raise RuntimeError("the function was made by Python %d.%d, and the image has %d.%d" % (VERSION + tuple(sys.version_info[:2])))
    with open("{FILES_PATH}/function.pkl", "rb") as file:
        function, args = pickle.load(file)
    outcome = (True, pickle.dumps(function(*args)))
except BaseException:
    outcome = (False, traceback.format_exc())
outcomes = world.gather(outcome)
if world.rank == 0:
    text = base64.b64encode(pickle.dumps(outcomes)).decode()
    if len(text) > {LIMIT_BYTES}:
        sys.exit("the results have %d bytes, and {LIMIT_BYTES} may come back: write large ones to a volume" % len(text))
    sys.stdout.flush()
    for start in range(0, len(text), 1000):
        print("{MARK}" + text[start : start + 1000], flush=True)
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
    """Return the results by rank from the lines of the launcher's log.

    Raises:
        JobFailed: A rank raised, or the job failed before.
    """
    text = "".join(line.removeprefix(MARK) for line in lines if line.startswith(MARK))
    if not text:
        status = job.refresh()
        if status.has_succeeded:
            raise JobFailed(job.name, "NoResults", "the program ended without results")
        raise status.failure(job.name)
    outcomes: list[tuple[bool, Any]] = pickle.loads(base64.b64decode(text))  # noqa: S301 - from the job that we made
    failed = [(rank, trace) for rank, (is_good, trace) in enumerate(outcomes) if not is_good]
    if failed:
        rank, trace = failed[0]
        raise JobFailed(job.name, "FunctionRaised", f"{len(failed)} of {len(outcomes)} ranks raised; rank {rank}:\n{trace}", 1)
    return [pickle.loads(result) for _, result in outcomes]  # noqa: S301 - from the job that we made
