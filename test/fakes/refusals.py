"""Failures that a test asks for, and the log of what was asked of the fake server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key
from mpiop.kube.request import Request
from mpiop.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Action:
    """One write that was tried; `error` is why it did not succeed."""

    verb: str
    resource: Resource
    key: Key
    body: Mapping[str, Any] | None
    subresource: str = ""
    error: KubeError | None = None

    def __str__(self) -> str:
        """Render as `create Pod ns/name`, `patch MPIJob/status ns/name`."""
        kind = f"{self.resource.kind}/{self.subresource}" if self.subresource else self.resource.kind
        return f"{self.verb} {kind} {self.key}"


@dataclass(slots=True)
class Refusal:
    """What is to fail, how, and how often (None: until it is lifted)."""

    verb: str
    resource: Resource | None
    name: str
    error: KubeError
    times: int | None = None
    takes_effect: bool = False
    namespace: str = ""

    def applies_to(self, request: Request) -> bool:
        """Return whether `request` is meant; `*`, None and "" mean any."""
        return (
            self.times != 0
            and self.verb in {"*", request.verb}
            and self.resource in {None, request.resource}
            and self.name in {"", request.key.name}
            and self.namespace in {"", request.key.namespace}
        )

    def use(self) -> None:
        if self.times is not None:
            self.times -= 1


def status_error(request: Request, code: int, reason: str, message: str, **details: Any) -> StatusError:
    """Return the error that the API server's Status gives."""
    return StatusError(str(request), {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details})
