"""The operator as a process of its own, restarted when it ends as a kubelet would."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from demonstration.cluster import ROOT
from faults.fork_server import MPIOP, Child, ForkServer

RESTART_SECONDS = 0.3
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How the operator is started.

    Attributes:
        server: URL of the API server, or of what stands in for it.
        authority: PEM of who signed its certificate.
        token: Bearer token.
        namespace: Whose jobs it serves, and where its lease is.
        folder: Where its kubeconfig, token and logs go.
        flags: More flags, after the usual ones.
        lease_seconds: Lease duration; the other times of the lease follow from it.
        environment: More environment variables.
        module: What is run; `faults.faulty_operator` is the operator too.
        fork_server: What starts it; None is this process.
    """

    server: str
    authority: str = field(repr=False)
    token: str = field(repr=False)
    namespace: str
    folder: Path
    flags: Sequence[str] = ()
    lease_seconds: int = 2
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    module: str = MPIOP
    fork_server: ForkServer | None = field(default=None, repr=False)


_PORTS: Final = itertools.cycle(range(20000, 30000))
"""Below those of outgoing connections, one of which may take a port while its replica is started again."""


class Replica:
    """One replica: processes that follow one another.

    Attributes:
        exits: The exit codes so far of processes that ended by themselves; negative is a signal.
        starts: When its processes were started, by `time.monotonic`.
        ends: When they ended by themselves, likewise.
        health_port: Where it serves /healthz and /readyz.
        metrics_port: Where it serves /metrics.
    """

    def __init__(self, launch: Launch, name: str = "operator") -> None:
        self._launch = launch
        self.log = launch.folder / f"{name}.log"
        self.token_file = launch.folder / f"{name}.token"
        self._kubeconfig = launch.folder / f"{name}.kubeconfig"
        self.health_port, self.metrics_port = free_port(), free_port()
        self.exits: list[int] = []
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.process: asyncio.subprocess.Process | Child | None = None
        self._supervising: asyncio.Task[None] | None = None
        self._write_files()

    async def start(self) -> None:
        """Start it, and again whenever it ends."""
        self.process = await self._spawn()
        self._supervising = asyncio.create_task(self._supervise())

    async def stop(self) -> None:
        """End it in order; by force when that takes too long, which then is an exit of its own."""
        if self._supervising is not None:
            self._supervising.cancel()
            await asyncio.wait({self._supervising})
        if self.process is None or self.process.returncode is not None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self.process.wait()
            self.exits.append(-signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that runs now; one that has just ended needs none."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def is_ready(self) -> bool:
        """Return whether /readyz reports it."""
        return (await self.fetch("/readyz")).startswith("200 ")

    async def fetch(self, path: str) -> str:
        """Return the answer to a probe or scrape, the status code first; "" when nobody answers."""
        port = self.metrics_port if path == "/metrics" else self.health_port
        try:
            async with asyncio.timeout(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                    answer = (await reader.read()).decode()
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError):
            return ""
        return answer.partition(" ")[2]

    def log_lines(self) -> list[dict[str, Any]]:
        """Return what it logged; a line that is not JSON (for example a traceback) as `{"raw": line}`."""
        return [_parsed(line) for line in self.log.read_text(encoding="utf-8").splitlines()] if self.log.exists() else []

    async def _supervise(self) -> None:
        while True:
            assert self.process is not None
            self.exits.append(await self.process.wait())
            self.ends.append(time.monotonic())
            await asyncio.sleep(RESTART_SECONDS)
            self.process = await self._spawn()

    async def _spawn(self) -> asyncio.subprocess.Process | Child:
        launch = self._launch
        arguments = [
            f"--kubeConfig={self._kubeconfig}",
            f"--health-port={self.health_port}",
            f"--monitoring-port={self.metrics_port}",
            f"--namespace={launch.namespace}",
            f"--lock-namespace={launch.namespace}",
            "--log-format=json",
            f"--lease-duration={launch.lease_seconds}s",
            f"--renew-deadline={launch.lease_seconds * 750}ms",
            f"--retry-period={launch.lease_seconds * 200}ms",
            *launch.flags,
        ]
        environment = {**surroundings(), "LEASE_SECONDS": f"{launch.lease_seconds}", **launch.environment}
        self.starts.append(time.monotonic())
        if launch.fork_server is not None:
            return await launch.fork_server.spawn(launch.module, arguments, environment, self.log)
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", launch.module, *arguments, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _write_files(self) -> None:
        self._launch.folder.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.token_file.write_text(self._launch.token, encoding="ascii")
        # A file of its own: what one process reads, the start of the next must not write.
        authority = self._kubeconfig.with_suffix(".crt")
        authority.write_text(self._launch.authority, encoding="ascii")
        write_kubeconfig(self._kubeconfig, self._launch.server, authority, self.token_file)


def write_kubeconfig(path: Path, server: str, authority: Path, token: Path) -> None:
    """Write a kubeconfig that names the files with the authority's PEM and with the token."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "operator", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "operator"}}],
        "current-context": "context",
    }
    path.write_text(json.dumps(content), encoding="utf-8")


def surroundings() -> dict[str, str]:
    """Return the environment variables that Python needs to find the operator."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("src", "test", "hack"))}


def free_port() -> int:
    """Return a port of loopback that nobody listens on, each time another."""
    while True:
        port = next(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _parsed(line: str) -> dict[str, Any]:
    try:
        parsed: Any = json.loads(line)
    except ValueError:
        return {"raw": line}
    return parsed if isinstance(parsed, dict) else {"raw": line}
