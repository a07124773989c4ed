"""What the cluster asks of the machine, each with one sentence when it is not so."""

import os
import platform
import shutil
from pathlib import Path

from embedded import namespaces
from embedded.errors import ClusterError
from embedded.images import ARCHITECTURES

CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SYS_RESOURCE = 21, 12, 24
STATE_BYTES = 2 << 30
# What the components that run as root take on each node, with some air for pods.
INOTIFY_INSTANCES = 12


def has_capability(status: str, number: int) -> bool:
    """Return whether /proc/<pid>/status, given as text, shows the effective capability `number` (capabilities(7))."""
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(mask, 16) >> number & 1)


def capable(number: int) -> bool:
    """Return whether this process has the capability."""
    return has_capability(Path("/proc/self/status").read_text(encoding="ascii"), number)


def check_system(system: str, machine: str, user: int) -> None:
    """Check what needs no access to the file system.

    Args:
        system: As `uname -s` reports.
        machine: As `uname -m` reports.
        user: Effective user id.

    Raises:
        ClusterError: Something the cluster cannot do without is missing.
    """
    if system != "Linux":
        raise ClusterError(f"the embedded cluster needs Linux and this is {system}; use a cluster you have with MPIOP_CLUSTER=current")
    if machine not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        raise ClusterError(
            f"the embedded cluster runs on {known}, and this machine is {machine}; use a cluster you have with MPIOP_CLUSTER=current"
        )
    if user != 0:
        raise ClusterError(
            "the embedded cluster needs root (namespaces, mounts, control groups): run it with sudo, "
            "or use a cluster you have with MPIOP_CLUSTER=current"
        )


def check_machine(state: Path, nodes: int) -> None:
    """Check that a cluster of so many real nodes can live here, with its state below `state`.

    Raises:
        ClusterError: It cannot; the message states why and what to do.
    """
    check_system(platform.system(), platform.machine(), os.geteuid())
    for number, name in ((CAP_SYS_ADMIN, "CAP_SYS_ADMIN"), (CAP_NET_ADMIN, "CAP_NET_ADMIN")):
        if not capable(number):
            raise ClusterError(f"root here lacks {name}; in a container, start it with --privileged")
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"state folder {state}: {error.strerror}; set MPIOP_STATE to a folder that can be written") from error
    if not namespaces.can_watch(INOTIFY_INSTANCES * nodes):
        limit = Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="ascii").strip()
        raise ClusterError(
            f"root has used up its inotify instances (the limit is {limit}); end other clusters, "
            "or raise it with: sysctl -w fs.inotify.max_user_instances=1024"
        )
    free = shutil.disk_usage(state).free
    if free < STATE_BYTES:
        room = f"{free / 1e9:.1f} GB free and a cluster needs {STATE_BYTES / 1e9:.0f}"
        raise ClusterError(f"the disk of {state} has {room}; free some or set MPIOP_STATE")
