"""The examples that people start from, as their first lines describe."""

import base64
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.applications import from_manifest, missing_lines
from e2e.clusters import ROOT
from e2e.commands import ended
from e2e.kubectl import Kubectl
from e2e.plugin import Tool, new_tool
from e2e.shell import Shell
from fakes.ranks import Trap
from mpiop.client import MPI, JobFailed
from mpiop.kube.resources import MPIJOBS

IMAGE = "mpiop.invalid/mpi4py:openmpi"
IMAGES = ("agent", "mpi4py", "devel")
DEBIANS_PYTHON = (3, 11)
RUN_CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    shell.run_cell(cell).raise_error()
"""


@pytest.fixture(scope="module")
def tool(images: None, module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    assert images is None
    return new_tool(module_namespace, tmp_path_factory.mktemp("examples"))


@pytest.mark.usefixtures("images")
def test_programs_run_from_their_folders_and_one_in_c_is_compiled_where_it_runs(namespace: Kubectl, tmp_path: Path) -> None:
    shell = Shell(new_tool(namespace, tmp_path).environment, ROOT)
    lines = shell.follow("docs/kubectl-mpi.md", "Run", timeout_seconds=240).splitlines()
    # mpirun passes the lines of several hosts on as they come.
    said = sorted(line.partition(" on ")[0] for line in lines)
    assert said == ["pi is approximately 3.141592653590", *(f"rank {rank} of 4" for rank in range(4)), "the ranks 0 to 3 add up to 6"]


@pytest.mark.usefixtures("images")
def test_latency_and_bandwidth_are_printed_by_the_command_and_by_the_manifest(namespace: Kubectl, tmp_path: Path) -> None:
    shell = Shell(new_tool(namespace, tmp_path).environment, ROOT)
    for output in (shell.follow("docs/examples.md", "Latency and bandwidth", timeout_seconds=240), from_manifest(shell, "latency")):
        assert missing_lines("latency", output) == [], output


def test_a_full_dev_shm_is_explained(tool: Tool) -> None:
    fill = "import mmap; f = open('/dev/shm/x', 'w+b'); f.truncate(100 << 20); mmap.mmap(f.fileno(), 0).write(bytes(100 << 20))"
    done = tool.attempt("run", "--image", IMAGE, "--name", "full", "--", "python3", "-c", fill)
    assert done.returncode == 135
    for text in (done.stderr, tool.run("why", "full")):
        assert "signal 7 (Bus error) ended the program on rank 0, full-worker-0. Often /dev/shm is too small: it has 64 MiB" in text
    tool.run("run", "--image", IMAGE, "--shm", "256Mi", "--rm", "--", "python3", "-c", fill)
    tool.run("delete", "full", "--yes")


@pytest.mark.skipif(sys.version_info[:2] != DEBIANS_PYTHON, reason="a function only runs in an image with the same minor version of Python")
def test_a_function_runs_on_every_rank_whatever_it_prints(tool: Tool, tmp_path: Path) -> None:
    environment = {**os.environ, **tool.environment, "PYTHONPATH": "src"}
    done = ended([sys.executable, "examples/mpi4py/functions.py"], environment, folder=ROOT)
    assert (done.returncode, done.stdout) == (0, "pi is approximately 3.141592653590, of 4 parts\n"), done.stderr
    tool.here.until(MPIJOBS, lambda jobs: not jobs)

    def work(trap: str) -> bytes:
        print(trap)  # noqa: T201 - a line as results had them once
        subprocess.Popen("for i in $(seq 9999); do echo mpiop-result: $i; done", shell=True)  # noqa: S602 - while results are written
        return os.urandom(100_000)

    trap = base64.b64encode(pickle.dumps(Trap(tmp_path / "trap"))).decode()
    results = MPI(kubeconfig=tool.environment["KUBECONFIG"], image=IMAGE).run(work, f"mpiop-result:{trap}", ranks=3, is_tagged=True)
    assert list(map(len, results)) == [100_000] * 3
    assert not (tmp_path / "trap").exists()


@pytest.mark.skipif(sys.version_info[:2] != DEBIANS_PYTHON, reason="a function only runs in an image with the same minor version of Python")
def test_the_cells_of_the_notebook_print_what_it_shows(tool: Tool, tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "examples/mpi4py/notebook.ipynb").read_text("utf-8"))
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    environment = {**os.environ, **tool.environment, "PYTHONPATH": str(ROOT / "src"), "IPYTHONDIR": str(tmp_path)}
    sources = json.dumps(["".join(each["source"]) for each in cells])
    done = ended([sys.executable, "-c", RUN_CELLS], environment, stdin=sources, timeout_seconds=180)
    assert done.stdout == "".join(line for each in cells for output in each["outputs"] for line in output["text"]), done.stderr


def test_an_error_on_a_rank_has_its_traceback(tool: Tool) -> None:
    def fail() -> None:
        from mpi4py.MPI import COMM_WORLD  # type: ignore[import-not-found]  # noqa: PLC0415 - of the image

        if COMM_WORLD.rank == 1:
            raise ValueError("no input on this rank")

    with pytest.raises(JobFailed) as caught:
        MPI(kubeconfig=tool.environment["KUBECONFIG"], image=IMAGE).run(fail, ranks=2)
    if sys.version_info[:2] == DEBIANS_PYTHON:
        assert "rank 1 raised:\nTraceback" in str(caught.value)
        assert "no input on this rank" in str(caught.value)
    else:
        assert "UnsuitableImage: the image cannot run the function: it has Python 3.11" in str(caught.value)


class Share:
    """A class of the caller's, which no image has."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.part = rank / ranks


@pytest.mark.skipif(sys.version_info[:2] != DEBIANS_PYTHON, reason="a function only runs in an image with the same minor version of Python")
def test_instances_of_the_callers_classes_come_back(tool: Tool) -> None:
    def share(*, of: int) -> Share:
        from mpi4py.MPI import COMM_WORLD  # noqa: PLC0415 - of the image

        return Share(COMM_WORLD.rank, of)

    shares = MPI(kubeconfig=tool.environment["KUBECONFIG"], image=IMAGE).run(share, kwargs={"of": 2}, ranks=2)
    assert [(type(each) is Share, each.part) for each in shares] == [(True, 0.0), (True, 0.5)]


def test_an_image_without_python_is_named_before_the_ranks_start(tool: Tool) -> None:
    with pytest.raises(JobFailed, match=r"UnsuitableImage: the image cannot run the function: it has no python3 in its PATH: .*mpi4py$"):
        MPI(kubeconfig=tool.environment["KUBECONFIG"], image="mpiop.invalid/mpi-devel:openmpi").run(print, ranks=2)
    tool.here.until(MPIJOBS, lambda jobs: not jobs)


def test_a_failed_job_ends_with_its_log_after_it_is_deleted(tool: Tool) -> None:
    mpi = MPI(kubeconfig=tool.environment["KUBECONFIG"], image=IMAGE)
    with (
        pytest.raises(JobFailed, match=r"(?s)The end of its log:\n.*no input here") as caught,
        mpi.job("sh -c 'echo no input here; exit 3'") as job,
    ):
        job.wait(timeout=120)
    assert caught.value.code == 3
