"""`%%mpi` in IPython; a script stands in for kubectl and runs one rank, whose module `mpi4py` only runs the cell."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from fakes.client_api import FakeApi, allocation, pod, stored
from fakes.programs import executable
from mpiop.client import MPI, ClientError, InvalidError, JobFailed, NotFoundError
from mpiop.client.allocations import Allocation

pytestmark = pytest.mark.real_time
KUBECTL = """#!/bin/sh
folder=${0%/*}
echo "$*" >>"$folder/words"
while [ "$1" != --token ]; do shift; done
report="mpiop:$2:"
while [ "$1" != -- ]; do shift; done
shift 2
[ ! -e "$folder/waits" ] || echo "${report}waits 2 slots are wanted" >&2
echo "${report}runs 3 0:1" >&2
PYTHONPATH=$folder INTERPRETER -S "$@"
echo "${report}ended $? " >&2
"""
Cell = Callable[[str, str], None]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py/__init__.py").touch()
    (tmp_path / "mpi4py/__main__.py").write_text("import sys\nexec(compile(sys.argv[2], '<string>', 'exec'), {})\n")
    executable(tmp_path / "kubectl", KUBECTL.replace("INTERPRETER", sys.executable))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    api = FakeApi(allocation("dev", state="Running"))
    api.all_pods = [pod("dev-launcher-x", role="launcher"), pod("dev-worker-0")]
    monkeypatch.setattr("mpiop.client.magic.MPI", partial(MPI, api=api))
    return api


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.run_line_magic("load_ext", "mpiop.client.magic")
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def cell(shell: InteractiveShell) -> Cell:
    return lambda line, text: shell.run_cell(f"%%mpi {line}\n{text}").raise_error()


def test_a_cell_runs_on_the_ranks_and_its_lines_have_their_rank(
    api: FakeApi, cell: Cell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell("dev -n 2", "import os\nprint('[1,1]<stdout>:a\\n[1,0]<stdout>: b\\nmpirun')\n")
    assert capsys.readouterr().out == "1: a\n0:  b\nmpirun\n"
    assert " -n 2 --tag -- python3 -u -m mpi4py -c import os\n" in (tmp_path / "words").read_text()
    assert api.stored


def test_a_rank_that_fails_shows_its_traceback_once(api: FakeApi, cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(JobFailed, match=r"^job dev, step 3 failed: StepFailed: its program ended with exit code 1$"):
        cell("dev", "def work():\n    raise ValueError('no input')\nwork()\n")
    shown = capsys.readouterr().out.partition("JobFailed")[0]
    assert "line 2, in work" in shown
    assert "\nValueError: no input\n" in shown
    assert api.stored


@pytest.mark.usefixtures("api")
def test_a_cell_sees_nothing_of_the_notebook(cell: Cell, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("number = 1")
    with pytest.raises(JobFailed):
        cell("dev", "print(number)")
    assert "NameError: name 'number' is not defined" in capsys.readouterr().out


def test_lines_show_what_a_cell_waits_for(api: FakeApi, cell: Cell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api.stored["dev"] = allocation("dev")
    starts = [lambda: None] * 3 + [lambda: api.stored.update(dev=allocation("dev", state="Running"))]
    api.steps = starts
    (tmp_path / "waits").touch()
    cell("dev", "print('ran')")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("created: ")
    lines.remove("ran")  # whether a program's first line comes before or after what its step reports is chance
    assert lines[-3:] == ["running: 1/2 workers", "waits: 2 slots are wanted", "waited for slots"]


def test_an_allocation_is_a_variable_or_a_name_or_the_only_one(
    api: FakeApi, cell: Cell, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidError, match=r"^no variable is an allocation: write the name of one after %%mpi"):
        cell("", "print(1)")
    capsys.readouterr()
    shell.push({"mine": Allocation(MPI(api=api).get("dev")), "dev": 1})
    shell.push({"same": shell.user_ns["mine"], "_": Allocation(MPI(api=api).get("dev"))})
    for line in ("", "-n 1", "mine", "-n 1 same", "dev"):
        cell(line, "print('ran')")
        assert capsys.readouterr().out == "ran\n"
    shell.push({"other": Allocation(MPI(api=api).get("dev"))})
    with pytest.raises(InvalidError, match=r"^several variables are allocations; write one of them after %%mpi: mine, other, same$"):
        cell("", "print(1)")


WRONG = [
    ("a b", InvalidError, "%%mpi a b: write %%mpi [ALLOCATION] [-n RANKS]"),
    ("-n x", InvalidError, "%%mpi -n x: write %%mpi [ALLOCATION] [-n RANKS]"),
    ("-n", InvalidError, "%%mpi -n: write %%mpi [ALLOCATION] [-n RANKS]: option -n requires argument"),
    ("-x", InvalidError, "%%mpi -x: write %%mpi [ALLOCATION] [-n RANKS]: option -x not recognized"),
    ("'", InvalidError, "%%mpi ': write %%mpi [ALLOCATION] [-n RANKS]: No closing quotation"),
    ("dev -n 0", InvalidError, "ranks is 0: it must be at least 1"),
    ("none", NotFoundError, "job team/none: not found"),
    ("pi", InvalidError, "job pi is not an allocation: kubectl mpi alloc makes one"),
    ("over", ClientError, "allocation over has ended (Succeeded)"),
]


@pytest.mark.parametrize(("line", "error", "message"), WRONG, ids=[line for line, _, _ in WRONG])
def test_what_cannot_run_is_an_error(api: FakeApi, cell: Cell, line: str, error: type[ClientError], message: str) -> None:
    api.stored |= {"pi": stored("pi", state="Running"), "over": allocation("over", state="Succeeded")}
    with pytest.raises(error) as raised:
        cell(line, "print(1)")
    assert str(raised.value) == message


@pytest.mark.usefixtures("api")
def test_a_cell_that_is_too_long_is_refused(cell: Cell) -> None:
    with pytest.raises(InvalidError, match=r"^the cell has more than 100,000 bytes"):
        cell("dev", f"'{'x' * 100_000}'")
