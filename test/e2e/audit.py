"""What the operator asked of the API server, by the server's own log (`hack/cluster up --audit`)."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embedded.layout import layout_of

OPERATOR = "system:serviceaccount:mpi-operator:mpi-operator"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        at: When it reached the server, in seconds since 1970.
        credential: Which token it carried: `JTI=<its id>`.
        verb: As RBAC calls it.
        what: Resource, or resource/subresource.
        namespace: Of the object.
        name: Of the object.
        code: What the server answered.
    """

    at: float
    credential: str
    verb: str
    what: str
    namespace: str
    name: str
    code: int

    @property
    def is_write(self) -> bool:
        """Return whether it asks for a change."""
        return self.verb in _WRITES

    @property
    def is_work(self) -> bool:
        """Return whether only a leader may send it: a write of a job or of what belongs to it."""
        return self.is_write and self.what not in {"leases", "events"}


def requests_of_operators(cluster: str, namespace: str) -> list[Request]:
    """Return the requests of all replicas about `namespace`, in the order of their arrival."""
    # The server is still writing: what follows the last newline is half a line.
    whole = layout_of(cluster).log("audit").read_bytes().rpartition(b"\n")[0]
    # Reading a line as JSON takes a hundred times as long as looking into it.
    entries = (json.loads(line) for line in whole.split(b"\n") if OPERATOR.encode() in line and namespace.encode() in line)
    return sorted(_requests(entries, namespace), key=lambda request: request.at)


def _requests(entries: Iterable[dict[str, Any]], namespace: str) -> Iterator[Request]:
    for entry in entries:
        target = entry.get("objectRef", {})
        if entry["user"]["username"] == OPERATOR and target.get("namespace") == namespace and entry["stage"] == "ResponseComplete":
            yield Request(
                at=datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp(),
                credential=entry["user"].get("extra", {}).get(_CREDENTIAL, [""])[0],
                verb=entry["verb"],
                what="/".join(filter(None, (target["resource"], target.get("subresource", "")))),
                namespace=target["namespace"],
                name=target.get("name", ""),
                code=entry.get("responseStatus", {}).get("code", 0),
            )
