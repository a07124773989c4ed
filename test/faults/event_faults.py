"""Faults of watches: what becomes of one event, or of all from one on."""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from faults.stream import Cut, Stream


@dataclass(frozen=True, slots=True)
class CutStream:
    """End the stream after the event."""

    how: Cut = "close"
    lag_seconds: float = 0.0

    @property
    def name(self) -> str:
        """Return `cut-close` or `cut-reset`."""
        return f"cut-{self.how}"

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send the event, then cut."""
        await stream.send(line)
        return self.how


@dataclass(frozen=True, slots=True)
class CutLine:
    """End the stream in the middle of the event, inside a character of more than one byte where there is one."""

    name: str = "cut-line"
    lag_seconds: float = 0.0

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send a part of the event, then cut."""
        at = next((place + 1 for place, byte in enumerate(line) if byte >= 0x80), len(line) // 2)
        await stream.send(line[:at])
        return "close"


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """Send an event of type ERROR in place of this one, and end the stream as the server does."""

    code: int
    reason: str = ""
    is_bare: bool = False
    lag_seconds: float = 0.0

    @property
    def name(self) -> str:
        """Return for example `error-410`; `error-bare` has neither code nor reason."""
        return "error-bare" if self.is_bare else f"error-{self.code}"

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send the error."""
        del line
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "injected"}
        if not self.is_bare:
            status |= {"code": self.code, "reason": self.reason}
        await stream.send(msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")
        return "close"


@dataclass(frozen=True, slots=True)
class Swallow:
    """Do not send the event; the stream continues, and so does its version, or ends."""

    then: Cut = ""
    lag_seconds: float = 0.0

    @property
    def name(self) -> str:
        """Return `swallow`, or `swallow-close` when the stream ends."""
        return f"swallow-{self.then}".rstrip("-")

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send nothing."""
        del stream, line
        return self.then


@dataclass(frozen=True, slots=True)
class Gap:
    """Lose the event and all that come within a time, then report that the version is too old, so that they are never sent."""

    seconds: float = 1.0
    name: str = "gap"
    lag_seconds: float = 0.0

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Wait, then send the error."""
        await asyncio.sleep(self.seconds)
        return await ErrorEvent(410, "Expired").act(stream, line)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Send the event twice."""

    name: str = "duplicate"
    lag_seconds: float = 0.0

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send it twice."""
        await stream.send(line + line)
        return ""


@dataclass(frozen=True, slots=True)
class Lag:
    """Send the event, and any other it is asked to act on, that much later than it came."""

    lag_seconds: float

    @property
    def name(self) -> str:
        """Return for example `lag-5`."""
        return f"lag-{self.lag_seconds:g}"

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send it."""
        await stream.send(line)
        return ""


@dataclass(frozen=True, slots=True)
class IdleStream:
    """Send nothing from this event on, and do not end the stream either."""

    name: str = "idle"
    lag_seconds: float = 0.0

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Wait until the stream is given up."""
        del stream, line
        await asyncio.get_running_loop().create_future()
        return "reset"


@dataclass(frozen=True, slots=True)
class EditBookmark:
    """Change bookmarks: leave them out (`none`), take their annotation away (`plain`), or set it to false (`false`)."""

    how: str
    lag_seconds: float = 0.0

    @property
    def name(self) -> str:
        """Return for example `bookmark-none`."""
        return f"bookmark-{self.how}"

    async def act(self, stream: Stream, line: bytes) -> Cut:
        """Send the bookmark as it is to be."""
        if self.how == "none":
            return ""
        event = msgspec.json.decode(line)
        annotations: dict[str, str] = event["object"]["metadata"].get("annotations", {})
        if "k8s.io/initial-events-end" in annotations:
            if self.how == "plain":
                del annotations["k8s.io/initial-events-end"]
            else:
                annotations["k8s.io/initial-events-end"] = "false"
        await stream.send(msgspec.json.encode(event) + b"\n")
        return ""
