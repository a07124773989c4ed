"""Faults of requests."""

import asyncio

import msgspec

from faults.proxy import Exchange, Fault
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
GARBLINGS = ("cut-body", "cut-json", "html-502", "empty-200", "html-200")


def answer_of(status: int, body: bytes, content_type: str = "application/json", **fields: str) -> Message:
    """Return an answer as a server or something in between would send it; field names have `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return Message(f"HTTP/1.1 {status} Status", {"content-type": content_type, **named}, body)


def refuse(code: int, retry_after_seconds: int | None = None) -> Fault:
    """Answer in the server's stead with a `metav1.Status`."""
    name = str(code) if retry_after_seconds is None else f"{code}-after-{retry_after_seconds}"
    after = {} if retry_after_seconds is None else {"retry_after": str(retry_after_seconds)}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": REASONS[code]}

    async def act(exchange: Exchange) -> None:
        await exchange.deliver(answer_of(code, msgspec.json.encode({**status, "message": f"injected: {name}"}), **after))
        exchange.entry.delivered = False

    return Fault(name, act)


def refuse_token(token: str) -> Fault:
    """Answer 401 to clients with that token, as if it had expired; let all others pass."""

    async def act(exchange: Exchange) -> None:
        if exchange.request.fields.get("authorization") == f"Bearer {token}":
            await refuse(401).act(exchange)
        else:
            await exchange.pass_on()

    return Fault("old-token", act)


async def _hang(exchange: Exchange) -> None:
    await exchange.until_client_leaves()
    exchange.cut(reset=True)


HANG = Fault("hang", _hang)
"""Never answer, and never ask the server."""


def late(seconds: float = 30.0) -> Fault:
    """Ask the server long after the operator gave up."""

    async def act(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await exchange.forward()
        exchange.cut(reset=True)

    return Fault("late", act)


async def _cut_before(exchange: Exchange) -> None:
    exchange.cut(reset=True)


CUT_BEFORE = Fault("reset-before", _cut_before)
"""Break the connection before the server is asked."""


def cut_after(*, reset: bool) -> Fault:
    """Ask the server, then break the connection instead of answering: the operator cannot know what became of its write."""

    async def act(exchange: Exchange) -> None:
        await exchange.forward()
        exchange.cut(reset=reset)

    return Fault(f"{'reset' if reset else 'close'}-after", act)


def garble(name: str) -> Fault:
    """Ask the server, and deliver what `name` selects: a cut body, a cut JSON, an HTML page, nothing, or JSON that is none."""

    async def act(exchange: Exchange) -> None:
        answer = await exchange.forward()
        half = answer.body[: max(1, len(answer.body) // 2)]
        if name == "cut-body":
            exchange.writer.write(answer.head(f"content-length: {len(answer.body)}") + half)
            await exchange.writer.drain()
            exchange.cut(reset=False)
        garbled = {
            "cut-json": answer_of(200, half),
            "html-502": answer_of(502, b"<html><body>Bad Gateway</body></html>", "text/html"),
            "empty-200": answer_of(200, b""),
            "html-200": answer_of(200, b"<html><body>Please log in</body></html>", "text/html"),
        }
        await exchange.deliver(garbled[name])
        exchange.entry.delivered = False

    return Fault(name, act)
