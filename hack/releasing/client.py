"""The distribution mpiop-client: the Python client and `kubectl mpi`, with the modules of mpiop that they import."""

import ast
import configparser
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from releasing.errors import ReleaseError

NAME: Final = "mpiop-client"
DESCRIPTION: Final = "Python client and kubectl plug-in for MPI jobs on Kubernetes: MPIJob kubeflow.org/v2beta1"
_PACKAGES: Final = ("mpiop.client.", "mpiop.kubectl.")
_LIBRARIES: Final = {"kubernetes": "kubernetes", "urllib3": "urllib3", "yaml": "PyYAML"}
"""Requirements of mpiop that the client may import, by the name of the module; those of the extra `tools` are all its own."""
_README: Final = Path(__file__).with_name("mpiop-client.md")
_BUILD_SDIST: Final = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def build(root: Path, output: Path, environment: Mapping[str, str]) -> None:
    """Write wheel and sdist into a folder.

    Args:
        root: The checkout; its .venv has setuptools.
        output: The folder.
        environment: Of the build; SOURCE_DATE_EPOCH sets the times of files in the wheel.

    Raises:
        ReleaseError: setup.cfg lacks a requirement of the client.
        CalledProcessError: setuptools failed, and has reported why.
    """
    with TemporaryDirectory() as folder:
        project = Path(folder)
        write_project(root, project)
        python, target = str(root / ".venv/bin/python"), str(output.resolve())
        pip = [python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
        for command in ([python, "-c", _BUILD_SDIST, target], [*pip, "--wheel-dir", target, "."]):
            subprocess.run(command, check=True, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def wheel_name(version: str) -> str:
    """Return the name of the wheel of a version."""
    return f"{NAME.replace('-', '_')}-{version}-py3-none-any.whl"


def write_project(root: Path, folder: Path) -> None:
    """Write the sources of the distribution into an empty folder, ready for setuptools.

    Raises:
        ReleaseError: setup.cfg lacks a requirement of the client.
    """
    source = root / "src"
    data = [*source.glob("mpiop/py.typed"), *source.glob("mpiop/client/*.sh"), *source.glob("mpiop/kubectl/*.sh")]
    sources = modules(source)
    for file in [*sources, *data]:
        target = folder / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copyfile(root / name, folder / name)
    shutil.copyfile(_README, folder / "README.md")
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg")
    imported = {name.partition(".")[0] for file in sources for name in _imported(file)}
    with (folder / "setup.cfg").open("w", encoding="utf-8") as stream:
        _configuration(config, imported).write(stream)


def _configuration(mpiop: configparser.ConfigParser, imported: Collection[str]) -> configparser.ConfigParser:
    """Return the setup.cfg of the client, made from that of mpiop: versions are bounded in one place."""
    made = configparser.ConfigParser()
    for section in ("metadata", "options", "options.packages.find", "options.package_data"):
        made[section] = dict(mpiop[section])
    made["metadata"].update({"name": NAME, "description": DESCRIPTION})
    made["options"]["install_requires"] = "\n" + "\n".join(requirements(mpiop, imported))
    scripts = mpiop["options.entry_points"]["console_scripts"].splitlines()
    made["options.entry_points"] = {"console_scripts": "\n".join(line for line in scripts if "= mpiop.kubectl." in line or not line)}
    return made


def requirements(mpiop: configparser.ConfigParser, imported: Collection[str]) -> list[str]:
    """Return what the client requires, in the words of mpiop's setup.cfg.

    Args:
        mpiop: That setup.cfg.
        imported: Names of the modules that the client imports.

    Raises:
        ReleaseError: One of the requirements is not there.
    """
    found = {line.split()[0]: line for line in mpiop["options"]["install_requires"].splitlines() if line}
    needed = [name for module, name in _LIBRARIES.items() if module in imported]
    missing = [name for name in needed if name not in found]
    if missing:
        raise ReleaseError(f"setup.cfg: install_requires lacks {', '.join(missing)}, which {NAME} needs")
    return [*(found[name] for name in needed), *mpiop["options.extras_require"]["tools"].split("\n")[1:]]


def modules(source: Path) -> list[Path]:
    """Return the files of all modules of mpiop.client and mpiop.kubectl, and of the modules of mpiop that these import.

    Args:
        source: The folder that contains the package `mpiop`.
    """
    files = {_name(source, file): file for file in source.glob("mpiop/**/*.py")}
    waiting = [name for name in files if f"{name}.".startswith(_PACKAGES)]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in files and name not in found:
            found.add(name)
            waiting += _imported(files[name])
            waiting.append(name.rpartition(".")[0])
    return sorted(files[name] for name in found)


def _name(source: Path, file: Path) -> str:
    return ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _imported(file: Path) -> Iterator[str]:
    """Return names that a module imports, anywhere in it; a name may also be that of a function or a class."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
