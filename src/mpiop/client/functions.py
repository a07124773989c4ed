"""A Python function on every rank: how it travels to the ranks, and its results back."""

import pickle
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import cloudpickle  # type: ignore[import-untyped]

from mpiop.client import lines
from mpiop.client.errors import JobFailed
from mpiop.client.files import Files
from mpiop.client.job import Job
from mpiop.client.results import Collector, Run
from mpiop.client.spec import FILES_PATH
from mpiop.client.tags import without_tags

LIMIT_BYTES: Final = 8 * 2**20
_KEY_BYTES: Final = 32
_RUNNER: Final = f"""
import os, pickle, sys, time, traceback

# The function, its libraries and its children print to stderr, so that stdout has whole lines of results and nothing else.
sys.stdout.flush()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
if hasattr(sys.stdout, "reconfigure"):
    sys.stdout.reconfigure(line_buffering=True)
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)
from mpi4py import MPI
from mpiop_lines import lines

world = MPI.COMM_WORLD
run = world.bcast(os.urandom(8).hex())


def read(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def write(kind, rank, content):
    for line in lines(read("key"), kind, "%s:%d/%d" % (run, rank, world.size), content):
        out.write(line)
        out.flush()


try:
    if sys.version_info[:2] != VERSION:
        raise RuntimeError("the function was made by Python %d.%d, and the image has %d.%d" % (VERSION + tuple(sys.version_info[:2])))
    function, args = pickle.loads(read("function.pkl"))
    results = world.gather(pickle.dumps(function(*args)))
    size = 4 * sum(map(len, results or ())) // 3
    if size > {LIMIT_BYTES}:
        raise RuntimeError("the results have %d bytes, and {LIMIT_BYTES} may come back: write large ones to a volume" % size)
except BaseException:
    trace = traceback.format_exc()
    sys.stderr.write(trace)
    write("raised", world.rank, trace.encode(errors="replace")[-2500:])
    time.sleep(1)  # mpirun has read the lines before it ends the ranks
    world.Abort(1)  # the others may wait for this rank for ever
for rank, result in enumerate(results or ()):
    write("result", rank, result)
"""


class FunctionCall:
    """A call of a function on every rank.

    Attributes:
        files: What travels to the ranks.
        command: Calls the function on a rank.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        """Make `function(*args)` ready to travel, with a key that no other call has.

        Raises:
            InvalidError: It is too large.
        """
        key = secrets.token_bytes(_KEY_BYTES)
        package = Path(cloudpickle.__file__).parent
        sources = {f"cloudpickle/{each.name}": each.read_bytes() for each in package.glob("*.py")}
        sources["mpiop_lines.py"] = Path(lines.__file__).read_bytes()
        sources["runner.py"] = _RUNNER.replace("VERSION", repr(sys.version_info[:2])).encode()
        pickled: bytes = cloudpickle.dumps((function, tuple(args)))  # pyright: ignore[reportUnknownMemberType]
        self.files = Files({"function.pkl": pickled, "key": key, **sources})
        self.command: Sequence[str] = ("python3", f"{FILES_PATH}/runner.py")
        self._collector = Collector(key)

    def read(self, line: str) -> None:
        """Take a line of the launcher's log. Nothing of it is unpickled."""
        self._collector.add(without_tags(line))

    def results(self, job: Job) -> list[Any]:
        """Return the results by rank, after the job was seen to end and its log was read.

        Raises:
            JobFailed: A rank raised, the job failed before, or results are missing.
        """
        runs = self._collector.runs
        for run in runs:  # two runs of the launcher may both have results
            if len(run.whole) == run.ranks:
                return list(_unpickled(run).values())
        if not runs:
            raise _without_results(job, "the program ended without results")
        raise _raised(job, runs[-1]) if runs[-1].raised else _incomplete(job, runs[-1])


def _unpickled(run: Run) -> dict[int, Any]:
    # Each was made with the key of this call.
    return {rank: pickle.loads(result) for rank, result in run.whole.items()}  # noqa: S301


def _raised(job: Job, run: Run) -> JobFailed:
    """Return what the first rank raised whose traceback is whole."""
    whole = {rank: trace for rank, content in run.raised.items() if (trace := content.whole) is not None}
    rank = next(iter(whole or run.raised))
    text = whole[rank].decode(errors="replace") if whole else "its traceback in the log is incomplete"
    return JobFailed(job.name, "FunctionRaised", f"rank {rank} raised:\n{text}", 1)


def _incomplete(job: Job, run: Run) -> JobFailed:
    why = f"the results in its log are incomplete: {run.missing}"
    failure = _without_results(job, why)
    if why not in str(failure):
        failure.add_note(why)
    failure.results = _unpickled(run)
    return failure


def _without_results(job: Job, why: str) -> JobFailed:
    """Return the failure of the job, if it failed, else `why` there are no results."""
    status = job.status
    return JobFailed(job.name, "NoResults", why) if status.has_succeeded else status.failure(job.name)
