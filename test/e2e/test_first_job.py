"""The page about a first job, as a newcomer reads it: each command and each transcript, with stand-ins for docker and the registry."""

from pathlib import Path

import pytest
import yaml

from e2e.clusters import IS_CURRENT
from e2e.conftest import NAME
from e2e.jobs import pi_job, state, until_true
from e2e.kubectl import Kubectl
from e2e.plugin import new_tool
from e2e.pushing import with_pushing
from e2e.shell import Shell, blocks_below
from mpiop.kube.resources import MPIJOBS

PAGE = "docs/first-job.md"
SOLVER = '#!/bin/sh\necho "rank $OMPI_COMM_WORLD_RANK reads $1"\n'
SMALL = {"--cpu 4 --memory 8Gi": "--cpu 10m --memory 64Mi"}
"""What the node has."""


@pytest.fixture
def shell(namespace: Kubectl, tmp_path: Path) -> Shell:
    """The shell of a newcomer, in an empty folder."""
    if IS_CURRENT:
        pytest.skip("the registry is a stand-in on the node of an embedded cluster")
    folder = tmp_path / "work"
    folder.mkdir()
    return Shell(with_pushing(new_tool(namespace, tmp_path).environment, tmp_path / "bin", NAME), folder)


def test_a_newcomer_has_access_and_runs_a_command(shell: Shell, namespace: Kubectl) -> None:
    checked = shell.follow(PAGE, "1. Check your access", {"TEAM": namespace.namespace}).splitlines()[1:]
    assert [line for line in checked if not line.startswith("ok ")] == []
    shell.replay(PAGE, "2. Run a command")


def test_a_job_that_waits_is_explained(shell: Shell, namespace: Kubectl) -> None:
    shell.run("kubectl mpi run --detach --name waits -n 4 --slots 2 --image registry.example.com/solver:1 -- ./solver")
    namespace.until_one(MPIJOBS, "waits", lambda job: state(job) == "ImagePull")
    shell.replay(PAGE, "3. If it waits")


def test_a_program_of_ones_own_runs_in_an_image_of_ones_own(shell: Shell) -> None:
    (shell.folder / "Dockerfile").write_text(blocks_below(PAGE, "Dockerfile")["4. Run your own program"], encoding="utf-8")
    (shell.folder / "solver").write_text(SOLVER, encoding="utf-8")
    printed = shell.follow(PAGE, "4. Run your own program", SMALL, timeout_seconds=240).splitlines()
    assert sorted(line for line in printed if line.startswith("rank ")) == sorted(f"rank {rank} reads input.dat" for rank in range(16))


def test_results_are_read_and_the_job_is_deleted(shell: Shell, namespace: Kubectl) -> None:
    program = "sh -c 'echo a result; mkdir -p /data; echo 42 >/data/result.h5; exec sleep 600'"
    shell.run(f"kubectl mpi run --detach --name solver -n 1 --image mpiop.invalid/mpi-pi:openmpi -- {program}")
    until_true(namespace, "solver", "Running")
    shell.run("until kubectl mpi logs solver | grep -q 'a result'; do :; done")
    own = {"JOB:/": "solver:/", "logs JOB": "logs solver", "delete JOB": "delete solver --yes", " .\n": " . --worker 0\n"}
    assert "a result" in shell.follow(PAGE, "5. Read results and clean up", own)
    assert (shell.folder / "result.h5").read_text(encoding="utf-8") == "42\n"
    assert namespace.read_all(MPIJOBS) == []


def test_kubectl_alone_is_enough(shell: Shell) -> None:
    (shell.folder / "job.yaml").write_text(yaml.safe_dump(pi_job("pi")), encoding="utf-8")
    # Who types takes longer than a script.
    slowly = {"kubectl get": "kubectl wait --for=condition=Running mpijob/pi --timeout=60s; kubectl get"}
    printed = shell.follow(PAGE, "Without kubectl mpi", {"NAME-": "pi-", "mpijob NAME": "mpijob pi", **slowly})
    assert "pi is approximately 3.14" in printed
