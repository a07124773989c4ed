"""Talking to a cluster's supervisor, and running things in the cluster's namespaces."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from embedded import packages, second_node
from embedded.component import Component
from embedded.errors import ClusterError
from embedded.layout import HACK, Layout
from embedded.record import Record
from embedded.supervisor import Process

POLL_SECONDS = 0.02
# Plus the index of the cluster; far from the numbers that machines and directories give to people.
FIRST_USER = 1_700_000_000
REQUEST_SECONDS = 30
# For a module of ours, be it to become another program.
PYTHON = {"PYTHONPATH": str(HACK), "PYTHONDONTWRITEBYTECODE": "1"}


def supervisor_pid(layout: Layout) -> int | None:
    """Return the host's process id of the supervisor, or None when it does not run."""
    try:
        pid = int(json.loads(layout.supervisor.read_text(encoding="ascii"))["pid"])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, ValueError, KeyError):
        return None
    # A number alone could be another process's by now; the state folder in its arguments makes sure.
    return pid if str(layout.root).encode() in command else None


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Yield an address for the socket `path` that is short of the 108 bytes that one may have."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def ask(layout: Layout, request: Mapping[str, Any]) -> dict[str, Process]:
    """Send one request and return the components as they are now.

    Raises:
        ClusterError: The supervisor does not run, or could not do it.
    """
    if not layout.root.is_dir():
        raise ClusterError(f"no cluster {layout.name!r}; start it with: hack/cluster up --name {layout.name}")
    try:
        with socket_address(layout.socket) as address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(REQUEST_SECONDS)
            connection.connect(address)
            # Without a buffer: flushed at its end, that would replace the KeyboardInterrupt of a signal by an error of the socket.
            connection.sendall(f"{json.dumps(request)}\n".encode())
            with connection.makefile("r", encoding="utf-8") as stream:
                answer = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        raise ClusterError(f"cluster {layout.name!r} has crashed ({error}); start it with: hack/cluster up --name {layout.name}") from error
    if "error" in answer:
        raise ClusterError(f"cluster {layout.name!r} refused {request['op']} {request.get('name', '')}: {answer['error']}")
    return {name: Process(**process) for name, process in answer["processes"].items()}


def start(layout: Layout, record: Record, component: Component) -> None:
    """Start `component` unless it runs."""
    environment = {
        "PATH": f"{':'.join(sorted({str(Path(path).parent) for path in record.programs.values()}))}:{packages.SEARCH_PATH}",
        "HOME": str(layout.root),
        "TMPDIR": str(layout.root / "tmp"),
        "GOTRACEBACK": "single",
        **(PYTHON if component.node or component.program == sys.executable else {}),
    }
    ask(
        layout,
        {
            "op": "start",
            "name": component.name,
            "argv": _command(layout, record, component),
            "env": environment,
            "log": str(layout.log(component.name)),
        },
    )


def _command(layout: Layout, record: Record, component: Component) -> list[str]:
    if component.program == sys.executable:
        return [component.program, *component.arguments]
    program = Path(record.programs[component.program]).parent / component.program
    command = [str(program), *component.arguments]
    if component.node:
        holder = ask(layout, {"op": "status"})[component.node].pid
        return [sys.executable, *second_node.MODULE, "run", str(layout.root), str(holder), *command]
    return [*_as_own_user(record.index), *command] if component.own_user else command


def _as_own_user(index: int) -> list[str]:
    number, files = FIRST_USER + index, "dac_override"
    program = shutil.which("setpriv", path=packages.SEARCH_PATH) or "/usr/bin/setpriv"
    capabilities = (f"--inh-caps=-all,+{files}", f"--ambient-caps=-all,+{files}")
    return [program, f"--reuid={number}", f"--regid={number}", "--clear-groups", *capabilities, "--"]


def send_signal(layout: Layout, name: str, number: signal.Signals) -> None:
    """Send a signal to a component; none is sent when it has ended.

    Raises:
        ClusterError: The cluster has no such component.
    """
    processes = ask(layout, {"op": "status"})
    if name not in processes:
        raise ClusterError(f"no component {name!r} in cluster {layout.name!r}; there are {', '.join(processes)}")
    ask(layout, {"op": "signal", "name": name, "signal": number})


def await_end(layout: Layout, name: str, deadline_seconds: float) -> None:
    """Wait until a component has ended.

    Raises:
        ClusterError: It still runs after `deadline_seconds`.
    """
    deadline = time.monotonic() + deadline_seconds
    while ask(layout, {"op": "status"})[name].exit_code is None:
        if time.monotonic() > deadline:
            raise ClusterError(f"{name} runs {deadline_seconds:.0f} s after the signal; use --kill, and see: hack/cluster logs {name}")
        time.sleep(POLL_SECONDS)


def enter_command(layout: Layout, command: list[str], *, network_only: bool = False, node: str = "") -> list[str]:
    """Return `command` wrapped so that it runs inside the cluster.

    Args:
        layout: Of the cluster.
        command: Program and arguments.
        network_only: Keep the host's files and processes in view.
        node: The component that holds the namespaces of the node; "" is the first node.

    Raises:
        ClusterError: The cluster does not run.
    """
    pid = supervisor_pid(layout)
    if pid is None:
        raise ClusterError(f"cluster {layout.name!r} does not run; start it with: hack/cluster up --name {layout.name}")
    if node:
        holder = ask(layout, {"op": "status"})[node].pid
        command = ["nsenter", f"--target={holder}", *second_node.SPACES, "--", *command]
    namespaces = ("--net",) if network_only else ("--mount", "--net", "--uts", "--ipc", "--pid", "--root", "--wd")
    return ["nsenter", f"--target={pid}", *namespaces, "--", *command]


def wait_for_supervisor(layout: Layout, process: subprocess.Popen[bytes], deadline_seconds: float) -> int:
    """Wait until a supervisor that was just started answers, and return its process id.

    Raises:
        ClusterError: It ended, or did not answer in time.
    """
    deadline = time.monotonic() + deadline_seconds
    while time.monotonic() < deadline:
        pid = supervisor_pid(layout)
        if pid is not None:
            with contextlib.suppress(ClusterError):
                ask(layout, {"op": "status"})
                return pid
        if process.poll() is not None and pid is None:
            break
        time.sleep(POLL_SECONDS)
    log = layout.log("supervisor")
    lines = log.read_text(encoding="utf-8").strip().splitlines() if log.exists() else []
    reason = lines[-1] if lines else "it said nothing"
    raise ClusterError(f"the cluster's first process did not start: {reason}; in a container it needs --privileged")
