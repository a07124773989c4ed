"""Process 1 of a cluster: makes its namespaces, starts the components, reaps, and takes everything along when it ends.

Started as `python3 -m embedded.supervisor STATE CACHE HOSTNAME`, in the cluster's control group already.
Requests are one JSON object a line over a socket in the state folder:
`{"op": "start", "name", "argv", "env", "log"}`, `{"op": "signal", "name", "signal"}`, `{"op": "status"}`.
"""

import contextlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from embedded import namespaces
from embedded.layout import Layout

# The kubelet sets these for the whole machine; it gets files of its own to write to instead.
KUBELET_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
REQUEST_SECONDS = 5


@dataclass
class Process:
    """A component as the supervisor knows it; `pid` counts in the cluster's namespace, `exit_code` is negative for a signal."""

    pid: int
    exit_code: int | None = None


class Supervisor:
    """The table of components and the loop that serves requests."""

    def __init__(self, listener: socket.socket) -> None:
        """Serve requests that arrive at `listener`."""
        self._processes: dict[str, Process] = {}
        self._listener = listener
        self._wakeup, wake = socket.socketpair()
        self._wakeup.settimeout(0)
        wake.settimeout(0)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # As process 1 it gets only the signals that it handles, and SIGTERM from outside shall end the cluster.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def serve(self) -> None:
        """Answer requests until the process ends."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wakeup, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        with contextlib.suppress(BlockingIOError):
                            self._wakeup.recv(4096)
                self._reap()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(REQUEST_SECONDS)
            with connection.makefile("rw", encoding="utf-8") as stream:
                try:
                    answer = self._answer(json.loads(stream.readline()))
                except (OSError, KeyError, ValueError) as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                stream.write(json.dumps(answer) + "\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._reap()
        if request["op"] == "start":
            known = self._processes.get(request["name"])
            if known is None or known.exit_code is not None:
                self._processes[request["name"]] = Process(_spawn(request))
        elif request["op"] == "signal":
            process = self._processes[request["name"]]
            if process.exit_code is None:
                os.kill(process.pid, request["signal"])
        return {"processes": {name: asdict(process) for name, process in self._processes.items()}}

    def _reap(self) -> None:
        ended = dict[int, int]()
        with contextlib.suppress(ChildProcessError):
            while (result := os.waitpid(-1, os.WNOHANG))[0]:
                ended[result[0]] = os.waitstatus_to_exitcode(result[1])
        for process in self._processes.values():
            if process.exit_code is None and process.pid in ended:
                process.exit_code = ended[process.pid]


def _spawn(request: dict[str, Any]) -> int:
    """Start a program in a session of its own, its output appended to a log, and return its process id."""
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.posix_spawn(
            request["argv"][0],
            request["argv"],
            request["env"],
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM),
        )
    finally:
        os.close(log)
        os.close(null)


def _hide_host(layout: Layout, cache: Path) -> None:
    """Give the cluster its own /proc, /run, /var/lib and /var/log, and writable copies of machine-wide settings."""
    resolver = layout.config / "resolv.conf"
    sysctls = layout.private / "sysctl"
    for name, value in KUBELET_SYSCTLS.items():
        (sysctls / name).parent.mkdir(parents=True, exist_ok=True)
        (sysctls / name).write_text(value, encoding="ascii")
    namespaces.become_private()
    namespaces.mount("proc", "/proc", "proc")
    for name in KUBELET_SYSCTLS:
        namespaces.bind(sysctls / name, Path("/proc/sys") / name)
    if not Path("/etc/resolv.conf").is_symlink():
        namespaces.bind(resolver, Path("/etc/resolv.conf"))
    namespaces.hide({target: layout.private / name for name, target in namespaces.PRIVATE.items()}, (layout.root, cache))


def _listen(path: Path) -> socket.socket:
    # The folder as a file descriptor keeps the address short of the 108 bytes that a socket's may have.
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    listener.listen()
    os.close(folder)
    return listener


def main(state: Path, cache: Path, hostname: str) -> None:
    """Leave the host's namespaces, and serve as process 1 of the new ones."""
    layout = Layout(state.name, state)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.umask(0o022)
    namespaces.unshare(namespaces.CLUSTER)
    if child := os.fork():
        # Written by the parent, for only it knows the number that the host uses.
        unfinished = layout.supervisor.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"pid": child}), encoding="ascii")
        unfinished.rename(layout.supervisor)
        os._exit(0)
    os.setsid()
    _hide_host(layout, cache)
    socket.sethostname(hostname)
    namespaces.raise_loopback()
    Supervisor(_listen(layout.socket)).serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
