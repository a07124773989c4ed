"""What the images stand on: a slim Debian from a registry, or the same made here of Debian's packages."""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from embedded.images import ARCHITECTURES
from imaging.engines import Engine
from imaging.errors import ImagesError
from imaging.finding import install_packages
from imaging.process import Programs

REGISTRY_BASE = "docker.io/library/debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716"
"""The default of BASE_IMAGE in the Dockerfiles. The digest is that of the index, which has an image for each platform."""

SUITE = "bookworm"

_PULL_SECONDS = 300
_NEEDED_GIGABYTES = 3.0
_HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
_RECIPE = (
    "--variant=apt",
    "--quiet",
    "--format=tar",
    # Without it the package usrmerge brings 50 MB of perl along.
    f"--hook-dir={_HOOKS}",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    # mmdebstrap copies this machine's; a container gets its own.
    '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"',
    SUITE,
)


@dataclass(frozen=True, slots=True)
class Bases:
    """Chooses the base image.

    Attributes:
        folder: Where the tar of a base made here is kept.
        platforms: What is built for; none means this machine's.
        fresh: Whether to decide and to make again what was decided and made before.
    """

    engine: Engine
    programs: Programs
    folder: Path
    platforms: Sequence[str] = ()
    fresh: bool = False

    def choose(self, desired: str) -> str:
        """Return the reference of the base: the requested one, else the registry's, else our own.

        What an earlier run found is taken again, so that a build asks no registry and does not change its base unless asked to.

        Raises:
            ImagesError: There is none for these platforms, or ours could not be made.
        """
        console = self.programs.console
        if desired:
            console.say(f"base: {desired}, as told")
            return desired
        foreign = [platform for platform in self.platforms if not is_native(platform)]
        local = f"localhost/mpiop-base:{SUITE}-{recipe_digest()}"
        if not self.fresh:
            for known in (REGISTRY_BASE,) if foreign else (REGISTRY_BASE, local):
                if self.engine.image_id(known):
                    console.say(f"base: {known}")
                    return known
        console.say(f"base: asking for {REGISTRY_BASE}")
        if self.engine.pull(REGISTRY_BASE, timeout_seconds=_PULL_SECONDS):
            return REGISTRY_BASE
        if foreign:
            raise ImagesError(
                f"no registry answers, and the base made of packages is not for {', '.join(foreign)}; give one with BASE_IMAGE"
            )
        self._make(local)
        return local

    def _make(self, reference: str) -> None:
        console = self.programs.console
        tar = self.folder / f"base-{SUITE}-{recipe_digest()}.tar"
        if self.fresh or not tar.exists():
            if shutil.which("mmdebstrap") is None:
                because = "no registry answers, and mmdebstrap is missing"
                install_packages(["mmdebstrap", "debian-archive-keyring"], self.programs, because=because)
            if (free := shutil.disk_usage(self.folder).free / 1e9) < _NEEDED_GIGABYTES:
                raise ImagesError(
                    f"{self.folder} has {free:.1f} GB left, and {_NEEDED_GIGABYTES:.0f} are needed; make room or set MPIOP_CACHE"
                )
            console.say(f"base: no registry answers; making one of Debian's packages ({SUITE}, about 20 s, once)")
            partial = tar.with_suffix(".partial")
            self._bootstrap(partial)
            partial.rename(tar)
        self.engine.import_root(tar, reference)
        console.say(f"base: {reference}, {tar.stat().st_size / 1e6:.0f} MB")

    def _bootstrap(self, tar: Path) -> None:
        try:
            self.programs.run("base", ["mmdebstrap", *_RECIPE, str(tar)])
        except ImagesError as error:
            if os.geteuid() == 0:
                raise
            way_out = (
                "a user needs user namespaces and subordinate ids (/etc/subuid) for it: run this as root, or give a base with BASE_IMAGE"
            )
            raise ImagesError(f"{error}\n{way_out}") from error


def is_native(platform: str) -> bool:
    """Return whether a platform like linux/arm64/v8 is this machine's."""
    machine = os.uname().machine
    return platform.split("/")[:2] == ["linux", ARCHITECTURES.get(machine, machine)]


def recipe_digest() -> str:
    """Return 12 hexadecimal digits that stand for what goes into a base made here."""
    return hashlib.sha256(json.dumps(_RECIPE).encode()).hexdigest()[:12]
