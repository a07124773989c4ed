"""Decodes HTTP answers: an object, a Status, or an error if the API server cannot have sent it."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.items import NOT_JSON, read_event, read_object, read_page, read_whole
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request

EXCERPT_CHARACTERS = 200
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


class Head(NamedTuple):
    """Status and headers of an answer; the names of headers in lower case, or in a mapping that ignores case."""

    status: int
    headers: Mapping[str, str]


def decode(request: Request, head: Head, body: bytes) -> dict[str, Any]:
    """Return the JSON object of a success; of it, or of the items of a list, what the projection of `request` has.

    A log is `{"log": text}`; the items of a list are `Items`.

    Raises:
        StatusError: The status is not a success; the body may be a `metav1.Status`, plain text or a proxy's HTML.
        TransportError: A success without a JSON object: nothing is known about what the server did.
    """
    status, headers = head
    is_success = 200 <= status < 300  # noqa: PLR2004 - HTTP
    if is_success and request.verb == "log":
        return {"log": body.decode(errors="replace")}
    if is_success and request.verb == "list" and (page := read_page(request, body)) is not None:
        return page
    answer = _json_object(body, request if is_success and request.verb != "list" else None)
    content_type = headers.get("content-type", "no content type")
    if not is_success:
        wait = retry_after_seconds(headers)
        if answer is not None and answer.get("kind") == "Status":
            raise StatusError(str(request), {**answer, "code": status}, retry_after_seconds=wait)
        excerpt = body[:EXCERPT_CHARACTERS].decode(errors="replace")
        message = f"{excerpt or 'empty answer'} ({content_type})"
        raise StatusError(str(request), {"code": status, "message": message}, retry_after_seconds=wait)
    if answer is None:
        excerpt = body[:EXCERPT_CHARACTERS].decode(errors="replace")
        raise TransportError(
            " ".join(f"{request}: {status}, but the answer is not a JSON object ({content_type}, {len(body)} bytes): {excerpt}".split())
        )
    return answer


def decode_event(request: Request, line: bytes) -> WatchEvent:
    """Return the watch event of `line`; of its object, what the projection of `request` has.

    Raises:
        TransportError: It is none: the stream cannot be trusted from here on.
    """
    event = read_event(request, line)
    if event is None:
        excerpt = line[:EXCERPT_CHARACTERS].decode(errors="replace")
        raise TransportError(f"{request}: a line of the stream is not a watch event: {excerpt}")
    return event


def warning_texts(header: str) -> list[str]:
    r"""Return the texts of a `Warning` header, for example of `299 - "unknown field \"spec.x\""`. Source: RFC 7234, 5.5."""
    return [text.replace('\\"', '"').replace("\\\\", "\\") for text in _WARNING.findall(header)]


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the `Retry-After` header in seconds; None when it is absent or a date, which the API server never sends."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _json_object(body: bytes, request: Request | None) -> dict[str, Any] | None:
    try:
        answer: Any = read_whole(body) if request is None else read_object(request, body)
    except NOT_JSON:
        return None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None
