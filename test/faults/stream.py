"""A watch on its way through the proxy, event by event."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from faults.meaning import Meaning, Target
from faults.wire import as_chunk

if TYPE_CHECKING:
    from faults.proxy import Proxy

Cut = Literal["", "close", "reset"]
"""How a stream ends early: with FIN, with RST; "" when it does not."""

BOOKMARK = b'{"type":"BOOKMARK"'


@dataclass(frozen=True, slots=True)
class EventFault:
    """What is done to an event of a watch.

    Attributes:
        name: What it is called in case names and traces.
        act: Sends a line, or not, in the fault's own way; returns how the stream is to end, "" to continue.
        lag_seconds: How long after its coming an event is acted on.
    """

    name: str
    act: "Callable[[Stream, bytes], Awaitable[Cut]]"
    lag_seconds: float = 0.0


@dataclass(slots=True)
class Stream:
    """A watch of `resource`, whose events are numbered over all watches of that resource in the run; bookmarks are not."""

    resource: str
    writer: asyncio.StreamWriter
    proxy: "Proxy"

    async def send(self, content: bytes) -> None:
        """Send bytes as a chunk: one or more lines, or a part of one."""
        self.writer.write(as_chunk(content))
        await self.writer.drain()

    async def pass_events(self, chunks: AsyncIterator[bytes]) -> Cut:
        """Pass lines on until the server ends the stream or a fault does; return how it is to be ended."""
        lines: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(chunks, lines))
        try:
            while (item := await lines.get()) is not None:
                if cut := await self._pass_line(*item):
                    return cut
            if not reading.done() or reading.exception() is None:
                self.writer.write(as_chunk(b""))
                await self.writer.drain()
                return ""
            return "close"  # the server broke off in the middle
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self, chunks: AsyncIterator[bytes], lines: asyncio.Queue[tuple[float, bytes] | None]) -> None:
        """Read lines with the times of their coming, independently of how fast they continue."""
        rest = b""
        try:
            async for chunk in chunks:
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    lines.put_nowait((asyncio.get_running_loop().time(), line + b"\n"))
        finally:
            lines.put_nowait(None)

    async def _pass_line(self, came_at: float, line: bytes) -> Cut:
        if line.startswith(BOOKMARK):
            target = Target(Meaning("bookmark", self.resource), 1)
            fault = self.proxy.plan.event_fault_of(target)
        else:
            target = self.proxy.numbering.next(Meaning("event", self.resource))
            fault = self.proxy.plan.event_fault_of(target)
            entry = self.proxy.trace.begin(target)
            entry.answer = _identity(line)
            entry.delivered = fault is None
            entry.fault = "" if fault is None else fault.name
        if fault is None:
            await self.send(line)
            return ""
        if fault.lag_seconds:
            await asyncio.sleep(came_at + fault.lag_seconds - asyncio.get_running_loop().time())
        return await fault.act(self, line)


def _identity(line: bytes) -> dict[str, str]:
    """Return what the trace reports of an event."""
    event = msgspec.json.decode(line)
    metadata = event["object"].get("metadata", {})
    return {"type": event["type"], "name": metadata.get("name", ""), "resourceVersion": metadata.get("resourceVersion", "")}
