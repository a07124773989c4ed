"""What all runs share: a control plane with the CRD, the operator's real rights, a token with them, and certificates for the proxies."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import yaml

from demonstration.cluster import ROOT, environment_of
from e2e.waiting import until
from embedded.layout import state_folder
from embedded.locks import locked
from fakes.certificates import Authority
from fakes.http_server import server_context
from faults.change_feed import ChangeFeed
from faults.fork_server import ForkServer, fork_server
from faults.proxy import Upstream
from faults.replica import surroundings
from mpiop.kube.client import Client
from mpiop.kube.config import load_config
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import Resource
from mpiop.kube.tls import TLSConfig
from mpiop.kube.transport import TransportOptions, connect

NAMESPACE = "mpi-operator"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BASE = ROOT / "manifests" / "base"
APPLIED = frozenset({"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"})
TOKEN_SECONDS = 3 * 3600
NODE = "of-the-launchers"
"""There is no machine behind it: the driver plays its kubelet."""
UP = ("--control-plane-only", "--admission-plugins=OwnerReferencesPermissionEnforcement")
"""How a cluster of runs is brought up. With the plugin (row F72) who makes an object needs the right to block its owner's deletion."""
PATIENT = TransportOptions(deadline_seconds=30.0)
"""The driver does not give up because the machine is busy."""
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class FaultTestbed:
    """A control plane, ready for runs.

    Attributes:
        cluster: Name of the embedded cluster.
        client: With all rights: the driver's.
        change_feed: Notifies of changes, for as long as it is `running`.
        upstream: Where the proxies forward to.
        authority: PEM of who signed the proxies' certificate.
        context: The proxies' certificate.
        token: Of the operator's service account, with the rights that the manifests give and no more.
        folder: Where logs and traces go.
        lease_seconds: Lease duration of the operators.
        fork_server: Starts operators; None leaves that to the driver's own process.
    """

    cluster: str
    client: Client
    change_feed: ChangeFeed
    upstream: Upstream
    authority: str
    context: ssl.SSLContext = field(repr=False)
    token: str = field(repr=False)
    folder: Path
    lease_seconds: int = 2
    fork_server: ForkServer | None = field(default=None, repr=False)

    @property
    def patience(self) -> float:
        """Return by what to multiply times that count how quick the machine is: a longer lease is for a busy one."""
        return max(1.0, self.lease_seconds / 3)

    async def control(self, *arguments: str) -> None:
        """Run `hack/cluster` on the cluster: `control("restart", "etcd")`."""
        await command("hack/cluster", arguments[0], *arguments[1:], "--name", self.cluster)


async def command(*arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> str:
    """Run a command in the project's folder and return what it printed.

    Raises:
        RuntimeError: It failed; the message is what it reported.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments, cwd=ROOT, env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate(stdin.encode())
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {err.decode().strip() or out.decode().strip()}")
    return out.decode()


@contextlib.asynccontextmanager
async def prepared(
    cluster: str, folder: Path, *, lease_seconds: int = 2, keep: bool = False, has_node: bool = False, options: Sequence[str] = ()
) -> AsyncIterator[FaultTestbed]:
    """Yield a testbed on an embedded cluster of that name, brought up with more `options`, taken down at the end unless `keep`.

    It is a control plane alone, unless it `has_node`: a real one. Anyone who wants the same cluster meanwhile waits, for it ends with us.
    """
    waiting = f"Waiting for another command that uses cluster {cluster!r}"
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(locked(state_folder() / f"{cluster}.run.lock", lambda: print(waiting)))  # noqa: T201
        if not keep:
            stack.push_async_callback(command, "hack/cluster", "down", "--name", cluster)
        await command("hack/cluster", "up", "--name", cluster, *(UP[1:] if has_node else UP), *options)
        environment = environment_of(cluster)
        client = await connect(load_config(kubeconfig=environment["KUBECONFIG"]), PATIENT)
        stack.push_async_callback(client.close)
        made = await stack.enter_async_context(fork_server(surroundings()))
        yield replace(await _prepare(cluster, client, environment, folder), lease_seconds=lease_seconds, fork_server=made)


async def _prepare(cluster: str, client: Client, environment: dict[str, str], folder: Path) -> FaultTestbed:
    rendered = await command("kubectl", "kustomize", str(BASE), environment=environment)
    documents = [each for each in yaml.safe_load_all(rendered) if each["kind"] in APPLIED]
    everything = json.dumps({
        "apiVersion": "v1",
        "kind": "List",
        "items": [*documents, *_lease_rights(), {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}],
    })
    await command("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=everything, environment=environment)
    await _until_established(environment)
    config = load_config(kubeconfig=environment["KUBECONFIG"])
    authority = Authority()
    return FaultTestbed(
        cluster=cluster,
        client=client,
        change_feed=ChangeFeed(client),
        upstream=Upstream(config.server, _trust(config.tls)),
        authority=authority.certificate,
        context=server_context(authority.issue("fault-proxy")),
        token=await new_token(client),
        folder=folder,
    )


async def make_namespace(client: Client, name: str) -> None:
    """Make a namespace, and return when Pods can be made in it: their service account comes a little later."""
    body: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, body)

    async def is_usable() -> bool:
        try:
            await client.get(ACCOUNTS, Key(name, "default"))
        except StatusError as error:
            if error.is_not_found:
                return False
            raise
        return True

    await until(f"a usable namespace {name}", is_usable)


async def delete_namespace(client: Client, name: str) -> None:
    """Delete a namespace, and do not wait for its end."""
    made = await client.get(NAMESPACES, Key("", name))
    await client.delete(NAMESPACES, Key("", name), uid=uid_of(made))


async def _until_established(environment: dict[str, str]) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(RuntimeError):  # while the CRD has no conditions at all, kubectl fails at once
                await command("kubectl", "wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", environment=environment)
                return


def _trust(tls: TLSConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca_file or None, cadata=tls.ca_data or None)
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    return context


async def new_token(client: Client) -> str:
    """Return a new token of the operator's service account."""
    requests = Resource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest")
    accounts = Resource("", "v1", f"serviceaccounts/{NAMESPACE}/token", "TokenRequest")
    body: Any = {
        "apiVersion": requests.api_version,
        "kind": requests.kind,
        "metadata": {"namespace": NAMESPACE},
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    answer = cast("dict[str, Any]", await client.create(accounts, cast("Object", body)))
    token: str = answer["status"]["token"]
    return token


def _lease_rights() -> list[dict[str, Any]]:
    """Return what lets the operator have its lease anywhere: in these runs each is in the namespace of its run."""
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "watch", "update"]}]
    name = {"metadata": {"name": "faults-leases"}}
    subject = {"kind": "ServiceAccount", "name": NAMESPACE, "namespace": NAMESPACE}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "faults-leases"}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", **name, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", **name, "roleRef": reference, "subjects": [subject]},
    ]
