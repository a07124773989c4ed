"""Decodes the objects of lists and watches one by one: one that cannot be decoded is known by its name, and stops nobody else's."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar, cast

import msgspec

from mpiop.kube import large, outline
from mpiop.kube.objects import Item, Object, ObjectMeta, Unreadable, WatchEvent
from mpiop.kube.request import Request

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: for what is not JSON or has another shape, is not UTF-8, or is nested too deeply."""

_TOO_DEEP = f"nested more than {outline.MOST_LEVELS} levels deep"
METADATA_LIMIT_BYTES = 64 * 1024
"""Metadata that is kept of an object that cannot be decoded; of longer metadata, only what identifies it is."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion")
_OF_THE_SERVER = frozenset({"ERROR", "BOOKMARK"})
"""Events whose object is not one of the selection: a Status, or metadata that is not complete."""

_Projection = TypeVar("_Projection")


class _Event(TypedDict, Generic[_Projection]):
    type: str
    object: _Projection


class _EventParts(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Page(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[msgspec.Raw] | None


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What decodes objects of one projection, and events of them."""

    objects: msgspec.json.Decoder[Any]
    events: msgspec.json.Decoder[_Event[Any]]


_DECODERS: dict[type[Any] | None, _Decoder] = {}
_PAGES = msgspec.json.Decoder(_Page)
_EVENT_PARTS = msgspec.json.Decoder(_EventParts)
_METADATA = msgspec.json.Decoder(ObjectMeta)
_WHOLE = msgspec.json.Decoder()


class Items(Sequence[Item]):
    """The items of a page. Each is decoded when it is asked for, and each time: iterate once, and keep one object at a time."""

    def __init__(self, request: Request, texts: Sequence[bytes | msgspec.Raw]) -> None:
        """Decode `texts`, as `request` asked for them."""
        self._request = request
        self._texts = texts

    def __iter__(self) -> Iterator[Item]:
        """Yield the items."""
        for text in self._texts:
            yield _item(self._request, bytes(text))

    async def one_by_one(self) -> AsyncIterator[Item]:
        """Yield the items; those of large texts are decoded in a thread."""
        for text in self._texts:
            yield await large.read(partial(_item, self._request), bytes(text))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._texts)

    def __getitem__(self, index: Any) -> Any:
        """Return one item, or several."""
        return cast("Any", list(self)[index])


async def each(items: Sequence[Item]) -> AsyncIterator[Item]:
    """Yield the items of a page, as `Items.one_by_one` if it has such."""
    if isinstance(items, Items):
        async for item in items.one_by_one():
            yield item
    else:
        for item in items:
            yield item


def read_page(request: Request, body: bytes) -> dict[str, Any] | None:
    """Return the metadata of the list in `body` and its `Items`; None when `body` is something else."""
    try:
        page = _PAGES.decode(body)
        return {"metadata": page.metadata, "items": Items(request, page.items or ())}
    except RecursionError:
        return _deep_page(request, body)
    except NOT_JSON:
        return None


def read_event(request: Request, line: bytes) -> WatchEvent | None:
    """Return the watch event in `line`; None when `line` is something else."""
    if not outline.is_deep(line):
        try:
            event = _decoder(request.projection).events.decode(line)
        except NOT_JSON:
            pass  # taken apart below
        else:
            if event["type"] != "ERROR" or request.projection is None:
                return event
    try:
        kind, text = _event_parts(line)
        return {"type": kind, "object": read_whole(text) if kind in _OF_THE_SERVER else _item(request, text, has_kind=True)}
    except (*NOT_JSON, ValueError):
        return None


def read_whole(text: bytes) -> Any:
    """Return the JSON value in `text`; one of `NOT_JSON` is raised if there is none, or it is nested too deeply."""
    return _read(_WHOLE, text)


def read_object(request: Request, text: bytes) -> Any:
    """Return what the projection of `request` has of the object in `text`; as `read_whole`, and it must fit the projection."""
    return _read(_decoder(request.projection).objects, text)


def _read(decoder: msgspec.json.Decoder[Any], text: bytes) -> Any:
    if outline.is_deep(text):
        raise msgspec.DecodeError(_TOO_DEEP)
    return decoder.decode(text)


def _decoder(projection: type[Any] | None) -> _Decoder:
    if projection not in _DECODERS:
        objects: msgspec.json.Decoder[Any] = msgspec.json.Decoder(dict[str, Any] if projection is None else projection)
        _DECODERS[projection] = _Decoder(objects, msgspec.json.Decoder(cast("Any", _Event)[projection or dict[str, Any]]))
    return _DECODERS[projection]


def _deep_page(request: Request, body: bytes) -> dict[str, Any] | None:
    try:
        parts = dict(outline.members(body, 0))
        metadata = read_whole(parts["metadata"])
        return {"metadata": metadata, "items": Items(request, list(outline.elements(parts["items"], 0)))}
    except (*NOT_JSON, ValueError, KeyError):
        return None


def _event_parts(line: bytes) -> tuple[str, bytes]:
    """Return the type of an event and the text of its object; of one that is deep, with what follows."""
    try:
        parts = _EVENT_PARTS.decode(line)
    except RecursionError:
        return str(read_whole(outline.value(line, b"type"))), line[outline.find(line, b"object") :]
    return parts.type, bytes(parts.object)


def _item(request: Request, text: bytes, *, has_kind: bool = False) -> Item:
    try:
        obj = read_object(request, text)
    except NOT_JSON as error:
        return _unreadable(request, text, str(error))
    if not (has_kind or request.metadata_only):
        # Lists of built-in kinds leave these out of their items, watches do not; a store should hold one shape.
        obj.setdefault("apiVersion", request.resource.api_version)
        obj.setdefault("kind", request.resource.kind)
    return cast("Object", obj)


def _unreadable(request: Request, text: bytes, problem: str) -> Unreadable:
    known: Object = {"apiVersion": request.resource.api_version, "kind": request.resource.kind, "metadata": _metadata(text)}
    return Unreadable(known, problem)


def _metadata(text: bytes) -> ObjectMeta:
    """Return the metadata of an object, or of it what identifies the object; what cannot be read is left out."""
    try:
        start = outline.find(text, b"metadata")
    except ValueError:
        return {}
    try:
        return cast("ObjectMeta", _read(_METADATA, outline.value(text[start : start + METADATA_LIMIT_BYTES])))
    except (*NOT_JSON, ValueError):  # it is longer, or cannot be read
        return cast("ObjectMeta", _identity(text, start))


def _identity(text: bytes, start: int) -> dict[str, str]:
    """Return what can be read of `_IDENTITY` in the object that begins at `start`, in one pass: it may be long."""
    found: dict[str, str] = {}
    try:
        for name, value in outline.members(text, start):
            if name in _IDENTITY and (string := _string(value)):
                found[name] = string
                if len(found) == len(_IDENTITY):
                    break
    except ValueError:  # it does not end
        pass
    return found


def _string(value: bytes) -> str:
    """Return the string that `value` is; "" if it is none."""
    try:
        return msgspec.json.decode(value.decode(errors="replace"), type=str)
    except NOT_JSON:
        return ""
