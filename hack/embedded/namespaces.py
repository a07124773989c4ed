"""Namespaces and the mounts in them, by the system calls that Python 3.11 has no names for; inotify_init too."""

import ctypes
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
# What a node has of its own, and what the cluster has besides.
NODE = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET
CLUSTER = NODE | CLONE_NEWPID
# Components and CNI plugins write below these; each node sees folders of its own in their place.
PRIVATE = {"run": Path("/run"), "var-lib": Path("/var/lib"), "var-log": Path("/var/log")}
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 1 << 18, 1 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    """Leave the namespaces of `flags`. Of process ids only the children get some of their own, this process keeps its."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    """Put `source` at `target`; `kind` and `flags` are those of the system call."""
    _check(_libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None), f"mount {source} on {target}")


def bind(source: Path, target: Path) -> None:
    """Make `source` appear at `target` too."""
    mount(str(source), str(target), flags=MS_BIND)


def hide(sources: Mapping[Path, Path], kept: Sequence[Path]) -> None:
    """Put a folder in place of each target in `sources`; the folders `kept` stay in view where they are."""
    # Held open, for each of these folders may lie below one that is about to be hidden.
    held = {path: _hold(path) for path in kept}
    binds = {target: _hold(source) for target, source in sources.items()}
    for target, source in binds.items():
        bind(source, target)
    for path, source in held.items():
        if not path.exists():
            path.mkdir(parents=True)
            bind(source, path)


def _hold(folder: Path) -> Path:
    return Path(f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}")


def become_private() -> None:
    """Keep all mounts made from here on from the host, and share them among the namespaces made below this one.

    Containers that ask for mount propagation need the second half.
    """
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("none", "/", flags=MS_REC | MS_SHARED)


def raise_loopback() -> None:
    """Set the interface lo up (netdevice(7): SIOCSIFFLAGS with IFF_UP and IFF_RUNNING)."""
    siocsifflags, up_and_running = 0x8914, 0x1 | 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        ioctl(any_socket, siocsifflags, struct.pack("16sh14x", b"lo", up_and_running))


def can_watch(instances: int) -> bool:
    """Return whether this user may make `instances` inotify instances more (inotify(7))."""
    handles: list[int] = []
    try:
        while len(handles) < instances and (handle := _libc.inotify_init()) >= 0:
            handles.append(handle)
        return len(handles) == instances
    finally:
        for handle in handles:
            os.close(handle)
