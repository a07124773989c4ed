"""`kubectl mpi top` by the real metrics-server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.clusters import IS_CURRENT, output_shown
from e2e.conftest import NAME
from e2e.jobs import until_true
from e2e.kubectl import Kubectl
from e2e.neighbours import load_program, module_folder
from e2e.plugin import Tool, new_tool
from e2e.shell import Shell
from e2e.waiting import wait_until

MODULE = "sigs.k8s.io/metrics-server"
IMAGE = "registry.k8s.io/metrics-server/metrics-server:stand-in"
BUSY = "if [ $OMPI_COMM_WORLD_RANK = 2 ]; then exec sleep 600; fi; while :; do :; done"


@pytest.fixture(scope="module")
def metrics(cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[None]:
    """metrics-server by its own manifests."""
    if IS_CURRENT:
        pytest.skip("the user's own cluster gets no metrics-server")
    objects = list(yaml.safe_load_all(cluster.run("kustomize", str(module_folder("metrics-server", MODULE) / "manifests" / "base"))))
    [container] = [obj["spec"]["template"]["spec"]["containers"][0] for obj in objects if obj["kind"] == "Deployment"]
    container["image"] = IMAGE
    container["args"] += ["--kubelet-insecure-tls"]
    with output_shown(request):
        load_program(NAME, "metrics-server", "/metrics-server", IMAGE, tmp_path_factory.mktemp("metrics") / "metrics-server.tar")
    cluster.apply(*objects)
    cluster.within("kube-system").run("rollout", "status", "deployment/metrics-server", "--timeout=100s")
    cluster.run("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=60s")
    yield
    cluster.run("delete", "-f", "-", "--wait=false", stdin=yaml.safe_dump_all(objects))


@pytest.fixture
def tool(namespace: Kubectl, tmp_path: Path) -> Tool:
    return new_tool(namespace, tmp_path)


def test_without_metrics_it_says_what_to_install(tool: Tool) -> None:
    tool.run("run", "--image", "mpiop.invalid/mpi-pi:openmpi", "--name", "short", "--", "true")
    assert "install metrics-server" in tool.attempt("top", "short").stderr


@pytest.mark.usefixtures("metrics")
def test_the_worker_that_computes_less_than_the_others_is_marked(tool: Tool, tmp_path: Path) -> None:
    run = ("run", "-n", "3", "--cpu", "200m", "--image", "mpiop.invalid/mpi-pi:openmpi", "--name", "busy", "--detach")
    tool.run(*run, "--", "sh", "-c", BUSY)
    until_true(tool.here, "busy", "Running")

    def is_measured() -> bool:
        rows = [line.split() for line in tool.attempt("top", "busy").stdout.splitlines()]
        return [row[0] for row in rows if row[-1] == "behind"] == ["busy-worker-2"] and len(rows) == 5

    wait_until("all Pods are measured, and one lags behind", is_measured, timeout_seconds=90)
    Shell(tool.environment, tmp_path).replay("docs/kubectl-mpi.md", "CPU and memory")
    [header, *rows] = tool.run("top", "busy").splitlines()
    assert header.split() == ["POD", "CPU", "MEMORY"]
    assert rows[0].startswith("busy-launcher-")
