"""Where things lie: the cache of built programs, and one state folder per cluster."""

import os
import re
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


class Layout:
    """The state folder of one cluster and the paths in it.

    Attributes:
        record: What `up` decided: options, addresses, versions.
        supervisor: Process id of the supervisor, as the host sees it.
        socket: Where the supervisor listens.
        logs: One file per component.
        certificates: Keys and certificates, in files named for who uses them.
        config: Configuration files of the components and their kubeconfigs.
        kubeconfig: The administrator's kubeconfig, for people and tests.
        bin: Links to kubectl and ctr, for PATH.
        private: What the cluster sees as /run, /var/lib and /var/log.
        second_private: The same for the second node.
        lock: Of commands that change the cluster. It is next to the state folder, because it outlives that.
    """

    def __init__(self, name: str, root: Path) -> None:
        """Lay out the cluster `name` below the folder `root`."""
        self.name, self.root = name, root
        self.record = root / "cluster.json"
        self.supervisor = root / "supervisor.json"
        self.socket = root / "supervisor.sock"
        self.logs = root / "logs"
        self.certificates = root / "certificates"
        self.config = root / "config"
        self.kubeconfig = root / "kubeconfig"
        self.bin = root / "bin"
        self.private = root / "private"
        self.second_private = root / "private-2"
        self.lock = root.parent / f"{name}.lock"

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
