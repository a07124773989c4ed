"""Where cases are lived: a real control plane without nodes, and operators as processes."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.operator_process import Access, OperatorProcess, access_of, ours, start_operator
from conformance.follower import Follower
from demonstration.cluster import environment_of
from faults.testbed import command, prepared
from mpiop.kube.client import Client
from mpiop.kube.config import load_config

CLUSTER = "conformance"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane.

    Attributes:
        client: With all rights.
        follower: Sees what happens.
        access: Of operators, with the rights that the manifests give.
        folder: Where logs go.
        cluster: Its name.
    """

    client: Client
    follower: Follower
    access: Access = field(repr=False)
    folder: Path
    cluster: str = CLUSTER

    @contextlib.asynccontextmanager
    async def operator(self, name: str, flags: Sequence[str] = ()) -> AsyncIterator[OperatorProcess]:
        """Let the operator of this checkout lead for as long as the block runs."""
        process = await start_operator(self.access, self.folder, name, ours(flags=flags))
        try:
            await process.until_leading()
            yield process
        finally:
            await process.stop()

    async def stop_api_server(self) -> None:
        """Stop the API server, which then writes what it has kept back of its audit log."""
        await command("hack/cluster", "stop", "kube-apiserver", "--name", self.cluster)


@contextlib.asynccontextmanager
async def control_plane(folder: Path, cluster: str = CLUSTER) -> AsyncIterator[ControlPlane]:
    """Yield a new control plane, which logs every request; it is taken down at the end."""
    async with prepared(cluster, folder, options=("--audit",)) as testbed:
        # It would report of each Pod that no node is there for it, and so would the job, in Stalled.
        await command("hack/cluster", "stop", "kube-scheduler", "--name", cluster)
        config = load_config(kubeconfig=environment_of(cluster)["KUBECONFIG"])
        async with Follower(testbed.client).running() as follower:
            yield ControlPlane(testbed.client, follower, access_of(config, testbed.token), folder, cluster)
