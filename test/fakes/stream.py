"""Watches of the fake API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fakes.collection import selected
from fakes.semantics import Json, copied
from fakes.storage import Change, Storage
from mpiop.kube.answers import decode_event
from mpiop.kube.errors import TransportError
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request

BOOKMARK_SECONDS = 60.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@asynccontextmanager
async def open_stream(storage: Storage, request: Request, check: Callable[[], object]) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """Answer the watch `request`; `check` raises when it is to be refused."""
    check()
    past = list(_past(storage, request))
    changes = storage.listen()
    try:
        yield _events(storage, request, past, changes)
    finally:
        storage.unlisten(changes)


async def _events(
    storage: Storage, request: Request, past: list[WatchEvent], changes: asyncio.Queue[Change | None]
) -> AsyncIterator[WatchEvent]:
    loop = asyncio.get_running_loop()
    end = loop.time() + float(request.params["timeoutSeconds"])
    next_bookmark = loop.time() + BOOKMARK_SECONDS
    for event in past:
        yield _received(request, event)
        if event["type"] == "ERROR":
            return
    while True:
        try:
            async with asyncio.timeout_at(min(end, next_bookmark)):
                change = await changes.get()
        except TimeoutError:
            if loop.time() >= end:
                return
            next_bookmark += BOOKMARK_SECONDS
            yield _received(request, _bookmark(request, storage.version))
            continue
        if change is None:
            raise TransportError(f"{request}: connection reset by the fake server")
        for event in _translated(request, change):
            yield _received(request, event)


def _received(request: Request, event: WatchEvent) -> WatchEvent:
    """Return `event` as it comes out of the wire."""
    return decode_event(request, msgspec.json.encode(event))


def _past(storage: Storage, request: Request) -> Iterator[WatchEvent]:
    """Yield what the watch begins with: the objects, or the events since its version."""
    version = request.params.get("resourceVersion", "")
    if request.params.get("sendInitialEvents") == "true" or version in {"", "0"}:
        for obj in selected(request, storage.all(request.resource)):
            yield {"type": "ADDED", "object": copied(obj)}
        yield _bookmark(request, storage.version, {INITIAL_EVENTS_END: "true"})
        return
    if int(version) < storage.compacted:
        message = f"too old resource version: {version} ({storage.compacted})"
        yield {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": message}}
        return
    for change in storage.history:
        if change.version > int(version):
            yield from _translated(request, change)


def _translated(request: Request, change: Change) -> Iterator[WatchEvent]:
    """Yield what a watch with selectors sees of a change: an object that no longer matches is a deletion to it."""
    if change.resource != request.resource:
        return
    before = bool(change.old and selected(request, [change.old]))
    after = not change.is_deletion and bool(selected(request, [change.new]))
    if after:
        yield {"type": "MODIFIED" if before else "ADDED", "object": copied(selected(request, [change.new])[0])}
    elif before and change.old is not None:
        last: Json = copied(change.old)
        last["metadata"]["resourceVersion"] = str(change.version)
        yield {"type": "DELETED", "object": selected(request, [last])[0]}


def _bookmark(request: Request, version: int, annotations: dict[str, str] | None = None) -> WatchEvent:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    kind = "PartialObjectMetadata" if request.metadata_only else request.resource.kind
    api_version = "meta.k8s.io/v1" if request.metadata_only else request.resource.api_version
    return {"type": "BOOKMARK", "object": {"apiVersion": api_version, "kind": kind, "metadata": metadata}}
