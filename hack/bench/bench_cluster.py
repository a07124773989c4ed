"""Where is measured: an embedded cluster, with simulated nodes or a real one."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from bench.objects import mpijob
from bench.operator_process import Access, access_of
from bench.scenarios import SMALL
from demonstration.cluster import environment_of
from e2e.audit import requests_of_operators
from e2e.operator_pods import samples_of
from e2e.waiting import until
from faults.testbed import NAMESPACE, command, make_namespace, prepared
from mpiop.kube.client import Client
from mpiop.kube.client_config import ClientConfig
from mpiop.kube.config import load_config
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, key_of, uid_of
from mpiop.kube.resources import LEASES, MPIJOBS, Selection
from mpiop.kube.transport import TransportOptions, connect

LEASE = Key(NAMESPACE, "mpi-operator")


@dataclass(frozen=True, slots=True)
class BenchCluster:
    """A cluster to measure on.

    Attributes:
        cluster: Name of the embedded cluster.
        client: With all rights: the driver's and the watcher's.
        access: The operator's.
        folder: Where logs go.
        has_audit: Whether the API server logs each request.
    """

    cluster: str
    config: ClientConfig = field(repr=False)
    client: Client
    access: Access = field(repr=False)
    folder: Path
    has_audit: bool = False

    @contextlib.asynccontextmanager
    async def client_of(self, most_in_flight: int) -> AsyncIterator[Client]:
        """Yield one more client with all rights, which has at most so many requests under way."""
        client = await connect(self.config, TransportOptions(deadline_seconds=60.0, most_in_flight=most_in_flight))
        try:
            yield client
        finally:
            await client.close()

    async def make_namespace(self, name: str) -> None:
        """Make a namespace and return when Pods can be made in it."""
        await make_namespace(self.client, name)

    async def free_lease(self) -> None:
        """Delete the Lease, as if no operator had ever run."""
        with contextlib.suppress(StatusError):
            lease = await self.client.get(LEASES, LEASE)
            await self.client.delete(LEASES, LEASE, uid=uid_of(lease))

    async def api_server_metrics(self) -> Mapping[str, float]:
        """Return each sample that the API server serves at /metrics, by series."""
        return samples_of(await command("kubectl", "get", "--raw", "/metrics", environment=environment_of(self.cluster)))

    async def requests_of(self, namespace: str) -> Mapping[str, int]:
        """Stop the API server, and count what operators asked of it about objects of `namespace`; nothing where that is not logged.

        Returns:
            How many requests of each kind: `create pods`, `patch mpijobs/status`, `patch pods: 409`.
        """
        if not self.has_audit:
            return {}
        await command("hack/cluster", "stop", "kube-apiserver", "--name", self.cluster)  # it writes what it has kept back
        counts = Counter[str]()
        for each in requests_of_operators(self.cluster, namespace):
            counts[f"{each.verb} {each.what}" + (f": {each.code}" if each.code >= HTTPStatus.BAD_REQUEST else "")] += 1
        return dict(sorted(counts.items()))


@contextlib.asynccontextmanager
async def bench_cluster(cluster: str, folder: Path, *, nodes: int = 0, has_audit: bool = False) -> AsyncIterator[BenchCluster]:
    """Yield a new embedded cluster, with so many simulated nodes or, if that is 0, a real one; it is taken down at the end.

    Raises:
        RuntimeError: It did not come up.
    """
    options = (*(("--kwok", str(nodes)) if nodes else ()), *(("--audit",) if has_audit else ()))
    async with prepared(cluster, folder, options=options, has_node=not nodes) as testbed:
        config = load_config(kubeconfig=environment_of(cluster)["KUBECONFIG"])
        await until("watches of MPIJobs, whose definition is new", lambda: _is_watchable(testbed.client))
        await _make_and_delete_one(testbed.client)
        yield BenchCluster(cluster, config, testbed.client, access_of(config, testbed.token), folder, has_audit)


async def _make_and_delete_one(client: Client) -> None:
    """Make an MPIJob that nobody runs: for the first one of a new definition the API server takes seconds."""
    made = await client.create(MPIJOBS, mpijob(SMALL[0], "default", 0))
    await client.delete(MPIJOBS, key_of(made), uid=uid_of(made))


async def _is_watchable(client: Client) -> bool:
    try:
        async with client.watch(Selection(MPIJOBS), resource_version="", timeout_seconds=1):
            return True
    except StatusError as error:
        if error.is_not_found or error.code == HTTPStatus.TOO_MANY_REQUESTS:
            return False
        raise
