"""What runs in the launcher and on the ranks of a function, in processes."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import cloudpickle  # type: ignore[import-untyped]
import pytest
import yaml

from fakes.client_api import FakeApi, container, stored
from fakes.ranks import world
from mpiop.client import MPI, JobFailed, pickles
from mpiop.client.functions import FunctionCall


class Rank:
    """Runs a call as a rank does, in a process."""

    def __init__(self, folder: Path, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        call = FunctionCall(function, args, kwargs)
        content = {**call.files.content, "mpi4py/__init__.py": b"", "mpi4py/MPI.py": world(2).encode()}
        for name, text in content.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)
        command = [sys.executable, "-S", str(folder / "runner.py")]  # without what is installed here: an image has other packages
        self.done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        for line in [*self.done.stdout.splitlines(), *self.done.stderr.splitlines()]:
            call.read(line)
        self.results = partial(call.results, MPI(api=FakeApi(stored())).get("pi"))


def test_prints_of_a_rank_and_its_children_are_not_among_its_results(tmp_path: Path) -> None:
    text = "x" * 3000

    def work(x: int) -> tuple[int, str]:
        print("computes", end="")  # noqa: T201 - a line without an end
        os.write(1, b"a library")
        subprocess.run(["echo", "a child"], check=True)
        subprocess.Popen("while echo noise; do :; done & sleep 0.3; kill $!", shell=True)  # noqa: S602 - continues while results are written
        return x * 3, text

    rank = Rank(tmp_path, work, 14)
    assert rank.results() == [(42, text)] * 2
    assert re.fullmatch(r"(mpiop-result:[\w/:+=]+\n)+", rank.done.stdout)
    assert [words in rank.done.stderr for words in ("computes", "a library", "a child", "noise")] == [True] * 4


def test_a_rank_that_raises_ends_the_others_and_says_why(tmp_path: Path) -> None:
    def work() -> None:
        print("computes", end="")  # noqa: T201 - a line without an end
        raise ValueError("é" * 5000)

    rank = Rank(tmp_path, work)
    assert rank.done.returncode == 1
    assert "ValueError: éé" in rank.done.stderr
    with pytest.raises(JobFailed, match=r"(?s)rank 0 raised:\n.*éé$"):
        rank.results()


def test_too_large_results_are_an_error_of_their_writer(tmp_path: Path) -> None:
    def work() -> bytes:
        return bytes(4 * 2**20)

    with pytest.raises(JobFailed, match="the results have 11184834 bytes, and 8388608 can be returned: write large ones to a volume"):
        Rank(tmp_path, work).results()


class Point:
    """A class of the caller's, which each process changes."""

    made = 0

    def __init__(self, x: int) -> None:
        type(self).made += 1
        type(self).last = self  # type: ignore[attr-defined]
        self.x = x


def test_instances_of_the_callers_classes_travel_both_ways(tmp_path: Path) -> None:
    def work(x: int, *, scale: int) -> Point:
        return Point(x * scale)

    before = dict(vars(Point))
    results = Rank(tmp_path, work, 7, scale=3).results()
    assert [(type(point) is Point, point.x) for point in results] == [(True, 21)] * 2
    assert dict(vars(Point)) == before, "ranks change their own copy of a class"
    [sent, _] = Rank(tmp_path / "again", lambda point: point, Point(5)).results()
    assert (type(sent) is Point, sent.x) == (True, 5)


def test_classes_that_a_rank_defines_come_back(tmp_path: Path) -> None:
    def work() -> Any:
        class Local:
            """Of the rank."""

            def double(self) -> int:
                return 2

        return Local()

    [local, _] = Rank(tmp_path, work).results()
    assert (local.double(), type(local).__doc__) == (2, "Of the rank.")


FACTOR = 3


def scaled(x: int) -> int:
    return x * FACTOR


def test_functions_run_without_an_import_of_cloudpickle_which_takes_long(tmp_path: Path) -> None:
    offset = 1

    def work(function: Callable[[int], int], /, *, limit: int = 3) -> Any:
        def count(number: int) -> int:
            return 0 if number == limit else 1 + count(number + 1)

        return function(count(0)) + offset, re.escape("a b"), [name for name in sys.modules if "cloudpickle" in name]

    work.note = "a note"  # type: ignore[attr-defined]
    assert Rank(tmp_path, work, scaled).results() == [(10, r"a\ b", [])] * 2
    assert Rank(tmp_path, lambda function: function.note, work).results() == ["a note"] * 2
    assert [function(5) for function in Rank(tmp_path, lambda: lambda x: x + offset).results()] == [6, 6], "a result by value"


@pytest.mark.parametrize("make_cell", [None, cloudpickle.cloudpickle.dynamic_subimport], ids=["one is missing", "one uses more"])
def test_a_cloudpickle_with_other_helpers_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_cell: Any) -> None:
    monkeypatch.setattr(cloudpickle.cloudpickle, "_make_cell", make_cell)
    monkeypatch.setattr(pickles, "_helpers", pickles._helpers.__wrapped__)  # without its cache
    assert Rank(tmp_path, lambda: "cloudpickle" in sys.modules).results() == [True, True]


def test_modules_of_the_callers_own_travel_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "caller" / "solver_of_mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from solver_of_mine.steps import step\n")
    (package / "steps.py").write_text("class Step:\n    size = 3\n\n\ndef step(x):\n    return x * Step.size, Step()\n")
    monkeypatch.syspath_prepend(package.parent)
    import solver_of_mine  # type: ignore[import-not-found] # noqa: PLC0415 - made just now

    def work(x: int) -> Any:
        return solver_of_mine.step(x)

    [(value, step), _] = Rank(tmp_path, work, 2).results()
    assert (value, type(step)) == (6, solver_of_mine.steps.Step)


def test_a_package_with_a_compiled_module_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    package, compiled = ModuleType("compiled_of_mine"), ModuleType("compiled_of_mine.core")
    package.__file__, compiled.__file__ = "/opt/compiled_of_mine/__init__.py", "/opt/compiled_of_mine/core.abi3.so"
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, compiled.__name__, compiled)
    package.lock = threading.Lock()  # type: ignore[attr-defined] # which a pickle by value would meet

    assert FunctionCall(lambda: package).files.content["function.pkl"].count(b"compiled_of_mine") == 1


@pytest.mark.parametrize("is_inside", [True, False], ids=["which the function imports", "which its caller has imported"])
def test_a_package_that_the_image_lacks_is_named(tmp_path: Path, *, is_inside: bool) -> None:
    def imports() -> Any:
        import yaml.nodes  # noqa: PLC0415

        return yaml.nodes

    def uses() -> Any:
        return yaml.dump(1)

    with pytest.raises(JobFailed, match=r"No module named 'yaml'\. The image must have all that the function imports") as caught:
        Rank(tmp_path, imports if is_inside else uses).results()
    assert ("Traceback" in str(caught.value)) == is_inside, "where it is imported helps only in the function"


def test_a_result_that_cannot_be_pickled_costs_no_other_one(tmp_path: Path) -> None:
    def work() -> Any:
        return (number for number in range(3))

    with pytest.raises(JobFailed, match=r"rank 0 raised:\nits result cannot be pickled: TypeError: cannot pickle 'generator' object$"):
        Rank(tmp_path, work).results()


MPI4PY = "class rc:\n    initialize = finalize = True\n"
STARTS = "from mpi4py import rc\nassert not rc.initialize, 'MPI starts outside of mpirun'\n"
"""What `import mpi4py.MPI` does."""


class Image(NamedTuple):
    """What an image has, and what its launcher then prints."""

    id: str
    prints: str
    has_python: bool = True
    mpi: str | None = STARTS
    version: tuple[int, int] = sys.version_info[:2]


IMAGES = [
    Image("all that is needed", "computes"),
    Image("no Python", "mpiop-image: it has no python3 in its PATH: use an image with Python and mpi4py", has_python=False),
    Image("no mpi4py", r"mpiop-image: its python3 \(.*\) cannot import mpi4py: No module named 'mpi4py': use .*", mpi=None),
    Image("no MPI library", "mpiop-image: .* cannot import mpi4py: no libmpi.so: use .*", mpi="raise RuntimeError('no\\n libmpi.so')"),
    Image(
        "another Python",
        r"mpiop-image: it has Python {}\.{}, and the function was sent by 3\.6: both must be the same".format(*sys.version_info[:2]),
        version=(3, 6),
    ),
]


@pytest.mark.parametrize("image", IMAGES, ids=[image.id for image in IMAGES])
def test_an_image_is_checked_before_the_ranks_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: Image) -> None:
    with monkeypatch.context() as caller:
        caller.setattr(sys, "version_info", (*image.version, 0))
        call = FunctionCall(print)
    commands = {"mpirun": "echo computes"} | ({"python3": f'exec {sys.executable} -S "$@"'} if image.has_python else {})
    modules = {} if image.mpi is None else {"mpi4py/__init__.py": MPI4PY, "mpi4py/MPI.py": image.mpi}
    files = {f"bin/{name}": f"#!/bin/sh\n{text}\n" for name, text in commands.items()} | modules
    for name, content in {**call.files.content, **{name: text.encode() for name, text in files.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    job = MPI(api=FakeApi(), image="i").submit_call(call).raw
    started = container(job)
    words = [word.replace("$$", "$").replace("/upload", str(tmp_path)) for word in [*started["command"], *started["args"]]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": str(tmp_path / "bin")}, timeout=60)
    assert re.fullmatch(image.prints, (done.stdout + done.stderr).strip())
    assert done.returncode == (0 if image.prints == "computes" else 1)
