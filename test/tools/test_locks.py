"""Locks are installed, not resolved: what the index has released since does not matter.

The index here is a folder of empty wheels. It has each locked package twice: as it is locked, with the dependencies that the real package
names, and in a much newer version.
"""

import configparser
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
NEWER: Final = "99999.0"
_LOCKED: Final = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<marker> ; .*?)? \\$", re.MULTILINE)
_INSTALL: Final = re.compile(
    r"pip\b(?: --?\S+)*?(?: --python \S+)? install (?P<options>(?:-[^\n]*?)?) (?:\\\n\s+)?-r \S*requirements/(?P<lock>\w+)\.txt"
)


def _installations() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (file, lock, options) of each installation of a lock."""
    return [
        (name, found["lock"], tuple(found["options"].split()))
        for name in ("hack/setup", "Dockerfile")
        for found in _INSTALL.finditer((ROOT / name).read_text("utf-8"))
    ]


def test_every_lock_is_installed_somewhere() -> None:
    assert {lock for _, lock, _ in _installations()} == {path.stem for path in (ROOT / "requirements").glob("*.txt")}


def _names(requirements: str) -> set[str]:
    """Return the packages of a list, a line each."""
    return set(re.findall(r"^[A-Za-z][\w.-]*", requirements.replace("\n    ", "\n"), re.MULTILINE))


def test_the_lists_that_are_locked_are_those_of_the_package() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = config["options.extras_require"]
    runtime, dev = ((ROOT / f"requirements/{name}.in").read_text("utf-8") for name in ("runtime", "dev"))
    assert _names(runtime) == _names(config["options"]["install_requires"])
    assert _names(dev) == _names(extras["tools"]) | _names(extras["dev"]) - {"mpiop"}


@pytest.mark.parametrize(("file", "lock", "options"), _installations())
def test_newer_releases_of_everything_change_nothing(file: str, lock: str, options: tuple[str, ...], tmp_path: Path) -> None:
    text = (ROOT / f"requirements/{lock}.txt").read_text("utf-8")
    index, requirements, target = tmp_path / "index", tmp_path / "lock.txt", tmp_path / "venv"
    index.mkdir()
    requirements.write_text("".join(_offer(index, found) for found in _LOCKED.finditer(text)), "utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", target], check=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
    }
    pip = [sys.executable, "-m", "pip", "--python", str(target / "bin/python")]

    subprocess.run([*pip, "install", *options, "-r", requirements], check=True, env=environment)

    (folder,) = target.glob("lib/python*/site-packages")
    installed = {found.name for found in metadata.distributions(path=[str(folder)])}
    versions = {found.version for found in metadata.distributions(path=[str(folder)])}
    assert NEWER not in versions, file
    assert len(installed) > (0 if lock in {"build", "look"} else 10)
    subprocess.run([*pip, "check"], check=True, env=environment)  # what a package needs is locked with it


def _offer(index: Path, locked: re.Match[str]) -> str:
    """Put two wheels of a package into the index, and return the line of the lock for the older one."""
    name, version, marker = locked["name"], locked["version"], locked["marker"] or ""
    try:
        needs = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # its marker rules it out here
        needs = []
    digest = _wheel(index, name, version, needs)
    _wheel(index, name, NEWER, [])
    return f"{name}=={version}{marker} --hash=sha256:{digest}\n"


def _wheel(index: Path, name: str, version: str, needs: list[str]) -> str:
    """Write an empty wheel; return its SHA-256."""
    stem = f"{re.sub(r'[-.]+', '_', name)}-{version}"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {need}\n" for need in needs),
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    path = index / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(f"{stem}.dist-info/{file}", text)
    return hashlib.sha256(path.read_bytes()).hexdigest()
