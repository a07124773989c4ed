"""The fault proxy: HTTP/1.1 over TLS between the operator and an API server, which does to each request what a plan specifies.

It reads a request whole, gives it a number by its meaning, asks the plan for a fault and lets that act on the `Exchange`. Without a fault
the request goes to the server and the answer back. A watch goes through event by event (see `stream`), each numbered and asked for alike.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from faults.meaning import Numbering, Target, asked_of, meaning_of
from faults.stream import EventFault, Stream
from faults.trace import Entry, Trace
from faults.wire import Message, chunks, close, read_body, read_head, read_message
from mpiop.kube.items import NOT_JSON

_GONE = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, TimeoutError)


class CutError(Exception):
    """The connection to the operator was ended on purpose."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The real server; `context` None speaks plain HTTP."""

    url: str
    context: ssl.SSLContext | None = None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        url = urlsplit(self.url)
        assert url.hostname is not None
        return await asyncio.open_connection(url.hostname, url.port, ssl=self.context, limit=32 * 2**20)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done to a request: `act` answers it, or not, in the fault's own way; case names and traces have its name."""

    name: str
    act: "Callable[[Exchange], Awaitable[None]]"


class Plan(Protocol):
    """Chooses the faults of each request."""

    def fault_of(self, target: Target) -> Fault | None:
        """Return what is done to this request."""
        ...

    def event_fault_of(self, target: Target) -> EventFault | None:
        """Return what is done to this event of a watch."""
        ...


@dataclass(slots=True)
class Exchange:
    """One request on its way, and what a fault may do with it.

    Attributes:
        early: What came of the operator's next request while this one was still being done with.
    """

    proxy: "Proxy"
    request: Message
    target: Target
    entry: Entry
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    early: bytes = b""

    async def forward(self) -> Message:
        """Send the request to the server and return its whole answer."""
        return await self.proxy.ask(self.request, self.entry)

    async def deliver(self, answer: Message) -> None:
        """Send an answer to the operator."""
        self.writer.write(answer.rendered())
        await self.writer.drain()
        self.entry.delivered, self.entry.delivered_at = True, self.proxy.trace.now()

    async def pass_on(self) -> None:
        """Do what a proxy does: a watch as a stream, anything else whole."""
        if self.target.meaning.verb == "watch":
            await self._pass_stream()
        else:
            await self.deliver(await self.forward())

    def cut(self, *, reset: bool) -> None:
        """End the connection to the operator.

        Raises:
            CutError: Always: nothing more can be done with this exchange.
        """
        close(self.writer, reset=reset)
        raise CutError

    async def until_client_leaves(self) -> None:
        """Wait until the operator closes the connection, or it is cut: while the operator waits for an answer it sends nothing."""
        with contextlib.suppress(*_GONE):
            self.early = await self.reader.read(1)

    async def begin_stream(self, head: Message) -> None:
        """Send the head of a watch's answer."""
        self.writer.write(head.head("transfer-encoding: chunked"))
        await self.writer.drain()

    async def _pass_stream(self) -> None:
        reader, writer = await self.proxy.upstream.connect()
        try:
            writer.write(self.request.rendered())
            head = await read_head(reader)
            self.entry.code = head.status
            if head.is_chunked:
                await self._pass_events(head, reader)
            else:
                await self.deliver(Message(head.first_line, head.fields, await read_body(reader, head)))
        finally:
            writer.transport.abort()

    async def _pass_events(self, head: Message, reader: asyncio.StreamReader) -> None:
        leaving = asyncio.create_task(self.until_client_leaves())
        self.proxy.streams[self.writer] = self.target.meaning.resource
        try:
            await self.begin_stream(head)
            stream = Stream(self.target.meaning.resource, self.writer, self.proxy)
            passing = asyncio.create_task(stream.pass_events(chunks(reader)))
            await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                passing.cancel()
                await asyncio.wait({passing})
            elif cut := passing.result():
                self.cut(reset=cut == "reset")
            else:
                self.entry.delivered = True
        finally:
            self.proxy.streams.pop(self.writer, None)
            leaving.cancel()
            await asyncio.wait({leaving})


@dataclass(slots=True)
class Proxy:
    """The proxy for one run.

    Attributes:
        upstream: The real server.
        plan: What is done to which request; may be replaced at any time.
        trace: What passed.
        url: Where it listens.
        under_way: Requests that are not done with, watches left out: late writes among them.
        streams: The watches that are open, and of what.
    """

    upstream: Upstream
    plan: Plan
    trace: Trace = field(default_factory=Trace)
    url: str = ""
    under_way: int = 0
    numbering: Numbering = field(default_factory=Numbering)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    streams: dict[asyncio.StreamWriter, str] = field(default_factory=dict[asyncio.StreamWriter, str])

    def cut_streams(self, resources: Collection[str], *, reset: bool = True) -> None:
        """End the open watches of these resources, whether anything comes on them or not; without `reset` all that was sent arrives."""
        for writer, resource in tuple(self.streams.items()):
            if resource in resources:
                close(writer, reset=reset)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the operator's."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        early = b""
        try:
            while True:
                early = await self._serve_one(await read_message(reader, early), reader, writer)
        except (*_GONE, CutError, asyncio.CancelledError):
            pass  # either side went, a fault cut it, or the run is over
        finally:
            self.tasks.discard(task)
            if not writer.is_closing():
                writer.transport.abort()

    async def _serve_one(self, request: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Answer `request` and return what came of the next one meanwhile."""
        target = self.numbering.next(meaning_of(request.first_line, request.body))
        entry = self.trace.begin(target, asked_of(request.first_line, request.body))
        exchange = Exchange(self, request, target, entry, reader, writer)
        fault = self.plan.fault_of(target)
        counts = target.meaning.verb != "watch"
        self.under_way += counts
        try:
            if fault is None:
                await exchange.pass_on()
            else:
                exchange.entry.fault = fault.name
                await fault.act(exchange)
        finally:
            self.under_way -= counts
        return exchange.early

    async def ask(self, request: Message, entry: Entry) -> Message:
        """Ask the server on a connection of its own, and note the answer in `entry`."""
        entry.was_sent = True
        reader, writer = await self.upstream.connect()
        try:
            writer.write(request.rendered())
            answer = await read_message(reader)
        finally:
            writer.transport.abort()
        entry.code = answer.status
        if entry.target.meaning.is_write or entry.target.meaning.resource == "leases":
            entry.answer = _evidence(answer.body) | _written_status(entry.target, request.body)
        elif entry.target.meaning.verb == "list":
            entry.answer = _evidence_of_list(answer.body)
        return answer


def _evidence(body: bytes) -> dict[str, Any]:
    """Return what the oracle needs of an answer to a write; never the data of a Secret."""
    decoded = _decoded(body)
    metadata = decoded.get("metadata") or {}
    if decoded.get("kind") == "Status":  # what is left to report of an object that is gone
        metadata = decoded.get("details") or {}
    evidence = {name: metadata[name] for name in ("name", "uid", "resourceVersion") if name in metadata}
    if decoded.get("kind") == "Lease":
        evidence["holder"] = decoded["spec"].get("holderIdentity") or ""
    return evidence


def _evidence_of_list(body: bytes) -> dict[str, Any]:
    return {"resourceVersion": _decoded(body).get("metadata", {}).get("resourceVersion", "")}


def _decoded(body: bytes) -> dict[str, Any]:
    """Return an answer's object; a server that is just starting or ending answers in plain text, which is evidence of nothing."""
    try:
        decoded: dict[str, Any] = msgspec.json.decode(body)
    except NOT_JSON:
        return {}
    return decoded


@contextlib.asynccontextmanager
async def fault_proxy(upstream: Upstream, plan: Plan, context: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Serve on a free port of loopback, with TLS when given a context."""
    proxy = Proxy(upstream, plan)
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] = proxy.serve
    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, limit=32 * 2**20)
    host, port = listener.sockets[0].getsockname()[:2]
    proxy.url = f"{'http' if context is None else 'https'}://{host}:{port}"
    try:
        yield proxy
    finally:
        listener.close()
        tasks = list(proxy.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()


def _written_status(target: Target, body: bytes) -> dict[str, Any]:
    """Return what a write changes of an MPIJob's status: the answer has only metadata."""
    if target.meaning.resource != "mpijobs" or target.meaning.verb != "patch":
        return {}
    return {"status": _decoded(body).get("status") or {}}
