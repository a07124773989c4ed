"""A Python function on every rank: how it travels to the ranks, and its results back."""

import inspect
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from mpiop.client import lines
from mpiop.client.errors import LONGEST_LINE, InvalidError, JobFailed
from mpiop.client.files import Files
from mpiop.client.job import LOG_LINES, Job
from mpiop.client.pickles import pickled_call, sources, unpickled
from mpiop.client.results import MOST_NAMED, Collector, Run, is_piece
from mpiop.client.runner import CHECK_COMMAND, IMAGE, travelling
from mpiop.client.spec import FILES_PATH
from mpiop.client.tags import without_tags
from mpiop.client.type_checks import check_type

_KEY_BYTES: Final = 32


class Outcome(NamedTuple):
    """How what ran a function ended.

    Attributes:
        name: Of the job, or of the step.
        has_succeeded: Whether it has succeeded.
        failure: Returns why it has failed.
    """

    name: str
    has_succeeded: bool
    failure: Callable[[], JobFailed]


class FunctionCall:
    """A call of a function on every rank.

    Attributes:
        files: What travels to the ranks.
        check: Shell commands that check the image in the launcher, before `mpirun`.
        command: Calls the function on a rank.
        name: Of the function.
    """

    check: Final = CHECK_COMMAND
    command: Final = ("python3", f"{FILES_PATH}/runner.py")

    def __init__(self, function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
        """Make `function(*args, **kwargs)` ready to travel, with a key that no other call has.

        Raises:
            InvalidError: It is not a function with such arguments, is too large, or cannot be pickled.
        """
        _check_call(function, args, kwargs)
        key = secrets.token_bytes(_KEY_BYTES)
        call = {"function.pkl": pickled_call(function, args, kwargs or {}), "key": key, "mpiop_lines.py": Path(lines.__file__).read_bytes()}
        self.files = Files(call | sources() | travelling())
        self.name: str = getattr(function, "__name__", "function")
        self._collector = Collector(key)
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._image = ""

    def read(self, line: str) -> None:
        """Take a line of the launcher's log. Nothing of it is unpickled."""
        text = without_tags(line)
        if is_piece(text):
            self._collector.add(text)
            return
        if text.startswith(IMAGE):
            self._image = text.removeprefix(IMAGE)
        elif not any(run.raised for run in self._collector.runs):  # what follows is mpirun's own: that it ends the other ranks
            self._log.append(text[:LONGEST_LINE])

    def results(self, job: Job) -> list[Any]:
        """Return the results by rank, after the job was seen to end and its log was read.

        Raises:
            JobFailed: The image does not fit, a rank raised, the job failed before, or results are missing or cannot be unpickled. It
                has the other results.
        """
        return self.results_of(Outcome(job.name, job.status.has_succeeded, partial(job.status.failure, job.name)))

    def results_of(self, outcome: Outcome) -> list[Any]:
        """Return the results of what ran the function so.

        Raises:
            JobFailed: As for `results`.
        """
        runs = self._collector.runs
        chosen = next((run for run in runs if len(run.whole) == run.ranks), runs[-1] if runs else None)  # two runs may both have results
        results, unreadable = _unpickled(chosen) if chosen is not None else ({}, {})
        if chosen is not None and len(results) == chosen.ranks:
            return [*results.values()]
        failure = self._failure(outcome, chosen, unreadable)
        shown = {line.strip() for line in str(failure).splitlines()}
        failure.results = results
        failure.log = "\n".join(line for line in self._log if line.strip() not in shown) or failure.log
        raise failure from next(iter(unreadable.values()), None)

    def _failure(self, outcome: Outcome, run: Run | None, unreadable: Mapping[int, Exception]) -> JobFailed:
        """Return why there are not all results: what the image lacks, what a rank raised, why the job failed, or what is missing."""
        if run is None and self._image:
            return JobFailed(outcome.name, "UnsuitableImage", f"the image cannot run the function: {self._image}", 1)
        if run is not None and run.raised:
            return _raised(outcome.name, run)
        why = "; ".join(_missing(run, unreadable)) if run is not None else "the program ended without results"
        if unreadable or outcome.has_succeeded:
            return JobFailed(outcome.name, "UnreadableResult" if unreadable else "NoResults", why)
        failure = outcome.failure()
        if run is not None:
            failure.add_note(why)
        return failure


def _check_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> None:
    """Check the arguments here rather than on the ranks, as far as the function is known."""
    check_type("function", function, Callable, "a function, without ()")
    check_type("kwargs", kwargs, Mapping[str, Any] | None)
    try:
        inspect.signature(function).bind(*args, **(kwargs or {}))
    except ValueError:  # a builtin that describes no arguments
        pass
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise InvalidError(f"the function {name} cannot be called so: {error}; arguments by name go into kwargs={{...}}") from error


def _unpickled(run: Run) -> tuple[dict[int, Any], dict[int, Exception]]:
    """Return the results by rank, and by rank why one cannot be read. Each was made with the key of this call."""
    results, unreadable = dict[int, Any](), dict[int, Exception]()
    for rank, content in run.whole.items():
        try:
            results[rank] = unpickled(content)
        except Exception as error:  # noqa: BLE001 - of the classes in it, which can raise anything
            unreadable[rank] = error
    return results, unreadable


def _missing(run: Run, unreadable: Mapping[int, Exception]) -> Sequence[str]:
    """Return which results could not be read, and which did not arrive."""
    named = [*unreadable.items()][:MOST_NAMED]
    sentences = [f"the result of rank {rank} cannot be unpickled here: {type(error).__name__}: {error}" for rank, error in named]
    sentences += [f"so cannot those of {len(unreadable) - MOST_NAMED} more ranks"] if len(unreadable) > MOST_NAMED else []
    return [*sentences, f"the results in its log are incomplete: {run.missing}"] if run.missing else sentences


def _raised(name: str, run: Run) -> JobFailed:
    """Return what the first rank raised whose traceback is whole."""
    whole = {rank: trace for rank, content in run.raised.items() if (trace := content.whole) is not None}
    rank = next(iter(whole or run.raised))
    text = whole[rank].decode(errors="replace").rstrip() if whole else "its traceback in the log is incomplete"
    return JobFailed(name, "FunctionRaised", f"rank {rank} raised:\n{text}", 1)
