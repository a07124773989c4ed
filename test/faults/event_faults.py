"""Faults of watches: what becomes of one event, or of all from one on."""

import asyncio
from typing import Any

import msgspec

from faults.stream import Cut, EventFault, Stream


def cut_stream(how: Cut) -> EventFault:
    """End the stream after the event."""

    async def act(stream: Stream, line: bytes) -> Cut:
        await stream.send(line)
        return how

    return EventFault(f"cut-{how}", act)


async def _cut_line(stream: Stream, line: bytes) -> Cut:
    at = next((place + 1 for place, byte in enumerate(line) if byte >= 0x80), len(line) // 2)
    await stream.send(line[:at])
    return "close"


CUT_LINE = EventFault("cut-line", _cut_line)
"""End the stream in the middle of the event, inside a character of more than one byte where there is one."""


def error_event(name: str, **status: Any) -> EventFault:
    """Send an event of type ERROR in place of this one, whose Status has these fields too, and end the stream as the server does."""

    async def act(stream: Stream, _line: bytes) -> Cut:
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "injected", **status}
        await stream.send(msgspec.json.encode({"type": "ERROR", "object": body}) + b"\n")
        return "close"

    return EventFault(name, act)


EXPIRED = error_event("error-410", code=410, reason="Expired")


async def _gap(stream: Stream, line: bytes) -> Cut:
    await asyncio.sleep(1)
    return await EXPIRED.act(stream, line)


GAP = EventFault("gap", _gap)
"""Lose the event and all that come within a second, then report that the version is too old, so that they are never sent."""


async def _duplicate(stream: Stream, line: bytes) -> Cut:
    await stream.send(line + line)
    return ""


DUPLICATE = EventFault("duplicate", _duplicate)
"""Send the event twice."""


async def _send(stream: Stream, line: bytes) -> Cut:
    await stream.send(line)
    return ""


def lag(seconds: float) -> EventFault:
    """Send the event, and any other it is asked to act on, that much later than it came."""
    return EventFault(f"lag-{seconds:g}", _send, seconds)


async def _idle(_stream: Stream, _line: bytes) -> Cut:
    await asyncio.get_running_loop().create_future()
    return "reset"


IDLE = EventFault("idle", _idle)
"""Send nothing from this event on, and do not end the stream either."""


def edit_bookmark(how: str) -> EventFault:
    """Change bookmarks: leave them out (`none`), take their annotation away (`plain`), or set it to false (`false`)."""

    async def act(stream: Stream, line: bytes) -> Cut:
        if how == "none":
            return ""
        event = msgspec.json.decode(line)
        annotations: dict[str, str] = event["object"]["metadata"].get("annotations", {})
        if annotations.pop("k8s.io/initial-events-end", None) and how == "false":
            annotations["k8s.io/initial-events-end"] = "false"
        await stream.send(msgspec.json.encode(event) + b"\n")
        return ""

    return EventFault(f"bookmark-{how}", act)
