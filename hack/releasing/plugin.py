"""The archive of kubectl-mpi: one folder with Python and all libraries, for machines without Python, and its manifest for krew."""

import hashlib
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from embedded.images import ARCHITECTURES
from releasing.client import NAME as CLIENT
from releasing.errors import ReleaseError

NAME: Final = "kubectl-mpi"
MANIFEST: Final = f"{NAME}.krew.yaml"
BILL: Final = f"{NAME}.cdx.json"
_PROGRAM: Final = Path(__file__).with_name("plugin_program.py")
_GLIBC: Final = re.compile(rb"\0GLIBC_(\d+)\.(\d+)")


def architecture(machine: str) -> str:
    """Return Go's name of a machine, as krew uses it.

    Raises:
        ReleaseError: PyInstaller has no wheel for it that we lock.
    """
    if machine not in ARCHITECTURES:
        raise ReleaseError(f"{NAME} cannot be built on {machine}; build it on one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[machine]


def archive_name(version: str) -> str:
    """Return the name of the archive that this machine builds."""
    return f"{NAME}_{version}_linux_{architecture(platform.machine())}.tar.gz"


def build(root: Path, wheel: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Write the program and all that it needs into a folder, which is made.

    Args:
        root: The checkout; its .venv/plugin is made if it is not there.
        wheel: That of mpiop-client.
        folder: Its name becomes that of the program, too.
        environment: Of PyInstaller.

    Raises:
        ReleaseError: The program `strip` is missing.
        CalledProcessError: A program failed, and has reported why.
    """
    if shutil.which("strip") is None:
        raise ReleaseError(f"{NAME} cannot be built without strip, which halves its libraries; install the Debian package binutils")
    subprocess.run([str(root / "hack/setup"), "plugin"], check=True, stdin=subprocess.DEVNULL)
    python = str(root / ".venv/plugin/bin/python")
    with TemporaryDirectory() as work:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
        subprocess.run([*pip, "--target", f"{work}/client", str(wheel)], check=True, stdin=subprocess.DEVNULL)
        options = ["--noconfirm", "--log-level=ERROR", f"--name={folder.name}", f"--distpath={folder.parent}", f"--workpath={work}"]
        options += [f"--specpath={work}", "--strip", "--exclude-module=setuptools", f"--recursive-copy-metadata={CLIENT}"]
        options += ["--collect-submodules=mpiop", "--collect-data=mpiop"]
        variables = {**environment, "PYTHONPATH": f"{work}/client", "PYTHONHASHSEED": "0", "PYINSTALLER_CONFIG_DIR": f"{work}/config"}
        subprocess.run([python, "-m", "PyInstaller", *options, str(_PROGRAM)], check=True, stdin=subprocess.DEVNULL, env=variables)
    shutil.copyfile(root / "LICENSE", folder / "LICENSE")


def needed_glibc(folder: Path) -> str:
    """Return the oldest version of glibc that has all symbols that the programs and libraries in a folder need, like 2.35."""
    versions = [tuple(map(int, found)) for file in folder.rglob("*") if file.is_file() for found in _GLIBC.findall(file.read_bytes())]
    return ".".join(map(str, max(versions)))


def manifest(version: str, archive: Path, glibc: str, url: str) -> dict[str, Any]:
    """Return the manifest by which krew installs the archive.

    Args:
        version: Of the release, without v.
        archive: Which is there.
        glibc: The oldest that it works with.
        url: The folder from which users download the archive; "" leaves only its name.
    """
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "mpi"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Run MPI programs on Kubernetes",
            "description": "Runs MPI programs as MPIJobs, follows them, and reports why a job waits or failed.\n"
            "The cluster needs an operator that serves MPIJob (kubeflow.org/v2beta1).\n",
            "caveats": f"Needs Linux with glibc {glibc} or newer.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux", "arch": architecture(platform.machine())}},
                    "uri": f"{url.rstrip('/')}/{archive.name}" if url else archive.name,
                    "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "bin": f"{NAME}/{NAME}",
                }
            ],
        },
    }
