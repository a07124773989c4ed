"""Faults of requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from faults.proxy import Exchange
from faults.wire import Message

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def answer_of(status: int, body: bytes, content_type: str = "application/json", **fields: str) -> Message:
    """Return an answer as a server or something in between would send it; field names have `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return Message(f"HTTP/1.1 {status} Status", {"content-type": content_type, **named}, body)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer in the server's stead with a `metav1.Status`."""

    code: int
    retry_after_seconds: int | None = None

    @property
    def name(self) -> str:
        """Return for example `503`, or `429-after-1`."""
        return str(self.code) if self.retry_after_seconds is None else f"{self.code}-after-{self.retry_after_seconds}"

    async def act(self, exchange: Exchange) -> None:
        """Refuse."""
        message = f"injected: {self.name}"
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.code,
            "reason": REASONS[self.code],
            "message": message,
        }
        after = {} if self.retry_after_seconds is None else {"retry_after": str(self.retry_after_seconds)}
        await exchange.deliver(answer_of(self.code, msgspec.json.encode(body), **after))
        exchange.entry.delivered = False


@dataclass(frozen=True, slots=True)
class RefuseToken:
    """Answer 401 to clients with an expired token; let all others pass."""

    token: str = field(repr=False)
    name: str = "old-token"

    async def act(self, exchange: Exchange) -> None:
        """Refuse or pass."""
        if exchange.request.fields.get("authorization") == f"Bearer {self.token}":
            await Refuse(401).act(exchange)
        else:
            await exchange.pass_on()


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer, and never ask the server."""

    name: str = "hang"

    async def act(self, exchange: Exchange) -> None:
        """Wait until the operator gives up."""
        await exchange.until_client_leaves()
        exchange.cut(reset=True)


@dataclass(frozen=True, slots=True)
class Late:
    """Ask the server long after the operator gave up."""

    seconds: float = 30.0
    name: str = "late"

    async def act(self, exchange: Exchange) -> None:
        """Wait, whatever the operator does meanwhile, then ask the server."""
        await asyncio.sleep(self.seconds)
        await exchange.forward()
        exchange.cut(reset=True)


@dataclass(frozen=True, slots=True)
class Delay:
    """Ask the server a little later."""

    seconds: float

    @property
    def name(self) -> str:
        """Return for example `delay-2`."""
        return f"delay-{self.seconds:g}"

    async def act(self, exchange: Exchange) -> None:
        """Wait, then do as without a fault."""
        await asyncio.sleep(self.seconds)
        await exchange.pass_on()


@dataclass(frozen=True, slots=True)
class CutBefore:
    """Break the connection before the server is asked."""

    reset: bool = True

    @property
    def name(self) -> str:
        """Return `reset-before` or `close-before`."""
        return f"{'reset' if self.reset else 'close'}-before"

    async def act(self, exchange: Exchange) -> None:
        """Cut."""
        exchange.cut(reset=self.reset)


@dataclass(frozen=True, slots=True)
class CutAfter:
    """Ask the server, then break the connection instead of answering: the operator cannot know what became of its write."""

    reset: bool = True

    @property
    def name(self) -> str:
        """Return `reset-after` or `close-after`."""
        return f"{'reset' if self.reset else 'close'}-after"

    async def act(self, exchange: Exchange) -> None:
        """Forward, then cut."""
        await exchange.forward()
        exchange.cut(reset=self.reset)


@dataclass(frozen=True, slots=True)
class Garble:
    """Ask the server, and deliver something else than its answer."""

    name: str

    async def act(self, exchange: Exchange) -> None:
        """Deliver what `name` selects: a cut body, a cut JSON, an HTML page, nothing, or JSON that claims to be something else."""
        answer = await exchange.forward()
        half = answer.body[: max(1, len(answer.body) // 2)]
        if self.name == "cut-body":
            exchange.writer.write(answer.head(f"content-length: {len(answer.body)}") + half)
            await exchange.writer.drain()
            exchange.cut(reset=False)
        garbled = {
            "cut-json": answer_of(200, half),
            "html-502": answer_of(502, b"<html><body>Bad Gateway</body></html>", "text/html"),
            "empty-200": answer_of(200, b""),
            "html-200": answer_of(200, b"<html><body>Please log in</body></html>", "text/html"),
        }
        await exchange.deliver(garbled[self.name])
        exchange.entry.delivered = False


GARBLINGS = ("cut-body", "cut-json", "html-502", "empty-200", "html-200")


@dataclass(frozen=True, slots=True)
class Do:
    """Let the driver do something (kill the operator, edit the object, take the lease) before or after the server is asked.

    Attributes:
        name: What it is called.
        action: What is done.
        when: `before` asking the server, `after` it but before the answer is delivered, once it is `delivered`, or `instead` of all that.
    """

    name: str
    action: Callable[[Exchange], Awaitable[None]]
    when: str = "before"

    async def act(self, exchange: Exchange) -> None:
        """Do it at its time; the request goes through otherwise."""
        if self.when in {"before", "instead"}:
            await self.action(exchange)
            if self.when == "before":
                await exchange.pass_on()
            return
        answer = await exchange.forward()
        if self.when == "after":
            await self.action(exchange)
        await exchange.deliver(answer)
        if self.when == "delivered":
            await self.action(exchange)
