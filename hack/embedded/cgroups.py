"""Control groups: what this machine has, the cluster's own, and ending everything in them.

Membership is the kernel's own record of which processes belong to a cluster, so it is what `down` goes by: no pid file can be
out of date, and no reused process id is ever hit.
"""

import contextlib
import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import ClusterError

REQUIRED = ("cpu", "memory", "pids")
DELEGATED = ("cpu", "cpuset", "memory", "pids", "io", "hugetlb")
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Hierarchies:
    """The control group mounts of a machine.

    `unified` reports that version 2 has the controllers; `mounts` are all mount points where a process of ours can be.
    """

    unified: bool
    mounts: tuple[Path, ...]


def parse_mounts(mountinfo: str) -> Hierarchies:
    """Read /proc/self/mountinfo (proc_pid_mountinfo(5)).

    Raises:
        ClusterError: A controller that a kubelet needs is mounted nowhere.
    """
    first, second, controllers = [], [], set[str]()
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        mount_point = Path(left.split()[4])
        kind, _, options = right.split()[:3]
        if kind == "cgroup2":
            second.append(mount_point)
        elif kind == "cgroup":
            first.append(mount_point)
            controllers.update(options.split(","))
    if first and controllers.issuperset(REQUIRED):
        return Hierarchies(unified=False, mounts=tuple(dict.fromkeys(first + second)))
    if second and not controllers.intersection(REQUIRED):
        return Hierarchies(unified=True, mounts=(second[0],))
    missing = ", ".join(sorted(set(REQUIRED) - controllers))
    raise ClusterError(f"control groups: no {missing} controller under /sys/fs/cgroup; mount cgroup2 there (or run on a host that does)")


def read_hierarchies() -> Hierarchies:
    """Return what this machine has mounted."""
    return parse_mounts(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))


def group_name(state: Path) -> str:
    """Return the name of the cluster's group: readable, and different for every state folder."""
    digest = hashlib.sha256(str(state).encode()).hexdigest()[:8]
    return f"mpiop-{state.name}-{digest}"


def second_group_name(state: Path) -> str:
    """Return the name of the group of the second node, within that of the cluster."""
    return f"{group_name(state)}/node-2"


@dataclass(frozen=True)
class Group:
    """The control group of a cluster or of a node, in every hierarchy at once."""

    hierarchies: Hierarchies
    name: str

    @property
    def folders(self) -> list[Path]:
        """The group's folders that exist."""
        return [path for mount in self.hierarchies.mounts if (path := mount / self.name).is_dir()]

    def create(self) -> None:
        """Make the group, with a leaf for the components; pods get leaves next to it.

        Raises:
            ClusterError: The controllers cannot be delegated, or the hierarchy is read-only.
        """
        try:
            if self.hierarchies.unified:
                _delegate(self.hierarchies.mounts[0])
            for mount in self.hierarchies.mounts:
                (mount / self.name).mkdir(exist_ok=True)
                _inherit_cpuset(mount / self.name)
                (mount / self.name / "components").mkdir(exist_ok=True)
                _inherit_cpuset(mount / self.name / "components")
            if self.hierarchies.unified:
                _delegate(self.hierarchies.mounts[0] / self.name)
        except OSError as error:
            raise ClusterError(
                f"control group {error.filename}: {error.strerror}; a cluster needs writable control groups whose root holds no processes "
                "(in a container: --privileged --cgroupns=host)"
            ) from error

    def enter(self) -> None:
        """Move this process, and so all its children to be, into the group."""
        for mount in self.hierarchies.mounts:
            (mount / self.name / "components" / "cgroup.procs").write_text("0", encoding="ascii")

    def processes(self) -> set[int]:
        """Return the process ids in the group, as the reader's namespace sees them."""
        return {pid for folder in self._all_folders() for pid in _members(folder)}

    def kill(self, deadline_seconds: float) -> None:
        """End every process in the group.

        Raises:
            ClusterError: Some would not end within `deadline_seconds`.
        """
        deadline = time.monotonic() + deadline_seconds
        while living := self.processes():
            self._thaw()
            for pid in living:
                self._kill_member(pid)
            if time.monotonic() > deadline:
                raise ClusterError(f"processes {sorted(living)} live {deadline_seconds:.0f} s after SIGKILL; look at them with: ps")
            time.sleep(POLL_SECONDS)

    def remove(self, deadline_seconds: float) -> None:
        """Remove the group's folders; the kernel may hold one for some milliseconds after its last process ended.

        Raises:
            ClusterError: One is still busy after `deadline_seconds`.
        """
        deadline = time.monotonic() + deadline_seconds
        while self.folders:
            for folder in self._all_folders():
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if self.folders and time.monotonic() > deadline:
                raise ClusterError(f"control group {self.folders[0]} is still busy; look at its cgroup.procs")
            if self.folders:
                time.sleep(POLL_SECONDS)

    def _kill_member(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                if f"/{self.name}/" in Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii"):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            except FileNotFoundError:
                pass
            finally:
                os.close(handle)

    def _thaw(self) -> None:
        """Let frozen (paused) containers run, for a frozen process does not even die."""
        for folder in self._all_folders():
            for file, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                with contextlib.suppress(OSError):
                    if (folder / file).exists():
                        (folder / file).write_text(word, encoding="ascii")

    def _all_folders(self) -> list[Path]:
        """Return the group's folders and all below them, deepest first."""
        return [Path(path) for folder in self.folders for path, _, _ in os.walk(folder, topdown=False)]


def _members(folder: Path) -> list[int]:
    # A line is 0 for a process of a namespace that the reader cannot see, and reading ends in ENODEV when the group just went.
    try:
        return [pid for line in (folder / "cgroup.procs").read_text(encoding="ascii").split() if (pid := int(line))]
    except OSError:
        return []


def _delegate(folder: Path) -> None:
    available = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in DELEGATED if name in available), encoding="ascii")


def _inherit_cpuset(folder: Path) -> None:
    """Fill a version 1 cpuset, which starts empty and then accepts no process."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        own, parent = folder / file, folder.parent / file
        if own.exists() and parent.exists() and not own.read_text(encoding="ascii").strip():
            own.write_text(parent.read_text(encoding="ascii"), encoding="ascii")
