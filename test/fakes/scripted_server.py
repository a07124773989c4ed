"""A server that plays a script: what each list and each watch answers, in order; for tests of what an informer does with it.

Lists and watches are taken from two queues, and every request is noted in `log`, so that a test can report exactly what was asked, and in
which order. Where a script ends, the request hangs, as from a server with nothing to report.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Never, cast

from mpiop.kube.errors import StatusError
from mpiop.kube.objects import Item, Object, ObjectList, ObjectMeta, Unreadable, WatchEvent
from mpiop.kube.resources import PODS, Selection

SELECTION = Selection(PODS, label_selector="app=pi")


def pod(name: str, version: int | str, *, uid: str = "", phase: str = "Running", labels: dict[str, str] | None = None) -> Object:
    """Return a small pod; its UID is that of its name unless `uid` is given."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), "labels": labels or {}},
        "status": {"phase": phase},
    }


def unreadable(name: str, version: int | str, *, uid: str = "") -> Unreadable:
    """Return a pod that cannot be decoded."""
    metadata: ObjectMeta = {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return Unreadable({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, "too deep")


def page(*items: Item, version: int | str, token: str = "") -> ObjectList:
    """Return a page of a list; `token` reports that there is another."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    return {"metadata": metadata | ({"continue": token} if token else {}), "items": list(items)}


def event(kind: str, obj: object) -> WatchEvent:
    return cast("WatchEvent", {"type": kind, "object": obj})


def added(obj: object) -> WatchEvent:
    return event("ADDED", obj)


def modified(obj: object) -> WatchEvent:
    return event("MODIFIED", obj)


def deleted(obj: object) -> WatchEvent:
    return event("DELETED", obj)


def bookmark(version: int | str, **annotations: str) -> WatchEvent:
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version), "annotations": annotations}})


def initial_end(version: int | str, value: str = "true") -> WatchEvent:
    """Return the bookmark that ends the initial events of a watch-list."""
    return bookmark(version, **{"k8s.io/initial-events-end": value})


def error_event(code: int, reason: str = "", message: str = "") -> WatchEvent:
    return event("ERROR", {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})


def refusal(code: int, reason: str = "", message: str = "", **details: Any) -> StatusError:
    """Return the failure that a request is answered with."""
    return StatusError("scripted request", {"code": code, "reason": reason, "message": message, "details": details})


EXPIRED: dict[str, Any] = {"code": 410, "reason": "Expired", "message": "too old resource version"}


@dataclass(frozen=True, slots=True)
class Sleep:
    """In a stream: so many seconds pass."""

    seconds: float


class Hang:
    """In a stream: nothing more comes, and it does not end."""


@dataclass(slots=True)
class Watch:
    resource_version: str
    timeout_seconds: int
    send_initial_events: bool
    opened_at: float
    accepted: bool = False
    closed_at: float | None = None


@dataclass(slots=True)
class List:
    resource_version: str
    limit: int
    continue_token: str
    asked_at: float


ListReply = ObjectList | Exception | Sleep
StreamItem = WatchEvent | Exception | Sleep | Hang
StreamReply = Exception | Sequence[StreamItem]


@dataclass(slots=True)
class ScriptedServer:
    """Answers by script.

    Attributes:
        list_replies: Answers to lists: a page, an exception, or a delay before the next answer.
        watch_replies: Answers to watches: an exception refuses it; else the items of the stream, which then ends.
        log: `LIST <version>`, `PAGE <token>`, `WATCH <version>` and `STREAM <version>`, in order.
    """

    list_replies: list[ListReply] = field(default_factory=list[ListReply])
    watch_replies: list[StreamReply] = field(default_factory=list[StreamReply])
    log: list[str] = field(default_factory=list[str])
    lists: list[List] = field(default_factory=list[List])
    watches: list[Watch] = field(default_factory=list[Watch])

    async def list_page(self, selection: Selection, *, resource_version: str, limit: int = 0, continue_token: str = "") -> ObjectList:
        """Answer a list."""
        assert selection == SELECTION
        self.lists.append(List(resource_version, limit, continue_token, asyncio.get_running_loop().time()))
        self.log.append(f"PAGE {continue_token}" if continue_token else f"LIST {resource_version}")
        while self.list_replies:
            reply = self.list_replies.pop(0)
            if isinstance(reply, Sleep):
                await asyncio.sleep(reply.seconds)
            elif isinstance(reply, Exception):
                raise reply
            else:
                return reply
        return await for_ever()

    def watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, send_initial_events: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        assert selection == SELECTION
        self.log.append(f"{'STREAM' if send_initial_events else 'WATCH'} {resource_version}")
        watch = Watch(resource_version, timeout_seconds, send_initial_events, asyncio.get_running_loop().time())
        self.watches.append(watch)
        return self._stream(watch, self.watch_replies.pop(0) if self.watch_replies else [Hang()])

    @asynccontextmanager
    async def _stream(self, watch: Watch, reply: StreamReply) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        if isinstance(reply, Exception):
            raise reply
        watch.accepted = True
        try:
            yield _play(reply)
        finally:
            watch.closed_at = asyncio.get_running_loop().time()


async def for_ever() -> Never:
    """Wait for what never comes."""
    await asyncio.Event().wait()
    raise AssertionError("an event that nobody sets was set")


async def _play(items: Iterable[StreamItem]) -> AsyncIterator[WatchEvent]:
    for item in items:
        if isinstance(item, Sleep):
            await asyncio.sleep(item.seconds)
        elif isinstance(item, Hang):
            await for_ever()
        elif isinstance(item, Exception):
            raise item
        else:
            yield item
