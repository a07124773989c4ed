"""Functions on ranks, and their results, which come by a log that anything may be printed to."""

import base64
import pickle
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from fakes.client_api import container
from fakes.ranks import Log, Ranks, Trap, printed, raised
from mpiop.client import MPI, InvalidError, JobFailed, UnreachableError
from mpiop.client.functions import FunctionCall

VALUES = ["a" * 1000, "b" * 1000]
"""Two pieces each."""
RESULTS = [pickle.dumps(value) for value in VALUES]


def call(*logs: Log, state: str = "Succeeded", **fields: Any) -> list[Any]:
    return MPI(api=Ranks(*logs, state=state), image="i").run(lambda: None, **fields)


def part(log: Log, first: int = 0, last: int | None = None) -> Log:
    return lambda key: log(key)[first:last]


def test_a_function_returns_its_results_by_rank_and_leaves_no_job() -> None:
    api = Ranks(printed([pickle.dumps(rank * 10) for rank in range(3)]))
    reported: list[str] = []
    assert MPI(api=api, image="i").run(lambda: 1, ranks=3, report=reported.append) == [0, 10, 20]
    assert reported == ["succeeded"]
    assert api.stored == {}
    [made] = [request[1] for request in api.requests if request[0] == "create"]
    assert container(made)["args"][-2:] == ["python3", "/upload/runner.py"]


def test_each_call_has_a_key_of_its_own() -> None:
    assert FunctionCall(print, ()).files.content["key"] != FunctionCall(print, ()).files.content["key"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trap"


def changed(trap: bytes, key: bytes) -> list[str]:
    """Return the lines of true results with the content of another one."""
    content = base64.b64encode(trap).decode()
    parts = [line.split(":") for line in printed([b"", b""])(key)]
    return [":".join([*before, content, digest]) for *before, _, digest in parts]


Hostile: TypeAlias = Callable[[bytes, bytes], Sequence[str]]
HOSTILE: dict[str, Hostile] = {
    "a mark without a digest": lambda trap, _key: [f"mpiop-result:{base64.b64encode(trap).decode()}"],
    "a pickle alone": lambda trap, _key: [base64.b64encode(trap).decode()],
    "the digest of another key": lambda trap, _key: printed([trap])(b"another"),
    "the digest of no key": lambda trap, _key: printed([trap])(b""),
    "other content with the digest of a line that was seen": changed,
}


@pytest.mark.parametrize("lines", HOSTILE.values(), ids=HOSTILE)
def test_what_a_program_prints_is_never_unpickled(lines: Hostile, file: Path) -> None:
    trap = partial(lines, pickle.dumps(Trap(file)))
    assert call(trap, printed(RESULTS), trap) == VALUES
    with pytest.raises(JobFailed, match="NoResults: the program ended without results"):
        call(trap)
    assert not file.exists()


def test_the_trap_of_these_tests_works(file: Path) -> None:
    pickle.loads(pickle.dumps(Trap(file)))  # noqa: S301 - our own
    assert file.exists()


class Damage(NamedTuple):
    """What happens to the four lines of the results of two ranks."""

    id: str
    do: Callable[[list[str]], list[str]]
    missing: str = ""
    left: tuple[int, ...] = (0, 1)


LOST = "rank 1 lacks 1 of 2 pieces (2)"
DAMAGES = [
    Damage("in another order", lambda lines: lines[::-1]),
    Damage("each twice", lambda lines: lines + lines),
    Damage("after text of others", lambda lines: ["step 1 of 9: " + line for line in lines]),
    Damage("with the line ends of a terminal", lambda lines: [line.strip() + "\r" for line in lines]),
    Damage("tagged by Open MPI 4 in the middle", lambda lines: [f"[1,0]<stdout>:{line[:30]}[1,0]<stdout>:{line[30:]}" for line in lines]),
    Damage("tagged by Open MPI 5 in the mark", lambda lines: [f"{line[:3]}[prterun-a-1@1,0]<stdout>: {line[3:]}" for line in lines]),
    Damage("tagged by Hydra", lambda lines: [f"[0] {line}" for line in lines]),
    Damage("a line lost", lambda lines: lines[:3], LOST, (0,)),
    Damage("a line cut", lambda lines: [*lines[:3], lines[3][:-9]], LOST, (0,)),
    Damage("a line cut at its begin", lambda lines: [*lines[:3], lines[3][1:]], LOST, (0,)),
    Damage("a line in a line", lambda lines: [*lines[:3], lines[3][:80] + lines[2].strip() + lines[3][80:]], LOST, (0,)),
    Damage("a character changed", lambda lines: [*lines[:3], lines[3].replace("/2:2/2:", "/2:2/2:x")], LOST, (0,)),
    Damage("a piece moved", lambda lines: [*lines[:3], lines[2].replace("/2:1/2:", "/2:2/2:")], LOST, (0,)),
    Damage("a piece of another rank", lambda lines: [*lines[:3], lines[1].replace(":0/2:", ":1/2:")], LOST, (0,)),
    Damage("a rank lost", lambda lines: lines[2:], "rank 0 lacks all", (1,)),
    Damage("both damaged", lambda lines: lines[1:3], "rank 0 lacks 1 of 2 pieces (1), rank 1 lacks 1 of 2 pieces (2)", ()),
]


@pytest.mark.parametrize(("do", "missing", "left"), [each[1:] for each in DAMAGES], ids=[each.id for each in DAMAGES])
def test_damaged_lines_are_read_or_named(do: Callable[[list[str]], list[str]], missing: str, left: tuple[int, ...]) -> None:
    def log(key: bytes) -> list[str]:
        return do([*printed(RESULTS)(key)])

    if not missing:
        assert call(log) == VALUES
        return
    with pytest.raises(JobFailed) as caught:
        call(log)
    assert str(caught.value).endswith(f"NoResults: the results in its log are incomplete: {missing}")
    assert caught.value.results == {rank: VALUES[rank] for rank in left}
    with pytest.raises(JobFailed, match="MPIJobFailed") as caught:
        call(log, state="Failed")
    assert caught.value.__notes__ == [f"the results in its log are incomplete: {missing}"]
    assert caught.value.results == {rank: VALUES[rank] for rank in left}


def test_of_many_ranks_and_pieces_a_few_are_named() -> None:
    with pytest.raises(JobFailed, match=r"rank 0 lacks 13 of 14 pieces \(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …\), .* and 90 more ranks$"):
        call(part(printed([b"x" * 10000] * 100), 0, 1))


FIRST, SECOND = "1" * 16, "2" * 16
OTHERS = [pickle.dumps("c" * 1000), pickle.dumps("d" * 1000)]


@pytest.mark.parametrize(
    "logs",
    [
        (raised(1, "boom", run=FIRST), printed(RESULTS, run=SECOND)),
        (printed(RESULTS, run=FIRST), printed(OTHERS, run=SECOND)),
        (part(printed(OTHERS, run=FIRST), 0, 3), printed(RESULTS, run=SECOND)),
    ],
    ids=["the first raised", "both have results", "the first was ended meanwhile"],
)
def test_the_first_run_of_the_launcher_that_has_all_results_counts(logs: tuple[Log, ...]) -> None:
    assert call(*logs, retries=1) == VALUES


def test_results_of_two_runs_are_not_mixed() -> None:
    with pytest.raises(JobFailed, match=r"rank 0 lacks all, rank 1 lacks 1 of 2 pieces \(1\)"):
        call(part(printed(RESULTS, run=FIRST), 0, 3), part(printed(OTHERS, run=SECOND), 3), retries=1)


def test_a_rank_that_raises_is_named_with_its_traceback() -> None:
    with pytest.raises(JobFailed, match=r"FunctionRaised: rank 1 raised:\nTraceback: boom$"):
        call(raised(1, "Traceback: boom"), raised(0, "other"), state="Failed")
    cut = part(raised(1, "long" * 1000), 1)
    with pytest.raises(JobFailed, match=r"rank 0 raised:\nother$"):
        call(cut, raised(0, "other"), state="Failed")
    with pytest.raises(JobFailed, match=r"rank 1 raised:\nits traceback in the log is incomplete$"):
        call(cut, state="Failed")


def test_results_are_not_lost_when_the_api_server_goes_away_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: Any) -> None:
        raise UnreachableError("no answer")

    api = Ranks(printed([pickle.dumps(7)]))
    monkeypatch.setattr(api, "patch_config_map", away)
    monkeypatch.setattr(api, "delete_job", away)
    with pytest.warns(UserWarning, match="no answer") as caught:
        assert MPI(api=api, image="i").run(lambda: 1, name="f") == [7]
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "configmap python3-files-fghij will stay when job f is deleted",
        "job f was not deleted",
    ]


def test_a_result_that_cannot_be_unpickled_costs_no_other_one() -> None:
    with pytest.raises(JobFailed, match="UnreadableResult: the result of rank 1 cannot be unpickled here: ZeroDivisionError: ") as caught:
        call(printed([RESULTS[0], pickle.dumps(Broken()), RESULTS[1]]), state="Succeeded")
    assert caught.value.results == {0: VALUES[0], 2: VALUES[1]}
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(
        JobFailed, match=r"rank 9 .*; so cannot those of 2 more ranks; the results in its log are incomplete: rank 12 lacks all"
    ):
        call(part(printed([pickle.dumps(Broken())] * 13), 0, 12))


class Broken:
    """Can be pickled, and not be unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return divmod, (1, 0)


def test_an_error_ends_with_the_end_of_the_log() -> None:
    noise: Log = lambda _key: [f"step {number}" for number in range(30)]  # noqa: E731
    end = "\n".join(["The end of its log:", *(f"step {number}" for number in range(10, 30))])
    with pytest.raises(JobFailed) as caught:
        call(noise, part(printed(RESULTS), 0, 3))
    assert str(caught.value).endswith(f"{LOST}\n{end}")
    with pytest.raises(JobFailed) as caught:
        call(noise, lambda _key: ["Traceback:", "  boom"], raised(1, "Traceback:\n  boom"), lambda _key: ["MPI_ABORT"], state="Failed")
    assert str(caught.value).endswith(f"rank 1 raised:\nTraceback:\n  boom\n{end}")


def test_what_the_image_lacks_is_the_error() -> None:
    with pytest.raises(JobFailed, match=r"UnsuitableImage: the image cannot run the function: it has no python3$"):
        call(lambda _key: ["mpiop-image: it has no python3"], state="Failed")
    assert call(lambda _key: ["mpiop-image: it has no python3"], printed(RESULTS)) == VALUES


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "sentence"),
    [
        (5, (), None, "function is 5: it must be a function, without ()"),
        (int, (), ["x"], "kwargs is ['x']: it must be a dict with strings as keys or None"),
        (int, (), {1: 2}, "kwargs is {1: 2}: it must be a dict with strings as keys or None"),
        (
            part,
            (),
            None,
            "the function part cannot be called so: missing a required argument: 'log'; arguments by name go into kwargs={...}",
        ),
        (part, (1,), {"end": 2}, "the function part cannot be called so: got an unexpected keyword argument 'end'; arguments by name"),
    ],
)
def test_a_call_that_cannot_work_is_refused_before_there_is_a_job(function: Any, args: tuple[Any, ...], kwargs: Any, sentence: str) -> None:
    api = Ranks()
    with pytest.raises(InvalidError) as caught:
        MPI(api=api, image="i").run(function, *args, kwargs=kwargs)
    assert str(caught.value).startswith(sentence)
    assert api.requests == []


def test_a_long_line_of_the_log_is_cut_in_an_error() -> None:
    with pytest.raises(JobFailed) as caught:
        call(lambda _key: ["x" * 100_000])
    assert str(caught.value).endswith("\n" + "x" * 1000)


def test_what_cannot_be_pickled_is_refused_before_there_is_a_job() -> None:
    api = Ranks()
    with pytest.raises(
        InvalidError, match=r"the function print cannot be sent to the ranks with its arguments .*: cannot pickle '_thread.lock'"
    ):
        MPI(api=api, image="i").run(print, threading.Lock())
    assert api.requests == []
