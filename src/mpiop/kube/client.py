"""The verbs of the Kubernetes API as requests.

The client is thin on purpose: it knows parameters, preconditions and the shapes of answers. Connections, credentials,
deadlines and retries belong to the `Transport` (see docs/adr/0002-transport.md).
"""

from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.items import Items
from mpiop.kube.objects import Key, Object, ObjectList, PartialObjectMetadata, WatchEvent, key_of
from mpiop.kube.request import Request, Transport, allow, ignore
from mpiop.kube.resources import PODS, Resource, Selection


class Client:
    """Access to one API server.

    Every call but a watch has a deadline. Every method raises `StatusError` when the server refused and `TransportError`
    when there was no usable answer: a write may then have taken effect or not.
    """

    def __init__(self, transport: Transport, fencing: Callable[[], None] = allow, field_manager: str = "") -> None:
        """Send requests with `transport`, which the client closes.

        Args:
            transport: Sends them.
            fencing: Called just before each write is sent.
            field_manager: Who the writer is in `metadata.managedFields`; "" is what the server makes of the user agent.
        """
        self._transport = transport
        self._fencing = fencing
        self._flow: Hashable = None
        self._writer_params = _present(fieldManager=field_manager)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False, projection: type[Any] | None = None) -> Object:
        """Return the object `key`, its kind and metadata alone, or what `projection` has; read from a quorum of the server's store."""
        projection = PartialObjectMetadata if metadata_only else projection
        return _object(await self._call(Request("get", resource, _named(key), metadata_only=metadata_only, projection=projection)))

    async def list_page(
        self,
        selection: Selection,
        *,
        resource_version: str,
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return one page of a list.

        Args:
            selection: What to list.
            resource_version: "" is the newest, "0" is whatever the server has at hand, another is at least that.
            limit: Objects a page at most; 0 is all.
            continue_token: `metadata.continue` of the page before; the server refuses a `resource_version` together with it.

        Returns:
            The page; its items are decoded when they are asked for. Each has its apiVersion and kind.
        """
        params = _selectors(selection) | _present(
            resourceVersion=resource_version,
            limit=str(limit or ""),
            **{"continue": continue_token},
        )
        request = _reading("list", selection, params)
        return _list(request, await self._call(request))

    async def read_log(self, pod: Key, container: str, *, lines: int, max_bytes: int, previous: bool) -> str:
        """Return the last `lines` of the log of a container, cut off after `max_bytes`; `previous` reads that before its last restart."""
        params = _present(container=container, tailLines=str(lines), limitBytes=str(max_bytes), previous="true" if previous else "")
        answer = await self._call(Request("log", PODS, _named(pod), "log", params=params))
        return str(answer["log"])

    def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, send_initial_events: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch `selection`: `async with client.watch(…) as events: async for event in events: …`.

        Bookmarks are always asked for. An event of type ERROR is yielded like the others; its object is a `metav1.Status`.

        Args:
            selection: What to watch.
            resource_version: Events after this one; "" and "0" begin with an ADDED for each object.
            timeout_seconds: After which the server ends the stream.
            send_initial_events: Stream the objects first, up to a bookmark annotated `k8s.io/initial-events-end: "true"`.
        """
        params = _selectors(selection) | _present(resourceVersion=resource_version)
        params |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_seconds)}
        if send_initial_events:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return self._transport.stream(_reading("watch", selection, params))

    async def create(
        self,
        resource: Resource,
        body: Object,
        *,
        is_dry_run: bool = False,
        metadata_only: bool = False,
        warn: Callable[[str], None] = ignore,
    ) -> Object:
        """Create `body` in the namespace that it names.

        Args:
            resource: What it is.
            body: The object.
            is_dry_run: Store nothing.
            metadata_only: Return `PartialObjectMetadata`, which costs the server and us less than a large object.
            warn: Called with each warning, such as `unknown field "spec.x"` (the server's default `fieldValidation=Warn`).

        Returns:
            The object as stored; of a dry run, as it would be.
        """
        request = Request(
            "create",
            resource,
            key_of(body),
            params=self._writer_params | ({"dryRun": "All"} if is_dry_run else {}),
            body=body,
            metadata_only=metadata_only,
            projection=PartialObjectMetadata if metadata_only else None,
            warn=warn,
            fencing=self._fencing,
        )
        return _object(await self._call(request))

    async def patch(
        self, resource: Resource, key: Key, body: Mapping[str, Any], *, subresource: str = "", metadata_only: bool = False
    ) -> Object:
        """Merge `body` (RFC 7386) into the object `key` and return the result, or its kind and metadata alone.

        `body["metadata"]` should carry the `resourceVersion` that the change was computed from, and the `uid` where it is known.
        """
        request = Request(
            "patch",
            resource,
            _named(key),
            subresource,
            self._writer_params,
            body,
            metadata_only=metadata_only,
            projection=PartialObjectMetadata if metadata_only else None,
            fencing=self._fencing,
        )
        return _object(await self._call(request))

    async def update(self, resource: Resource, body: Object) -> Object:
        """Replace the object (PUT), which must carry its resourceVersion, and return the result."""
        request = Request("update", resource, _named(key_of(body)), "", self._writer_params, body, fencing=self._fencing)
        return _object(await self._call(request))

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, propagation: str = "Background", is_forced: bool = False
    ) -> Object | None:
        """Delete the object `key` if its UID is `uid`: never a successor of the same name.

        Args:
            resource: What it is.
            key: Its key.
            uid: Its UID; if the object has another one, the server reports a conflict.
            propagation: What happens to its dependents: `Background`, `Foreground` or `Orphan`.
            is_forced: Without a grace period: a pod is gone at once, whether or not its node has ended it.

        Returns:
            The kind and metadata of the object that waits for its finalizers or grace period, or None if the server
            reports only that it is gone.
        """
        if not uid:
            raise ValueError(f"delete {resource.plural} {key}: no uid given, and a successor of the same name must not be hit")
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation,
        }
        if is_forced:
            options["gracePeriodSeconds"] = 0
        request = Request(
            "delete", resource, _named(key), body=options, metadata_only=True, projection=PartialObjectMetadata, fencing=self._fencing
        )
        answer = await self._call(request)
        return None if answer.get("kind") == "Status" else _object(answer)

    async def discover(self, group: str, version: str) -> frozenset[str]:
        """Return the plurals of the resources that the server serves in `group/version`; none when it does not know it."""
        request = Request("discover", Resource(group, version, "", "APIResourceList", namespaced=False))
        try:
            answer = await self._call(request)
        except StatusError as error:
            if error.is_not_found:
                return frozenset()
            raise
        return frozenset(str(row["name"]) for row in answer.get("resources") or () if "/" not in row["name"])

    def separate(self, deadline_seconds: float) -> "Client":
        """Return a client with connections of its own and a short deadline, which no other traffic can starve.

        It is closed with this one.
        """
        return Client(self._transport.separate(deadline_seconds))

    def fenced(self, fencing: Callable[[], None], field_manager: str = "") -> "Client":
        """Return a client over the same connections whose writes `fencing` may call off, up to the moment when they are sent.

        A process may be frozen between a decision and its request, and a request may wait for a connection or for a retry. It must not be
        sent after that without another check.

        Args:
            fencing: Raises `CalledOffError` when nothing may be written any more.
            field_manager: Who the writer is in `metadata.managedFields`.
        """
        return Client(self._transport, fencing, field_manager)

    def of_flow(self, flow: Hashable) -> Self:
        """Return a client like this one whose requests take turns with those of other flows, if they have to wait."""
        client = copy(self)
        client._flow = flow  # noqa: SLF001 - one of its own kind
        return client

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def _call(self, request: Request) -> dict[str, Any]:
        return await self._transport.call(replace(request, flow=self._flow))


def _named(key: Key) -> Key:
    """Return `key`; raise ValueError if it has no name."""
    if not key.name:
        raise ValueError(f"an object needs a name, and {key!r} has none: the request would mean the whole collection")
    return key


def _present(**params: str) -> dict[str, str]:
    """Return the query parameters that are not empty."""
    return {name: value for name, value in params.items() if value}


def _reading(verb: str, selection: Selection, params: Mapping[str, str]) -> Request:
    key = Key(selection.namespace, "")
    return Request(verb, selection.resource, key, params=params, metadata_only=selection.metadata_only, projection=selection.projection)


def _selectors(selection: Selection) -> dict[str, str]:
    return _present(labelSelector=selection.label_selector, fieldSelector=selection.field_selector)


def _object(answer: dict[str, Any]) -> Object:
    return cast("Object", answer)


def _list(request: Request, answer: dict[str, Any]) -> ObjectList:
    if not isinstance(answer.get("items"), Items):
        kind = answer.get("kind", "thing without kind")
        raise TransportError(f"{request}: the answer is a {kind}, not a list; is there a proxy in between?")
    return cast("ObjectList", answer)
