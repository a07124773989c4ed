"""Where things lie: the cache of built programs, and one state folder per cluster."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import ClusterError

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")
HACK = Path(__file__).resolve().parent.parent
GO_SOURCES = Path(__file__).resolve().parent / "go"
AGENT_SOURCES = HACK.parent / "agent"


def _base(variable: str, xdg: str, default: str) -> Path:
    if chosen := os.environ.get(variable):
        return Path(chosen).absolute()
    home = os.environ.get(xdg)
    return (Path(home).absolute() if home else Path.home() / default) / "mpiop" / "cluster"


def cache_folder() -> Path:
    """Return the folder of built programs: MPIOP_CACHE, else one below XDG_CACHE_HOME."""
    return _base("MPIOP_CACHE", "XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """Return the parent of all state folders: MPIOP_STATE, else one below XDG_STATE_HOME."""
    return _base("MPIOP_STATE", "XDG_STATE_HOME", ".local/state")


@dataclass(frozen=True)
class Layout:
    """The state folder of one cluster and the paths in it."""

    name: str
    root: Path

    @property
    def record(self) -> Path:
        """What `up` decided: options, addresses, versions."""
        return self.root / "cluster.json"

    @property
    def supervisor(self) -> Path:
        """Process id of the supervisor, as the host sees it."""
        return self.root / "supervisor.json"

    @property
    def socket(self) -> Path:
        """Where the supervisor listens."""
        return self.root / "supervisor.sock"

    @property
    def logs(self) -> Path:
        """One file per component."""
        return self.root / "logs"

    @property
    def certificates(self) -> Path:
        """Keys and certificates, in files named for who uses them."""
        return self.root / "certificates"

    @property
    def config(self) -> Path:
        """Configuration files of the components and their kubeconfigs."""
        return self.root / "config"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for people and tests."""
        return self.root / "kubeconfig"

    @property
    def bin(self) -> Path:
        """Links to kubectl and ctr, for PATH."""
        return self.root / "bin"

    @property
    def private(self) -> Path:
        """What the cluster sees as /run, /var/lib and /var/log."""
        return self.root / "private"

    @property
    def second_private(self) -> Path:
        """The same for the second node."""
        return self.root / "private-2"

    @property
    def lock(self) -> Path:
        """Return the lock of commands that change the cluster. It is next to the state folder, because it outlives that."""
        return self.root.parent / f"{self.name}.lock"

    def log(self, component: str) -> Path:
        """Return the log file of `component`."""
        return self.logs / f"{component}.log"


def layout_of(name: str) -> Layout:
    """Return the layout of the cluster `name`.

    Raises:
        ClusterError: `name` cannot be part of a host name.
    """
    if not NAME.fullmatch(name):
        raise ClusterError(f"--name {name!r}: use 1 to 30 small letters, digits and inner dashes")
    return Layout(name, state_folder() / name)


def cluster_names() -> list[str]:
    """Return the names of the clusters that have a state folder."""
    parent = state_folder()
    return sorted(entry.name for entry in parent.iterdir() if entry.is_dir() and NAME.fullmatch(entry.name)) if parent.is_dir() else []
