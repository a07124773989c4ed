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


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A right as RBAC has it: a verb on a resource, or resource/subresource, of an API group."""

    verb: str
    group: str
    resource: str


@dataclass(frozen=True, slots=True)
class Rights:
    """What the operator asked for.

    Attributes:
        used: What it was let do.
        refused: What it was not.
        secrets: Names of the Secrets that were asked for or made.
    """

    used: set[Right]
    refused: set[Right]
    secrets: set[str]


def rights_asked_for(cluster: str) -> Rights:
    """Return what all replicas on a cluster have asked for since it is up, in all namespaces."""
    found = Rights(set(), set(), set())
    for entry in entries(cluster, OPERATOR):
        target = entry.get("objectRef", {})
        if entry["user"]["username"] != OPERATOR or "resource" not in target:
            continue
        right = Right(entry["verb"], target.get("apiGroup", ""), resource_of(target))
        is_allowed = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
        (found.used if is_allowed else found.refused).add(right)
        if right.resource == "secrets" and "name" in target:
            found.secrets.add(target["name"])
    return found


def resource_of(target: dict[str, Any]) -> str:
    """Return resource, or resource/subresource, of an entry's `objectRef`."""
    return "/".join(filter(None, (target.get("resource", ""), target.get("subresource", ""))))


def entries(cluster: str, *words: str) -> Iterator[dict[str, Any]]:
    """Yield the entries that have all these words somewhere."""
    newest = layout_of(cluster).log("audit")
    # At 100 MB the server begins another file, and names the old one by the time.
    for log in (*sorted(newest.parent.glob(f"{newest.stem}-*{newest.suffix}")), newest):
        with log.open(encoding="utf-8") as lines:
            # Reading a line as JSON takes a hundred times as long as looking into it. The last line may still be half.
            yield from (json.loads(line) for line in lines if line.endswith("\n") and all(word in line for word in words))


def requests_of_operators(cluster: str, namespace: str) -> list[Request]:
    """Return the requests of all replicas about `namespace`, in the order of their arrival."""
    return sorted(_requests(entries(cluster, OPERATOR, namespace), namespace), key=lambda request: request.at)


def _requests(found: Iterable[dict[str, Any]], namespace: str) -> Iterator[Request]:
    for entry in found:
        target = entry.get("objectRef", {})
        if entry["user"]["username"] == OPERATOR and target.get("namespace") == namespace and entry["stage"] == "ResponseComplete":
            yield Request(
                at=datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp(),
                credential=entry["user"].get("extra", {}).get(_CREDENTIAL, [""])[0],
                verb=entry["verb"],
                what=resource_of(target),
                namespace=target["namespace"],
                name=target.get("name", ""),
                code=entry.get("responseStatus", {}).get("code", 0),
            )
