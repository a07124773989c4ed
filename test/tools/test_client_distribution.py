"""The distribution mpiop-client: its content, and that it works with nothing but its declared dependencies."""

import configparser
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from releasing import client
from releasing.errors import ReleaseError

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}


def config() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg")
    return read


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    client.build(ROOT, folder, ENVIRONMENT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [found] = built.glob("mpiop_client-*-py3-none-any.whl")
    return found


def modules_of(wheel: Path) -> set[str]:
    """Return the names of the modules of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        files = [Path(name) for name in archive.namelist() if name.endswith(".py")]
    return {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and, as links, the installed packages that it requires, directly or not."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, wheel], check=True)
    installed = Path(sysconfig.get_path("purelib"))
    [target] = folder.glob("lib/python*/site-packages")
    [distribution] = metadata.distributions(name="mpiop-client", path=[str(target)])
    parts = (file.parts for each in required(distribution).values() for file in each.files or [])
    for name in {first for first, *_ in parts} - {"..", "__pycache__"}:
        (target / name).symlink_to(installed / name)
    return folder


def required(distribution: metadata.Distribution) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that a distribution requires here, directly or not, by name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [distribution]
    while waiting:
        for line in waiting.pop().requires or []:
            requirement = Requirement(line)
            if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                found[requirement.name] = metadata.distribution(requirement.name)
                waiting.append(found[requirement.name])
    return found


def run(environment: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment, without the checkout in the module path."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(environment), "PYTHONDONTWRITEBYTECODE": "1"}
    program, *arguments = command
    return subprocess.run(
        [environment / "bin" / program, *arguments], env=variables, cwd=environment, capture_output=True, text=True, check=False
    )


def test_no_module_of_the_operator_is_inside(wheel: Path) -> None:
    forbidden = config()["importlinter:contract:6"]["forbidden_modules"].split()
    found = modules_of(wheel)
    assert [name for name in found for other in forbidden if f"{name}.".startswith(f"{other}.")] == []
    assert {name.split(".")[1] for name in found - {"mpiop"}} == {"api", "client", "clock", "kube", "kubectl"}


def test_all_files_of_client_and_plug_in_are_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    files = [file for name in ("client", "kubectl") for file in (source / "mpiop" / name).rglob("*") if file.suffix in {".py", ".sh"}]
    assert {str(file.relative_to(source)) for file in files} | {"mpiop/py.typed"} <= names


def test_the_wheel_of_the_sdist_has_the_same_files(built: Path, wheel: Path, tmp_path: Path) -> None:
    [sdist] = built.glob("mpiop_client-*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, sdist]
    subprocess.run(pip, check=True)
    [second] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(second) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_every_module_imports_with_the_declared_dependencies_alone(environment: Path, wheel: Path) -> None:
    names = sorted(modules_of(wheel))
    done = run(
        environment, "python", "-W", "error", "-c", "import importlib, sys; [importlib.import_module(n) for n in sys.argv[1:]]", *names
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_documented_import_and_the_command_work(environment: Path) -> None:
    assert run(environment, "python", "-c", "from mpiop.client import MPI").returncode == 0
    shown = run(environment, "kubectl-mpi", "--help")
    assert (shown.returncode, "Run MPI programs on Kubernetes" in shown.stdout) == (0, True)
    assert "run\t" in run(environment, "kubectl_complete-mpi", "r").stdout
    assert not (environment / "bin/mpiop").exists()


def test_slurm_scripts_are_converted(environment: Path) -> None:
    """The plug-in has its shell script with it."""
    script = environment / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --ntasks=2\nfor i in 1 2; do srun ./a $i; done\n")
    done = run(environment, "kubectl-mpi", "convert", "--image=a", str(script))
    assert (done.returncode, "kind: MPIJob" in done.stdout) == (0, True), done.stderr


def test_next_to_the_operator_s_distribution_it_refuses_to_run(environment: Path) -> None:
    """They have files in common: of two versions, pip would leave a mixture."""
    [target] = environment.glob("lib/python*/site-packages")
    other = target / "mpiop-9.9.9.dist-info"
    other.mkdir()
    try:
        for command in (("python", "-c", "import mpiop.client"), ("kubectl-mpi", "--help")):
            done = run(environment, *command)
            assert done.returncode == 1
            assert f"mpiop and mpiop-client are both installed in {target}" in done.stderr.splitlines()[-1]
            assert "pip uninstall --yes mpiop mpiop-client" in done.stderr
    finally:
        other.rmdir()
    assert run(environment, "kubectl-mpi", "--help").returncode == 0


def test_a_requirement_that_setup_cfg_lacks_is_named() -> None:
    changed = config()
    changed["options"]["install_requires"] = "\nkubernetes >=29\nPyYAML >=6\n"
    with pytest.raises(ReleaseError, match="install_requires lacks urllib3"):
        client.requirements(changed, {"urllib3", "yaml"})


MOST_BYTES: Final = 60_000_000


def test_its_environment_is_small_and_any_kubernetes_package_fits(environment: Path) -> None:
    """kfp, the Kubeflow SDK and Airflow's provider each require another range of `kubernetes`."""
    [target] = environment.glob("lib/python*/site-packages")
    [distribution] = metadata.distributions(name="mpiop-client", path=[str(target)])
    all_of_it = required(distribution)
    assert "kubernetes" not in all_of_it
    paths = [Path(str(file.locate())) for each in (distribution, *all_of_it.values()) for file in each.files or []]
    assert 1_000_000 < sum(path.stat().st_size for path in paths if path.is_file()) <= MOST_BYTES


def test_only_what_it_imports_is_required(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = "".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(".py"))
        [file] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        lines = re.findall(r"^Requires-Dist: (.*)$", archive.read(file).decode(), re.MULTILINE)
    names = {Requirement(line).name for line in lines}
    assert {"urllib3", "click", "PyYAML"} <= names
    modules = {"PyYAML": "yaml", "tree-sitter": "tree_sitter", "tree-sitter-bash": "tree_sitter_bash"}
    assert [name for name in names if not re.search(rf"^ *(import|from) {modules.get(name, name)}\b", text, re.MULTILINE)] == []
    assert names <= set(re.findall(r"^[\w-]+$", (ROOT / "requirements/plugin.in").read_text("utf-8"), re.MULTILINE))
