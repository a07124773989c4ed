"""Allocations as jobs: suspended and resumed as by Kueue's preemption, and with a launcher that is a worker too."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from e2e.allocations import STUBBORN, Client, allocate, processes, until_only
from e2e.jobs import until_true
from e2e.kubectl import Kubectl
from e2e.libraries import IMPLEMENTATIONS, LIBRARIES, PLAIN_IMAGES, plain_image
from e2e.plugin import Tool, new_tool
from mpiop.kube.resources import PODS

IMAGES: Final = PLAIN_IMAGES
SAVES: Final = "trap 'echo saved; exit 0' USR1; echo begun; while :; do sleep 0.1; done"
CHECKPOINT: Final = {"mpiop.kubeflow.org/checkpoint-signal": "SIGUSR1", "mpiop.kubeflow.org/checkpoint-grace": "60s"}


@pytest.fixture(scope="module")
def tool(module_namespace: Kubectl, images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    assert images is None
    made = new_tool(module_namespace, tmp_path_factory.mktemp("allocation-jobs"))
    yield made
    made.here.run("delete", "mpijobs", "--all")


def allocate_plain(tool: Tool, name: str, library: str, *options: str) -> str:
    implementation = IMPLEMENTATIONS[library].lower()
    return allocate(tool, name, "--image", plain_image(library), "--mpi", implementation, "--ssh", "injected", *options)


def suspended_and_resumed(tool: Tool, name: str, step: Client) -> int:
    """Suspend an allocation while a step runs, resume it, and return how the step ended."""
    tool.run("suspend", name, "--yes")
    code = step.end()
    tool.here.until(PODS, lambda pods: not [pod for pod in pods if pod["metadata"]["name"].startswith(f"{name}-")], timeout_seconds=120)
    refused = tool.attempt("step", name, "--", "hostname")
    assert (refused.returncode, refused.stderr.startswith(f"error: allocation {name} does not run now")) == (1, True), refused.stderr
    tool.run("resume", name)
    until_true(tool.here, name, "Running", timeout_seconds=180)
    hosts = [f"{name}-worker-{index}" for index in range(2)]
    assert sorted(tool.run("step", name, "--no-wait", "--", "hostname").split()) == sorted(hosts * 2)
    return code


def test_ranks_save_their_work_before_a_suspension_and_a_resume_restores_the_allocation(tool: Tool, tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.write_text(json.dumps({"metadata": {"annotations": CHECKPOINT}}))
    name = allocate_plain(tool, "saved", "openmpi", "--patch", str(patch))
    step = Client(tool, name, "--", "sh", "-c", SAVES)
    step.until("begun\nbegun\nbegun\nbegun\n")
    assert suspended_and_resumed(tool, name, step) == 0, step.seen
    assert step.seen.count("saved") == 4
    tool.run("delete", name, "--yes")


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_launcher_that_is_a_worker_is_host_0(tool: Tool, library: str, tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.write_text(json.dumps({"spec": {"runLauncherAsWorker": True}}))
    name = allocate_plain(tool, f"launches-{library}", library, "--patch", str(patch))
    before = processes(tool.here, name)
    places = Counter(tool.run("step", name, "-n", "5", "--", "hostname").split())
    workers = [f"{name}-worker-{index}" for index in range(2)]
    assert ([places[worker] for worker in workers], places.total()) == ([2, 1], 5), places
    assert set(tool.run("step", name, "--hosts", "1", "--", "hostname").split()) == {workers[0]}
    step = Client(tool, name, "-n", "6", "--", "sh", "-c", STUBBORN)
    step.until("begun")
    step.end(signal.SIGKILL)
    await until_only(tool.here, name, before)
    assert len(tool.run("step", name, "-n", "6", "--no-wait", "--", "hostname").split()) == 6, "it lost a slot"
    tool.run("delete", name, "--yes")
