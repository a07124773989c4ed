"""A rival for the Lease that elects its leader with client-go, as the Go operator does: kube-scheduler, for Pods that do not exist."""

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.waiting import until
from embedded.build import programs_of
from embedded.layout import layout_of
from faults.testbed import FaultTestbed
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key
from mpiop.kube.resources import LEASES

STOP_SECONDS = 10
_STANDS = "acquire leader lease"


@dataclass
class Rival:
    """Processes that follow one another, each with an identity of its own.

    Attributes:
        configuration: File with its Lease and the address of the API server.
        log: What the newest process reports.
    """

    configuration: Path
    log: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and return when it stands for election."""
        program = programs_of(("kubernetes",))["kube-scheduler"]
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                program, f"--config={self.configuration}", "--secure-port=0", stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        await until("a rival that stands for election", self._stands)

    async def end(self, number: signal.Signals) -> None:
        """Send a signal that ends it, and return when it has ended."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)
            await asyncio.wait_for(self.process.wait(), STOP_SECONDS)

    async def _stands(self) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, self.log.read_text(encoding="utf-8")
        return _STANDS in self.log.read_text(encoding="utf-8").lower()


@contextlib.asynccontextmanager
async def rival_of(testbed: FaultTestbed, namespace: str, *, lease_seconds: int) -> AsyncIterator[Rival]:
    """Yield a rival for the Lease `mpi-operator` of the namespace, not yet started; whatever runs is ended."""
    folder = testbed.folder / namespace
    configuration = folder / "rival.json"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(layout_of(testbed.cluster).kubeconfig)},
        "profiles": [{"schedulerName": "rival"}],
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": "mpi-operator",
            "resourceNamespace": namespace,
            "leaseDuration": f"{lease_seconds}s",
            "renewDeadline": f"{lease_seconds - 1}s",
            "retryPeriod": "1s",
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    configuration.write_text(json.dumps(content), encoding="utf-8")
    rival = Rival(configuration, folder / "rival.log")
    try:
        yield rival
    finally:
        await rival.end(signal.SIGKILL)


@dataclass
class Watched:
    """The Lease `mpi-operator` of a namespace, as it was last read."""

    testbed: FaultTestbed
    namespace: str
    spec: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def holder(self) -> str:
        """Return who holds it; "" is nobody."""
        return str(self.spec.get("holderIdentity") or "")

    async def until_held(self, *, not_by: str) -> str:
        """Return who holds it, as soon as somebody other than `not_by` does."""

        async def is_held() -> bool:
            await self._read()
            return self.holder not in {"", not_by}

        await until(f"a holder of the lease other than {not_by!r}", is_held)
        return self.holder

    async def until_renewed(self, times: int) -> None:
        """Return when it has been renewed so many times more."""
        seen = set[str]()

        async def is_renewed() -> bool:
            await self._read()
            seen.add(self.spec["renewTime"])
            return len(seen) > times

        await until(f"{times} renewals of the lease", is_renewed)

    async def _read(self) -> None:
        with contextlib.suppress(StatusError):  # before the first holder makes it
            wire: Any = await self.testbed.client.get(LEASES, Key(self.namespace, "mpi-operator"))
            self.spec = wire["spec"]
