"""Decodes HTTP answers: an object, a Status, or an error if the API server cannot have sent it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar, cast

import msgspec

from mpiop.kube.errors import StatusError, TransportError
from mpiop.kube.objects import WatchEvent
from mpiop.kube.request import Request

EXCERPT_CHARACTERS = 200
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: for what is no JSON or of another shape, no UTF-8, nested too deeply."""

_Projection = TypeVar("_Projection")


class Head(NamedTuple):
    """Status and headers of an answer; the names of headers in lower case, or in a mapping that ignores case."""

    status: int
    headers: Mapping[str, str]


class _Event(TypedDict, Generic[_Projection]):
    type: str
    object: _Projection


class _Page(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[msgspec.Raw] | None


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What decodes objects of one projection, and events of them."""

    objects: msgspec.json.Decoder[Any]
    events: msgspec.json.Decoder[_Event[Any]]


_DECODERS: dict[type[Any], _Decoder] = {}
_PAGES = msgspec.json.Decoder(_Page)
_WHOLE = msgspec.json.Decoder()


def decode(request: Request, head: Head, body: bytes) -> dict[str, Any]:
    """Return the JSON object of a success; of it, or of the items of a list, what the projection of `request` has.

    A log is `{"log": text}`.

    Raises:
        StatusError: The status is no success; the body may be a `metav1.Status`, plain text or a proxy's HTML.
        TransportError: A success without a JSON object: nothing is known about what the server did.
    """
    status, headers = head
    is_success = 200 <= status < 300  # noqa: PLR2004 - HTTP
    if is_success and request.verb == "log":
        return {"log": body.decode(errors="replace")}
    if is_success and request.projection is not None:
        projected = _page(request.projection, body) if request.verb == "list" else _object(request.projection, body)
        if projected is not None:
            return projected
    answer = _json_object(body)
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
            " ".join(f"{request}: {status}, but the answer is no JSON object ({content_type}, {len(body)} bytes): {excerpt}".split())
        )
    return answer


def decode_event(request: Request, line: bytes) -> WatchEvent:
    """Return the watch event of `line`; of its object, what the projection of `request` has.

    Raises:
        TransportError: It is none: the stream cannot be trusted from here on.
    """
    if request.projection is not None:
        try:
            projected = _decoder(request.projection).events.decode(line)
        except NOT_JSON:
            pass  # to be decoded whole: one malformed object of one user must not stop the watch of everybody's
        else:
            if projected["type"] != "ERROR":  # whose object is a Status
                return projected
    event = _json_object(line)
    if event is None or not isinstance(event.get("type"), str) or "object" not in event:
        excerpt = line[:EXCERPT_CHARACTERS].decode(errors="replace")
        raise TransportError(f"{request}: a line of the stream is no watch event: {excerpt}")
    return cast("WatchEvent", event)


def warning_texts(header: str) -> list[str]:
    r"""Return the texts of a `Warning` header, for example of `299 - "unknown field \"spec.x\""`. Source: RFC 7234, 5.5."""
    return [text.replace('\\"', '"').replace("\\\\", "\\") for text in _WARNING.findall(header)]


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the `Retry-After` header in seconds; None when it is absent or a date, which the API server never sends."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _decoder(projection: type[Any]) -> _Decoder:
    if projection not in _DECODERS:
        _DECODERS[projection] = _Decoder(msgspec.json.Decoder(projection), msgspec.json.Decoder(cast("Any", _Event)[projection]))
    return _DECODERS[projection]


def _object(projection: type[Any], body: bytes) -> dict[str, Any] | None:
    """Return the object in `body`, or None when it does not fit `projection`."""
    try:
        return cast("dict[str, Any]", _decoder(projection).objects.decode(body))
    except NOT_JSON:
        return None


def _page(projection: type[Any], body: bytes) -> dict[str, Any] | None:
    """Return the list in `body`, or None when it is something else."""
    try:
        page = _PAGES.decode(body)
        return {"metadata": page.metadata, "items": [_item(projection, item) for item in page.items or ()]}
    except NOT_JSON:
        return None


def _item(projection: type[Any], item: msgspec.Raw) -> Any:
    try:
        return _decoder(projection).objects.decode(item)
    except msgspec.ValidationError:
        return _WHOLE.decode(item)  # alone: the others of the page keep their shape


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        answer: Any = _WHOLE.decode(body)
    except NOT_JSON:
        return None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None
