"""`down`: nothing of a cluster is left, whatever state it was in."""

import os
import shutil
import time
from pathlib import Path

from embedded import network
from embedded.cgroups import Group, group_name, read_hierarchies
from embedded.errors import ClusterError
from embedded.layout import Layout

# A killed process that writes to a busy disk ends only when its write does.
KILL_SECONDS = 60
POLL_SECONDS = 0.02


def interface_alias(layout: Layout) -> str:
    """Return what marks a network interface of the host as this cluster's."""
    return f"mpiop cluster {layout.root}"


def destroy(layout: Layout) -> bool:
    """Remove all of a cluster and return whether there was any of it.

    Killing is all it takes: with its processes go the cluster's mounts and network. No container gets time to end in order.

    Raises:
        ClusterError: Something would not go.
    """
    group = Group(read_hierarchies(), group_name(layout.root))
    found = bool(group.folders or network.interfaces(interface_alias(layout)) or _mounts_in(layout.root) or layout.root.exists())
    group.kill(KILL_SECONDS)
    network.remove_interfaces(interface_alias(layout))
    group.remove(KILL_SECONDS)
    _await_interfaces_gone(layout)
    _remove_folder(layout.root)
    return found


def _await_interfaces_gone(layout: Layout) -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while names := network.interfaces(interface_alias(layout)):
        if time.monotonic() > deadline:
            raise ClusterError(f"network interfaces {names} are still there; remove them with: ip link delete {names[0]}")
        time.sleep(POLL_SECONDS)


def _remove_folder(root: Path) -> None:
    if held := _mounts_in(root):
        raise ClusterError(f"{held[0]} is a mount point inside the state folder that is not the cluster's; unmount it and run down again")
    # Rename first: other commands see all of it or nothing, and a crash in between leaves something that is plainly rubbish.
    doomed = root.with_name(f".removed-{root.name}-{os.getpid()}")
    if root.exists():
        root.rename(doomed)
    for rubbish in root.parent.glob(f".removed-{root.name}-*"):
        try:
            shutil.rmtree(rubbish)
        except OSError as error:
            raise ClusterError(f"{error.filename}: {error.strerror}; what is left of the cluster lies in {rubbish}, remove it") from error


def _mounts_in(root: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if Path(point).is_relative_to(root)]
