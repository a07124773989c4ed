"""The archive of kubectl-mpi as users get it: krew installs it, and it runs without Python."""

import json
import os
import re
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

import mpiop
from e2e.clusters import ROOT
from e2e.neighbours import build_program

MOST_BYTES = 30_000_000
MOST_SECONDS = 0.2
CREDENTIAL = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release of the client alone."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    command = [ROOT / "hack/release", mpiop.__version__, "--client", f"--output={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def archive(released: Path) -> Path:
    [found] = released.glob("kubectl-mpi_*.tar.gz")
    return found


@pytest.fixture(scope="module")
def installed(released: Path, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, where krew has installed it."""
    root = tmp_path_factory.mktemp("krew")
    command = [build_program("krew"), "install", f"--manifest={released / 'kubectl-mpi.krew.yaml'}", f"--archive={archive}"]
    done = subprocess.run(command, env={**os.environ, "KREW_ROOT": str(root)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Installed plugin: mpi" in done.stderr
    return root / "bin/kubectl-mpi"


def run(program: Path, arguments: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run the program where no Python is in the PATH."""
    environment = {"HOME": str(home), "PATH": str(home)}
    return subprocess.run([program, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_it_runs_without_python(installed: Path, tmp_path: Path) -> None:
    shown = run(installed, ["--version"], tmp_path)
    assert (shown.returncode, mpiop.__version__ in shown.stdout) == (0, True), shown.stderr
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --ntasks=2\nfor i in 1 2; do srun ./a $i; done\n")
    converted = run(installed, ["convert", "--image=a", str(script)], tmp_path)
    assert (converted.returncode, "kind: MPIJob" in converted.stdout) == (0, True), converted.stderr


def test_each_verb_is_in_it(installed: Path, tmp_path: Path) -> None:
    verbs = re.findall(r"^  ([a-z]+)  ", run(installed, ["--help"], tmp_path).stdout.partition("Verbs:")[2], re.MULTILINE)
    assert len(verbs) > 10
    failed = {verb: shown.stderr for verb in verbs if (shown := run(installed, [verb, "--help"], tmp_path)).returncode != 0}
    assert failed == {}


def test_it_is_small_and_starts_quickly(installed: Path, archive: Path, tmp_path: Path) -> None:
    assert archive.stat().st_size <= MOST_BYTES
    assert min(seconds_of_help(installed, tmp_path) for _ in range(5)) <= MOST_SECONDS


def seconds_of_help(program: Path, home: Path) -> float:
    """Return the processor time of --help: it does not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run(program, ["--help"], home).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_it_completes_verbs_under_the_name_that_kubectl_looks_for(installed: Path, tmp_path: Path) -> None:
    link = tmp_path / "kubectl_complete-mpi"
    link.symlink_to(installed)
    assert "run\t" in run(link, ["r"], tmp_path).stdout


def test_a_credential_plug_in_loads_its_own_libraries(installed: Path, tmp_path: Path) -> None:
    plug_in = tmp_path / "plug-in"
    plug_in.write_text(f"#!/bin/sh\nexport -p >{tmp_path}/variables\necho '{CREDENTIAL}'\n")
    plug_in.chmod(0o755)
    execution = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plug_in), "interactiveMode": "Never"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"exec": execution}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    done = run(installed, ["list", "--kubeconfig", str(tmp_path / "config")], tmp_path)
    assert "the API server does not answer" in done.stderr
    variables = (tmp_path / "variables").read_text()
    assert "HOME" in variables
    assert "LD_LIBRARY_PATH" not in variables
    assert "_PYI_" not in variables


def test_the_sbom_names_its_packages(released: Path) -> None:
    components = json.loads((released / "kubectl-mpi.cdx.json").read_text())["components"]
    names = {each["name"].lower() for each in components if each.get("purl", "").startswith("pkg:pypi/")}
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/plugin.txt").read_text(), re.MULTILINE))
    assert {"click", "mpiop-client", "pyyaml", "urllib3"} <= names <= locked | {"mpiop-client"}


def test_the_sums_name_all_files(released: Path) -> None:
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    named = {line.split("  ")[1] for line in (released / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in released.iterdir()} - {"SHA256SUMS"}


def test_the_manifest_names_the_architecture_of_the_archive_alone(released: Path, archive: Path) -> None:
    [platform] = yaml.safe_load((released / "kubectl-mpi.krew.yaml").read_text())["spec"]["platforms"]
    assert archive.name.endswith(f"_linux_{platform['selector']['matchLabels']['arch']}.tar.gz")
