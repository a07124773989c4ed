"""The session of a Slurm user (docs/slurm.md): each command of the table, in its order, on a real cluster."""

import re
import subprocess
from pathlib import Path

import pytest

from e2e.jobs import launcher_pod, until_true
from e2e.kubectl import Kubectl
from e2e.plugin import Tool, new_tool
from mpiop.kube.resources import MPIJOBS

IMAGES = ("agent",)
SCRIPT = """#!/bin/bash
#SBATCH --job-name=melt
#SBATCH --nodes=2 --ntasks-per-node=2
#SBATCH --time=20
#SBATCH --signal=USR1@60
echo "step 1 of $SLURM_NTASKS tasks"
srun -l sh -c 'echo "$SLURM_PROCID on $(hostname)"'
srun sleep 900
"""
ARRAY = """#!/bin/bash
#SBATCH --job-name=cases --array=1-5:2%2
srun sh -c 'echo "case $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"'
"""
PREPARE = """#!/bin/bash
#SBATCH --job-name=prep
srun sh -c 'until test -e /home/mpiuser/go; do sleep 0.1; done'
"""
SOLVE = """#!/bin/bash
#SBATCH --job-name=solve --dependency=afterok:350
srun hostname
"""


@pytest.fixture(scope="module")
def tool(images: None, module_namespace: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    assert images is None
    made = new_tool(module_namespace, tmp_path_factory.mktemp("slurm"))
    made.environment["MPIOP_IMAGE"] = "mpiop.invalid/mpi-pi:openmpi"
    return made


def test_twelve_tasks_of_a_session(tool: Tool, tmp_path: Path) -> None:
    script, copied = tmp_path / "job.sbatch", tmp_path / "in.txt"
    script.write_text(SCRIPT)
    copied.write_text("run 100\n")
    inside = "/home/mpiuser/in.txt"
    assert tool.run("nodes").startswith("NODE")
    assert len(tool.run("run", "-n", "2", "--name", "hosts", "hostname").split()) == 2
    name = re.fullmatch(r"job (melt-\w+) created\n", tool.run("submit", "--cpu", "100m", str(script)))[1]  # type: ignore[index]
    until_true(tool.here, name, "Running")
    assert re.search(rf"^{name} +Running +2/2", tool.run("list"), re.MULTILINE)
    assert "RANKS" in tool.run("describe", name)
    assert tool.run("why", name) == f"Job {name}: running: 2/2 workers.\n"
    with tool.here.following(launcher_pod(tool.here, name)) as lines:
        found = [next(lines).rstrip("\n") for _ in range(5)]
    assert (found[0], sorted(found[1:])) == ("step 1 of 4 tasks", [f"{rank}: {rank} on {name}-worker-{rank // 2}" for rank in range(4)])
    tool.run("cp", str(copied), f"{name}:{inside}", "--worker", "1")
    assert tool.run("exec", name, "--worker", "1", "--", "cat", inside) == "run 100\n"
    tool.run("restart", name, "--yes")
    until_true(tool.here, name, "Running")
    tool.run("delete", name, "--yes")
    tool.here.until(MPIJOBS, lambda jobs: all(job["metadata"]["name"] != name for job in jobs))
    assert re.search(r"^hosts +Succeeded +0", tool.run("history"), re.MULTILINE)


def test_an_array_with_a_limit_runs_to_its_end(tool: Tool, tmp_path: Path) -> None:
    script = tmp_path / "array.sbatch"
    script.write_text(ARRAY)
    done = tool.attempt("submit", "--cpu", "100m", str(script))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "3 of 3 jobs succeeded")
    names = sorted(line.partition(":")[0] for line in done.stdout.splitlines())
    assert [tool.run("logs", name) for name in names] == [f"case {index} of 3\n" for index in (1, 3, 5)]


def test_a_job_runs_after_another_and_never_after_one_that_failed(tool: Tool, tmp_path: Path) -> None:
    prepare, solve = tmp_path / "prep.sbatch", tmp_path / "solve.sbatch"
    prepare.write_text(PREPARE)
    solve.write_text(SOLVE)
    first = tool.run("submit", "--cpu", "100m", str(prepare), "-o", "name").strip()
    until_true(tool.here, first.rpartition("/")[2], "Running")
    command = ["kubectl", "mpi", "submit", "--cpu", "100m", "--strict", "--after", first, "--follow", str(solve)]
    with subprocess.Popen(command, env=tool.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert next(line for line in waiting.stderr if line.startswith("waits")) == f"waits for {first.rpartition('/')[2]} (Running)\n"
        assert not [job for job in tool.run("list", "-o", "name").split() if "/solve-" in job]
        tool.run("exec", first, "--worker", "0", "--", "touch", "/home/mpiuser/go")
        out, err = waiting.communicate(timeout=120)
    second = re.search(r"^job (\S+)$", err, re.MULTILINE)[1]  # type: ignore[index]
    assert (waiting.returncode, out) == (0, f"job {second} created\n{second}-worker-0\n"), err
    ended = tool.here.run("get", first, "-o", "jsonpath={.status.completionTime}")
    assert ended <= tool.here.run("get", "mpijob", second, "-o", "jsonpath={.metadata.creationTimestamp}")
    tool.run("run", "--name", "bad", "--cpu", "100m", "--detach", "false")
    done = tool.attempt("run", "--name", "never", "--after", "bad", "hostname")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("error: nothing was created, because job bad failed: ")
    assert tool.here.run("get", "mpijob", "never", "--ignore-not-found") == ""
