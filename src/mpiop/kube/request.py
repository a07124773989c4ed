"""A request to the API server as a value, and the interface of transports."""

from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mpiop.kube.objects import Key, WatchEvent
from mpiop.kube.resources import Resource

NO_KEY = Key("", "")
METHODS = {
    "get": "GET",
    "list": "GET",
    "log": "GET",
    "watch": "GET",
    "discover": "GET",
    "create": "POST",
    "patch": "PATCH",
    "update": "PUT",
    "delete": "DELETE",
}


def allow() -> None:
    """Allow every request."""


def ignore(_warning: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        verb: A key of `METHODS`; also the `verb` of metrics and messages.
        resource: The kind of the object.
        key: The object. For a list or watch only the namespace counts; for a create the name is only for messages.
        subresource: For example `status`; "" is the object itself.
        params: Query parameters.
        body: Sent as JSON, or None.
        metadata_only: Ask for `PartialObjectMetadata`.
        projection: What is decoded of the object, or of each one of a list or watch (see `Selection`).
        warn: Called with each warning of a successful answer.
        flow: Requests of different flows take turns when they wait, so a job with a thousand requests does not delay another.
        fencing: Called each time just before `body` is sent; an exception cancels the request. Requests without a body are not fenced.
    """

    verb: str
    resource: Resource
    key: Key = NO_KEY
    subresource: str = ""
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] | None = None
    metadata_only: bool = False
    projection: type[Any] | None = None
    warn: Callable[[str], None] = field(default=ignore, compare=False, repr=False)
    flow: Hashable = field(default=None, compare=False, repr=False)
    fencing: Callable[[], None] = field(default=allow, compare=False, repr=False)

    @property
    def method(self) -> str:
        """Return the HTTP method."""
        return METHODS[self.verb]

    @property
    def path(self) -> str:
        """Return the URL path below the server's address."""
        name = self.key.name if self.verb in {"get", "patch", "update", "delete", "log"} else ""
        return self.resource.path(self.key.namespace, name, self.subresource)

    def __str__(self) -> str:
        """Render as `verb resource[/subresource] namespace/name`: how each error message begins."""
        kind = "/".join(filter(None, (self.resource.plural or self.resource.api_version, self.subresource)))
        return f"{self.verb} {kind} {self.key}".rstrip(" /")


class Transport(Protocol):
    """Sends requests, over HTTP or, in tests, to a server in memory."""

    async def call(self, request: Request) -> dict[str, Any]:
        """Send `request` and return the decoded answer.

        Raises:
            StatusError: The server refused.
            TransportError: There was no usable answer within the deadline.
            CalledOffError: Its fencing kept it from being sent, or from being sent again.
        """
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Send the watch `request` and yield its events as they come; leaving the context closes it.

        The iterator ends when the server ends the stream.

        Raises:
            StatusError: The server refused the watch.
            TransportError: No connection, or a silent or interrupted stream.
        """
        ...

    def separate(self, deadline_seconds: float) -> "Transport":
        """Return a transport to the same server with connections and a deadline of its own."""
        ...

    async def close(self) -> None:
        """Close all connections, those of separated transports too."""
        ...
