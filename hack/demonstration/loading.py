"""Clusters whose own program puts images on their nodes: kind and k3d."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demonstration.screen import DemoError


@dataclass(frozen=True)
class Commands:
    """What a program is asked with.

    Attributes:
        names: Prints the clusters on this machine: their names are the first words of the lines.
        load: Puts an archive on the nodes, if a cluster's name and the archive follow.
    """

    names: Sequence[str]
    load: Sequence[str]


PROGRAMS: Mapping[str, Commands] = {
    "kind": Commands(("get", "clusters"), ("load", "image-archive", "--name")),
    "k3d": Commands(("cluster", "list", "--no-headers"), ("image", "import", "--cluster")),
}


@dataclass(frozen=True)
class Loader:
    """Puts images on the nodes of one cluster."""

    program: str
    name: str

    def load(self, archives: Sequence[str]) -> None:
        """Load docker-archives, one after the other: not every version takes several.

        Raises:
            DemoError: The program failed.
        """
        for archive in archives:
            ended = _run(self.program, *PROGRAMS[self.program].load, self.name, archive)
            if ended.returncode:
                reason = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise DemoError(f"{self.program} could not load {Path(archive).name} into the cluster {self.name}: {reason}")


def loader_of(context: str) -> Loader | None:
    """Return what loads images into the cluster of a context; None if it is not a cluster of a program that is installed here.

    Both programs call the context of a cluster PROGRAM-NAME. A context can be called so by chance, so the program must know the cluster.
    """
    program, _, name = context.partition("-")
    if program not in PROGRAMS or not shutil.which(program):
        return None
    listed = _run(program, *PROGRAMS[program].names).stdout.splitlines()
    return Loader(program, name) if name in {line.split()[0] for line in listed if line.strip()} else None


def _run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
