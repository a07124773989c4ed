"""What an HTTP answer means: an object, a refusal, or nothing that the API server would say."""

from collections.abc import Mapping
from typing import Any, cast

import orjson

from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request

EXCERPT_CHARACTERS = 200


def decode(request: Request, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the JSON object of a success.

    Raises:
        StatusError: `status` is no success; the body may be a `metav1.Status`, plain text or a proxy's HTML.
        TransportError: A success without a JSON object: nothing is known about what the server did.
    """
    content_type = headers.get("Content-Type", "no content type")
    answer = _json_object(body)
    if not 200 <= status < 300:  # noqa: PLR2004 - HTTP
        wait = retry_after_seconds(headers)
        if answer is not None and answer.get("kind") == "Status":
            raise StatusError(str(request), {**answer, "code": status}, retry_after_seconds=wait)
        excerpt = body[:EXCERPT_CHARACTERS].decode(errors="replace")
        message = f"{excerpt or 'empty answer'} ({content_type})"
        raise StatusError(str(request), {"code": status, "message": message}, retry_after_seconds=wait)
    if answer is None:
        excerpt = body[:EXCERPT_CHARACTERS].decode(errors="replace")
        raise TransportError(
            " ".join(f"{request}: {status}, but the answer is no JSON object ({content_type}, {len(body)} bytes): {excerpt}".split())
        )
    return answer


def decode_event(request: Request, line: bytes) -> WatchEvent:
    """Return the watch event of `line`.

    Raises:
        TransportError: It is none: the stream cannot be trusted from here on.
    """
    event = _json_object(line)
    if event is None or not isinstance(event.get("type"), str) or "object" not in event:
        excerpt = line[:EXCERPT_CHARACTERS].decode(errors="replace")
        raise TransportError(f"{request}: a line of the stream is no watch event: {excerpt}")
    return cast("WatchEvent", event)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the `Retry-After` header in seconds; None when it is absent or a date, which the API server never sends."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        answer: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None
