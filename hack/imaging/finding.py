"""Which builder to use: one that works, not one that is only installed."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from imaging.buildah import Buildah
from imaging.engines import DockerLike, Engine
from imaging.errors import ImagesError
from imaging.process import Programs

ENGINE_NAMES = ("docker", "podman", "buildah")

_NO_ENGINE = "no image builder works here: docker and podman are missing or have no engine that answers, and buildah is missing"


def find_engine(folder: Path, programs: Programs, *, desired: str = "") -> Engine:
    """Return the first of docker, podman and buildah that works, or the `desired` one; installs buildah on Debian if there is none.

    Raises:
        ImagesError: There is none and none can be installed, or the requested one does not work.
    """
    if desired and desired not in ENGINE_NAMES:
        raise ImagesError(f"--builder {desired}: no such builder; there are {', '.join(ENGINE_NAMES)}")
    for name in (desired,) if desired else ENGINE_NAMES:
        if is_usable(name, programs):
            return _engine(name, folder, programs)
    if desired and desired != "buildah":
        raise ImagesError(f"--builder {desired}: `{desired} version` fails; start its engine, or leave the choice to hack/images")
    install_packages(["buildah"], programs, because=_NO_ENGINE)
    return _engine("buildah", folder, programs)


def is_usable(name: str, programs: Programs) -> bool:
    """Return whether a builder does its work: docker's server answers, podman knows its storage, buildah is there."""
    if shutil.which(name) is None:
        return False
    probe = {
        "docker": ["docker", "version", "--format={{.Server.Version}}"],
        "podman": ["podman", "info", "--format={{.Store.GraphDriverName}}"],
        "buildah": ["buildah", "--version"],
    }
    return programs.succeeds(probe[name])


def _engine(name: str, folder: Path, programs: Programs) -> Engine:
    return Buildah.on(folder, programs) if name == "buildah" else DockerLike(name, programs)


def install_packages(packages: Sequence[str], programs: Programs, *, because: str) -> None:
    """Install Debian's or Ubuntu's packages that are missing, saying so before.

    Raises:
        ImagesError: This is not Debian, or not root, or apt-get failed; the message states what to do by hand.
    """
    command = f"apt-get install {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        raise ImagesError(f"{because}; install docker, podman or buildah (only Debian and Ubuntu get it automatically)")
    if os.geteuid() != 0:
        raise ImagesError(f"{because}; install what is missing as root with: {command}")
    programs.console.say(f"{because}; installing Debian packages: {', '.join(packages)}")
    apt = ["apt-get", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install", *packages]
    try:
        programs.run("apt", apt)
    except ImagesError:  # package lists may be missing or old
        programs.run("apt-update", ["apt-get", "-q", "update"])
        programs.run("apt", apt)
