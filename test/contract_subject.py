"""What the contract suite examines: a client, a namespace, and the objects that it makes there."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from fakes.api_server import FakeClient
from mpiop.kube.client import Client
from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Key, Object, WatchEvent
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS, PODS, Resource, Selection

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
KUBECONFIG = os.environ.get("MPIOP_TEST_KUBECONFIG", "")
"""Of a real API server that is to pass the suite too; "" is none."""
CRD = Path(__file__).parents[1] / "manifests" / "base" / "kubeflow.org_mpijobs.yaml"
CONTAINER = {"name": "main", "image": "registry.example.com/none"}


@contextmanager
def refused(reason: str, match: str | None = None) -> Iterator[None]:
    """Expect that the server refuses, and that its answer `is_<reason>`."""
    with pytest.raises(StatusError, match=match) as caught:
        yield
    assert getattr(caught.value, f"is_{reason}")


@dataclass(frozen=True, slots=True)
class Subject:
    """A client and its namespace; `fake` is the client when it is one."""

    client: Client
    namespace: str
    fake: FakeClient | None

    def key(self, name: str) -> Key:
        """Return the key of `name` here."""
        return Key(self.namespace, name)

    def body(self, name: str, *, labels: Mapping[str, str] | None = None, **fields: Any) -> Object:
        """Return an object of any kind."""
        metadata = {"name": name, "namespace": self.namespace} | ({"labels": labels} if labels else {})
        return cast("Object", {"metadata": metadata, **fields})

    async def config_map(self, name: str, *, labels: Mapping[str, str] | None = None, **data: str) -> Object:
        """Create a ConfigMap."""
        return await self.client.create(CONFIG_MAPS, self.body(name, labels=labels, data=data))

    async def mpijob(self, name: str, **metadata: Any) -> Object:
        """Create an MPIJob."""
        spec = {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [CONTAINER]}}}}}
        body = {"apiVersion": MPIJOBS.api_version, "kind": "MPIJob", **self.body(name, spec=spec)}
        body["metadata"] = {**body["metadata"], **metadata}
        return await self.client.create(MPIJOBS, cast("Object", body))

    async def pod(self, name: str) -> Object:
        """Create a Pod that nothing will schedule."""
        spec = {"schedulerName": "nobody", "containers": [CONTAINER]}
        return await self.client.create(PODS, self.body(name, spec=spec))

    async def service_account(self, name: str) -> tuple[str, str]:
        """Create a ServiceAccount and return its user name and a token of it."""
        user = f"system:serviceaccount:{self.namespace}:{name}"
        if self.fake is not None:
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
            extra = {"authentication.kubernetes.io/credential-id": ["JTI=1"]}
            self.fake.server.reviews.users["a.service.account"] = {"username": user, "uid": "1", "groups": groups, "extra": extra}
            return user, "a.service.account"
        await self.client.create(SERVICE_ACCOUNTS, self.body(name))
        token_of = replace(SERVICE_ACCOUNTS, plural=f"serviceaccounts/{name}/token")
        return user, (await self.client.create(token_of, self.body("", spec={})))["status"]["token"]

    async def let_get(self, path: str, group: str) -> None:
        """Let the members of `group` get the nonResourceURL `path`."""
        if self.fake is not None:
            self.fake.server.reviews.allowed.add(("get", path, group))
            return
        namespace = await self.client.get(NAMESPACES, Key("", self.namespace))
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": self.namespace, "uid": namespace["metadata"]["uid"]}
        name = self.namespace
        metadata = {"name": name, "ownerReferences": [owner]}
        role: Any = {"metadata": metadata, "rules": [{"nonResourceURLs": [path], "verbs": ["get"]}]}
        await self.client.create(CLUSTER_ROLES, role)
        reference = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": name}
        binding: Any = {"metadata": metadata, "roleRef": reference, "subjects": [{"kind": "Group", "name": group}]}
        await self.client.create(CLUSTER_ROLE_BINDINGS, binding)

    async def is_gone(self, resource: Resource, name: str) -> bool:
        """Return whether the object does not exist."""
        try:
            await self.client.get(resource, self.key(name))
        except StatusError as error:
            if error.is_not_found:
                return True
            raise
        return False

    async def wait_until_collected(self, resource: Resource, name: str) -> None:
        """Wait until the garbage collector has taken the object."""
        if self.fake is not None:
            self.fake.server.collect_garbage()
        async with asyncio.timeout(60):
            while not await self.is_gone(resource, name):  # noqa: ASYNC110 - the state of a server, not of this process
                await asyncio.sleep(0.2)

    def selection(self, resource: Resource = CONFIG_MAPS, labels: str = "", fields: str = "", *, metadata_only: bool = False) -> Selection:
        """Select objects of this namespace; the one that the server puts into each is left out."""
        own = "metadata.name!=kube-root-ca.crt" if resource == CONFIG_MAPS else ""
        return Selection(resource, self.namespace, labels, ",".join(filter(None, (fields, own))), metadata_only)

    async def events(self, selection: Selection, count: int, *, since: str, **how: Any) -> list[WatchEvent]:
        """Return the first `count` events of a watch."""
        found: list[WatchEvent] = []
        async with (
            asyncio.timeout(30),
            self.client.watch(selection, resource_version=since, timeout_seconds=60, **how) as events,
        ):
            async for event in events:
                found.append(event)
                if len(found) == count:
                    break
        return found


def names(objects: Any) -> list[str]:
    """Return the names of `objects`."""
    return [obj["metadata"]["name"] for obj in objects]


async def install_crd(client: Client) -> None:
    """Let the API server know MPIJobs."""
    crd: dict[str, Any] = yaml.load(CRD.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    try:
        await client.create(CRDS, crd)  # type: ignore[arg-type]
    except StatusError as error:
        if not error.is_already_exists:
            raise
    async with asyncio.timeout(30):
        while "mpijobs" not in await client.discover("kubeflow.org", "v2beta1"):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)
