"""Where is measured: an embedded control plane with simulated nodes, new for each part of a scenario, or the current cluster on request."""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from bench.audit import requests_of
from bench.objects import mpijob
from bench.operator_process import Access
from bench.scenarios import SMALL
from demonstration.cluster import environment_of, is_current_wanted
from e2e.waiting import until
from faults.ground import NAMESPACE, command, new_token, prepared
from mpiop.kube.client import Client
from mpiop.kube.config import ClientConfig, load_config
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, key_of, uid_of
from mpiop.kube.resources import LEASES, MPIJOBS, Resource, Selection
from mpiop.kube.transport import TransportOptions, connect
from mpiop.leaderelection.record import held

CLUSTER = "bench"
NODES = 10
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_SIMULATED = "type=kwok"
_GONE_SECONDS = 600.0
_LEASE = Key(NAMESPACE, "mpi-operator")
_HELD_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster to measure on.

    Attributes:
        cluster: Name of the embedded cluster, which ends with what is on it; "" is the current one.
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

    @contextlib.asynccontextmanager
    async def namespace(self, name: str, *, waits: bool = True) -> AsyncIterator[str]:
        """Yield a new namespace in which pods can be made; delete it from the current cluster, if it `waits` until all in it is gone."""
        body: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        made = await self.client.create(NAMESPACES, cast("Object", body))
        await until(f"a usable namespace {name}", lambda: self._exists(_ACCOUNTS, Key(name, "default")), timeout_seconds=30)
        try:
            yield name
        finally:
            if not self.cluster:
                await self.client.delete(NAMESPACES, Key("", name), uid=uid_of(made))
                if waits:
                    await until(f"the end of namespace {name}", lambda: self._is_gone(Key("", name)), timeout_seconds=_GONE_SECONDS)

    async def free_lease(self) -> None:
        """Delete the Lease, as if no operator had ever run."""
        with contextlib.suppress(StatusError):
            lease = await self.client.get(LEASES, _LEASE)
            await self.client.delete(LEASES, _LEASE, uid=uid_of(lease))

    @contextlib.asynccontextmanager
    async def without_leader(self) -> AsyncIterator[None]:
        """Let every operator stand by for as long as the block runs: it follows all objects, and does nothing about them."""
        await self.free_lease()
        metadata = {"namespace": _LEASE.namespace, "name": _LEASE.name}
        blank: Any = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
        await self.client.create(LEASES, held(cast("Object", blank), "nobody", _HELD_SECONDS, datetime.now(UTC)))
        try:
            yield
        finally:
            await self.free_lease()

    async def requests_of(self, namespace: str, since: float = 0.0) -> Mapping[str, int]:
        """Stop the API server, and return what operators asked of it about `namespace`; nothing where that is not logged.

        Args:
            namespace: Of the jobs.
            since: Time before which requests do not count, in seconds since 1970.
        """
        if not self.has_audit:
            return {}
        await command("hack/cluster", "stop", "kube-apiserver", "--name", self.cluster)  # it writes what it has kept back
        return requests_of(self.cluster, namespace, since)

    async def _is_gone(self, namespace: Key) -> bool:
        return not await self._exists(NAMESPACES, namespace)

    async def _exists(self, resource: Resource, key: Key) -> bool:
        try:
            await self.client.get(resource, key)
        except StatusError as error:
            if error.is_not_found:
                return False
            raise
        return True


@contextlib.asynccontextmanager
async def place(folder: Path, *, has_audit: bool = False, cluster: str = CLUSTER) -> AsyncIterator[Place]:
    """Yield a place: the current cluster with MPIOP_CLUSTER=current, else a new embedded one, which may log each request.

    Raises:
        RuntimeError: It did not come up; or the current cluster lacks simulated nodes, or our installation, or has an operator at work.
    """
    if is_current_wanted():
        async with _current(folder) as found:
            yield found
        return
    options = ("--kwok", str(NODES), *(("--audit",) if has_audit else ()))
    async with prepared(cluster, folder, options=options) as ground:
        config = load_config(kubeconfig=environment_of(cluster)["KUBECONFIG"])
        await until("watches of MPIJobs, whose definition is new", lambda: _is_watchable(ground.client), timeout_seconds=30)
        await _make_and_delete_one(ground.client)
        yield Place(cluster, config, ground.client, Access(config.server, _authority(config), ground.token), folder, has_audit)


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


@contextlib.asynccontextmanager
async def _current(folder: Path) -> AsyncIterator[Place]:
    config = load_config(kubeconfig=os.environ.get("KUBECONFIG", str(Path.home() / ".kube" / "config")))
    client = await connect(config)
    try:
        nodes = await client.list_page(Selection(_NODES, label_selector=_SIMULATED), resource_version="0")
        if not nodes["items"]:
            raise RuntimeError(f"the current cluster has no simulated node (label {_SIMULATED}): these jobs have images that do not exist")
        try:
            lease: Any = await client.get(LEASES, _LEASE)
        except StatusError:
            lease = {}
        if lease.get("spec", {}).get("holderIdentity"):
            raise RuntimeError(f"an operator is at work: kubectl scale --replicas=0 -n {NAMESPACE} deployment/mpi-operator")
        try:
            token = await new_token(client)
        except KubeError as error:
            raise RuntimeError(f"install CRD and rights first: kubectl apply -f deploy/v2beta1/mpi-operator.yaml ({error})") from error
        yield Place("", config, client, Access(config.server, _authority(config), token), folder)
    finally:
        await client.close()


def _authority(config: ClientConfig) -> str:
    return config.tls.ca_data or Path(config.tls.ca_file).read_text(encoding="ascii")
