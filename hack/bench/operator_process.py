"""An operator as a process of its own, and what the kernel and its metrics report about it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from demonstration.cluster import ROOT
from e2e.operator_pods import samples_of
from e2e.waiting import until
from faults.replica import free_port, write_kubeconfig
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.config import SERVICE_ACCOUNT

STOP_SECONDS = 10.0
READY_SECONDS = 60.0
LEAD_SECONDS = 60.0
LOOK_SECONDS = 0.02
QUIET_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
QUIET_CPU_SECONDS = 0.02
"""What the lease and bookmarks of watches may take in `QUIET_SECONDS`; one sync with a write takes more in any second with many."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Access:
    """How the operator reaches the API server: with the rights that the manifests give it, and no more.

    Attributes:
        server: URL.
        authority: PEM of who signed the server's certificate.
        token: Of the operator's service account.
    """

    server: str
    authority: str
    token: str


def access_of(config: ClientConfig, token: str) -> Access:
    """Return the access to the server of `config` with that token."""
    return Access(config.server, config.tls.ca_data or Path(config.tls.ca_file).read_text(encoding="ascii"), token)


_MOUNT_ACCOUNT: Final = 'mount -t tmpfs none /run; mkdir -p "$0"; mount --bind "$1" "$0"; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class Program:
    """What is started.

    Attributes:
        name: What its log is called.
        command: Without the flags for the address of the API server and where to serve metrics.
        ready_url: Which answers when it is ready; its metrics are served at the same host.
        environment: Besides PATH.
        is_in_pod: It finds the API server as in a Pod, by environment and service account, and else by a kubeconfig.
    """

    name: str
    command: Sequence[str]
    ready_url: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    is_in_pod: bool = False


def ours(source: Path = ROOT, flags: Sequence[str] = ()) -> Program:
    """Return the operator of the project at `source`, with its default flags and these."""
    port = free_port()
    command = (sys.executable, "-m", "mpiop", "--log-format=json", f"--health-port={port}", *flags)
    return Program("ours", command, f"http://127.0.0.1:{port}/readyz", {"PYTHONPATH": str(source / "src")}, is_in_pod=True)


class OperatorProcess:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process, ready_url: str, metrics_port: int) -> None:
        """Hold on to `process`, which reports at `ready_url` that it is ready, and serves metrics at another port of that host."""
        self._process = process
        self._ready_url = ready_url
        self._metrics_url = f"http://{urlsplit(ready_url).hostname}:{metrics_port}/metrics"

    async def until_ready(self) -> None:
        """Wait until it reports that it is ready.

        Raises:
            RuntimeError: It ended instead.
            TimeoutError: It did not become ready.
        """
        await until("a ready operator", self.is_ready, timeout_seconds=READY_SECONDS, look_seconds=LOOK_SECONDS)

    async def until_leading(self) -> None:
        """Wait until it leads."""

        async def is_leading() -> bool:
            return (await self.metrics()).get("mpi_operator_is_leader") == 1

        await self.until_ready()  # before that there may be nobody who answers
        await until("a leader", is_leading, timeout_seconds=LEAD_SECONDS)

    @contextlib.asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Continue while it lives.

        Raises:
            RuntimeError: It ended, which ends the block too.
        """
        block, ended = asyncio.current_task(), asyncio.create_task(self._process.wait())
        if block is None:
            raise RuntimeError("only a task can be told that the operator has ended")
        ended.add_done_callback(lambda task: None if task.cancelled() else block.cancel())
        try:
            yield
        except asyncio.CancelledError:
            if not ended.done():
                raise
            block.uncancel()
            raise RuntimeError(f"the operator ended with {ended.result()}; its log says why (a busy machine: the lease was lost)") from None
        finally:
            ended.cancel()

    async def until_quiet(self) -> None:
        """Wait until it has nothing more to do: it uses no processor time but that of its lease.

        Raises:
            RuntimeError: It continued for minutes.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    before = self.cpu_seconds()
                    await asyncio.sleep(QUIET_SECONDS)
                    if self.cpu_seconds() - before <= QUIET_CPU_SECONDS:
                        return
        except TimeoutError as error:
            raise RuntimeError(f"the operator is still busy after {PATIENCE_SECONDS:.0f} s without a job") from error

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, all threads together, to 10 ms (proc_pid_stat(5))."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mib(self) -> float:
        """Return its resident memory."""
        return self._status_mib("VmRSS")

    def peak_mib(self) -> float:
        """Return the most resident memory that it ever had."""
        return self._status_mib("VmHWM")

    async def metrics(self) -> dict[str, float]:
        """Return each sample that it serves at /metrics, by series."""
        async with aiohttp.ClientSession() as session, session.get(self._metrics_url) as answer:
            return samples_of(await answer.text())

    async def stop(self) -> None:
        """End it in order, by force when that takes too long."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def tell_to_stop(self) -> None:
        """Send SIGTERM and do not wait."""
        self._process.send_signal(signal.SIGTERM)

    async def is_ready(self) -> bool:
        """Return whether it reports that it is ready.

        Raises:
            RuntimeError: It has ended.
        """
        if self._process.returncode is not None:
            raise RuntimeError(f"the operator ended with {self._process.returncode} before it was ready; look at its log")
        try:
            async with aiohttp.ClientSession() as session, session.get(self._ready_url) as answer:
                return answer.ok and bool(await self.metrics())  # each of the two is served on a port of its own
        except aiohttp.ClientError:
            return False

    def _status_mib(self, name: str) -> float:
        status = Path(f"/proc/{self._process.pid}/status")
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"the operator has ended: {status} has no {name}")


async def start_operator(access: Access, folder: Path, name: str, program: Program) -> OperatorProcess:
    """Start an operator.

    Args:
        access: How it reaches the API server.
        folder: Where its kubeconfig, token and log go.
        name: What these files are called.
        program: Which operator.
    """
    command, environment = _with_access(program, access, folder, name)
    metrics_port = free_port()
    with (folder / f"{name}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(*command, f"--monitoring-port={metrics_port}"),
            env={"PATH": os.environ["PATH"], **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Processor time is shared out by sessions (sched_autogroup): in ours it would share that of the watcher, as no Pod does.
            start_new_session=True,
        )
    return OperatorProcess(process, program.ready_url, metrics_port)


def _with_access(program: Program, access: Access, folder: Path, name: str) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return command and environment by which `program` reaches the API server."""
    account = folder / name
    account.mkdir(parents=True, exist_ok=True)
    (account / "ca.crt").write_text(access.authority, encoding="ascii")
    (account / "token").write_text(access.token, encoding="ascii")
    if not program.is_in_pod:
        write_kubeconfig(account / "kubeconfig", access.server, account / "ca.crt", account / "token")
        return (*program.command, f"--kubeConfig={account / 'kubeconfig'}"), program.environment
    server = urlsplit(access.server)
    host = {"KUBERNETES_SERVICE_HOST": server.hostname or "", "KUBERNETES_SERVICE_PORT": str(server.port)}
    # A mount namespace of its own, in which the account is where a Pod has it; the process stays the same.
    unshare = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))
    return (*unshare, "sh", "-ec", _MOUNT_ACCOUNT, str(SERVICE_ACCOUNT), str(account), *program.command), {**program.environment, **host}
