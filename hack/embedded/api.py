"""The API server as the commands see it: a few requests with the administrator's certificate."""

import http.client
import json
import ssl
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from embedded.errors import ClusterError
from embedded.layout import Layout

TIMEOUT_SECONDS = 10
OK, CREATED, NOT_FOUND, CONFLICT = 200, 201, 404, 409
PLURALS = {
    "Node": "nodes",
    "Service": "services",
    "EndpointSlice": "endpointslices",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}


def client_context(certificates: Path) -> ssl.SSLContext:
    """Return a TLS context that trusts the cluster and is its administrator."""
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
    return context


class ApiClient(AbstractContextManager["ApiClient"]):
    """One connection to the API server, made with the first request."""

    def __init__(self, layout: Layout, address: str, port: int, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Prepare a connection to `address`:`port`."""
        context = client_context(layout.certificates)
        self._connection = http.client.HTTPSConnection(address, port, timeout=timeout_seconds, context=context)

    def __exit__(self, *_error: object) -> None:
        """Close the connection."""
        self._connection.close()

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request.

        Returns:
            The HTTP status and the decoded body.

        Raises:
            ClusterError: The server does not answer.
        """
        try:
            content = None if body is None else json.dumps(body)
            self._connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            raise ClusterError(
                f"{method} {path}: the API server does not answer ({error}); see: hack/cluster logs kube-apiserver"
            ) from error

    def create(self, thing: dict[str, Any]) -> None:
        """Create an object unless one of its name is there.

        Raises:
            ClusterError: The server refused.
        """
        status, answer = self.request("POST", collection(thing), thing)
        if status not in {CREATED, CONFLICT}:
            raise ClusterError(f"create {thing['kind']} {thing['metadata']['name']}: {status} {answer.get('message')}")


def collection(thing: dict[str, Any]) -> str:
    """Return the path of the collection that `thing` belongs to."""
    version = thing["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = thing["metadata"].get("namespace")
    return f"{root}/namespaces/{namespace}/{PLURALS[thing['kind']]}" if namespace else f"{root}/{PLURALS[thing['kind']]}"
