"""What the operator offers: who may read it, and what `kubectl mpi` makes of it."""

import json
from pathlib import Path

import pytest
import yaml

from e2e.kubectl import Kubectl
from e2e.plugin import Tool, new_tool
from mpiop import __version__
from mpiop.api.capabilities import NAME
from mpiop.kube.resources import CONFIG_MAPS

IMAGE = "mpiop.invalid/mpi-pi:plain-openmpi"
IMAGES = ("agent", "plain-openmpi")
JANE = ("--as=jane", "--as-group=system:authenticated")
NOBODY = ("--as=system:anonymous", "--as-group=system:unauthenticated")
OFFER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"ssh-auto": "Injected"}}


@pytest.fixture
def tool(images: None, namespace: Kubectl, tmp_path: Path) -> Tool:
    """The plug-in in a namespace where injected ssh is offered, as by an operator of its own."""
    assert images is None
    namespace.apply(OFFER)
    return new_tool(namespace, tmp_path)


def test_every_authenticated_user_may_read_what_the_operator_offers_and_nothing_else(namespace: Kubectl) -> None:
    operators = namespace.within("mpi-operator")
    operators.until_one(CONFIG_MAPS, NAME, lambda found: "data" in found)
    found = json.loads(operators.run("get", "configmap", NAME, "-o", "json", *JANE))
    assert found["data"] == {"version": __version__, "ssh-modes": "Image Injected", "ssh-auto": "Image"}
    assert "forbidden" in operators.attempt("get", "configmap", NAME, *NOBODY).stderr
    for verb, resource in (
        ("list", "configmaps"),
        ("watch", f"configmap/{NAME}"),
        ("patch", f"configmap/{NAME}"),
        ("get", "configmap/kube-root-ca.crt"),
    ):
        assert operators.attempt("auth", "can-i", verb, resource, *JANE).stdout.strip() == "no", (verb, resource)


@pytest.mark.parametrize("user", [(), ("--user", "1000")], ids=["root", "another user"])
def test_a_program_runs_in_an_image_without_ssh_if_the_operator_offers_it(user: tuple[str, ...], tool: Tool) -> None:
    done = tool.attempt("run", "--image", IMAGE, "-n", "2", "--name", "hosts", *user, "--", "hostname")
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["hosts-worker-0", "hosts-worker-1"]), done.stderr


@pytest.mark.parametrize("script", ["srun hostname\n", "name=$(date +%s)\nsrun hostname\n"], ids=["one line", "whole"])
def test_a_slurm_script_runs_in_an_image_without_ssh_if_the_operator_offers_it(script: str, tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "job.sbatch"
    file.write_text(f"#SBATCH --job-name=hosts --ntasks=2\n{script}", encoding="utf-8")
    job = tool.run("convert", str(file), "--image", IMAGE, "--cpu", "100m")
    assert yaml.safe_load(job)["metadata"]["annotations"]["mpiop.kubeflow.org/ssh"] == "Injected"
    done = tool.attempt("submit", "--follow", "-", stdin=job)
    assert (done.returncode, sorted(done.stdout.splitlines()[-2:])) == (0, ["hosts-worker-0", "hosts-worker-1"]), done.stderr
