"""`%%mpi` of notebooks runs a cell on the ranks of an allocation; `%load_ext mpiop.client.magic` defines it."""

import getopt
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from mpiop.api import constants as c
from mpiop.client.allocation import is_allocation, wait_until_running
from mpiop.client.allocations import Allocation
from mpiop.client.errors import InvalidError, JobFailed
from mpiop.client.live import Live
from mpiop.client.mpi import MPI
from mpiop.client.program_steps import Reports, step_words
from mpiop.kube.text import whole_number

_PYTHON: Final = ("python3", "-u", "-m", "mpi4py", "-c")
"""With `-m mpi4py`, an exception on one rank ends the others too, which may wait for it."""
_MOST_BYTES: Final = 100_000
"""Linux passes on at most 128 KiB as one argument, and Open MPI all arguments as one variable."""


class IPython(Protocol):
    """What this needs of an `InteractiveShell`."""

    @property
    def user_ns(self) -> Mapping[str, Any]:
        """The variables of the notebook."""
        ...

    def register_magic_function(self, func: Callable[[str, str], None], magic_kind: str, magic_name: str) -> None:
        """Define a magic."""
        ...


def load_ipython_extension(ipython: IPython) -> None:
    """Define `%%mpi`. IPython calls this."""

    def mpi(line: str, cell: str) -> None:
        """Run the cell on each rank of an allocation: %%mpi [ALLOCATION] [-n RANKS].

        ALLOCATION is a variable of the notebook, or the name of an allocation in the cluster. Leave it out if one variable is an
        allocation. Each rank runs the cell in a new Python, which has none of the variables of the notebook.
        """
        name, ranks = _options(line)
        if len(cell.encode()) > _MOST_BYTES:
            raise InvalidError(f"the cell has more than {_MOST_BYTES:,} bytes: put functions into a module of the image")
        words = step_words([*_PYTHON, cell], ranks, (), None)
        live = Live()
        allocation = _allocation(name, ipython.user_ns)
        _wait_until_running(allocation, live)
        _run(allocation, words, live)

    ipython.register_magic_function(mpi, "cell", "mpi")


def _options(line: str) -> tuple[str, int | None]:
    """Return the name and the number of ranks that follow `%%mpi`, "" and None by default.

    Raises:
        InvalidError: There is something else.
    """
    usage = f"%%mpi {line.strip()}: write %%mpi [ALLOCATION] [-n RANKS]"
    try:
        options, names = getopt.gnu_getopt(shlex.split(line), "n:")
    except (getopt.GetoptError, ValueError) as error:
        raise InvalidError(f"{usage}: {error}") from error
    ranks = [whole_number(value) for _, value in options]
    if len(names) > 1 or None in ranks:
        raise InvalidError(usage)
    return "".join(names), next(iter(ranks), None)


def _allocation(name: str, variables: Mapping[str, Any]) -> Allocation:
    """Return the allocation that a variable or a name means.

    Raises:
        InvalidError: There is none, or it is not clear which.
        NotFoundError: There is none of that name.
    """
    known = {key: value for key, value in variables.items() if isinstance(value, Allocation) and not key.startswith("_")}
    if name in known:
        return known[name]
    if name:
        mpi = MPI()
        job = mpi.get(name)
        if not is_allocation(job.raw):
            raise InvalidError(f"job {job.name} is not an allocation: kubectl mpi alloc makes one")
        return Allocation(job, mpi.kubectl_options)
    if len({id(value) for value in known.values()}) == 1:
        return next(iter(known.values()))
    if known:
        raise InvalidError(f"several variables are allocations; write one of them after %%mpi: {', '.join(sorted(known))}")
    raise InvalidError("no variable is an allocation: write the name of one after %%mpi, or make one with mpi.allocation(...)")


def _wait_until_running(allocation: Allocation, live: Live) -> None:
    """Wait for the workers of an allocation that has not ended, with a line of progress."""
    status = allocation.job.refresh()
    if not status.is_finished and status.condition(c.CONDITION_RUNNING) is None:
        wait_until_running(allocation.job, live)


def _run(allocation: Allocation, words: list[str], live: Live) -> None:
    """Run a step, and print each line after its rank.

    Raises:
        JobFailed: A rank failed. What it printed was shown, so the error does not repeat it.
    """
    waits = list[str]()

    def show(rank: int | None, line: str) -> None:
        ended_waiting()
        print(line if rank is None else f"{rank}: {line}", flush=True)  # noqa: T201 - the output of the cell

    def show_waiting(reason: str) -> None:
        waits.append(reason)
        live(f"waits: {reason}")

    def ended_waiting() -> None:
        if waits:
            waits.clear()
            live("waited for slots")

    step = allocation.start_program(words, Reports(show, show_waiting))
    try:
        step.wait()
    except JobFailed as error:
        error.log = ""
        raise
    finally:
        ended_waiting()
