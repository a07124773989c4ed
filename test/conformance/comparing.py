"""How two sets of objects differ, field by field, and which of it is listed."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.recordings import Objects

LISTED = Path(__file__).parent / "differences.toml"
ADDED, MISSING, CHANGED, ORDER = "added", "missing", "changed", "order"
_IDENTITIES = ("mountPath", "name", "type", "path", "key")
_ROLE = "training.kubeflow.org/job-role"
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One field.

    Attributes:
        path: Words from the kind of the object to the field; an element of a list is called by what identifies it.
        kind: `ADDED` by us, `MISSING` of ours, `CHANGED`, or another `ORDER` of the same elements.
        theirs: What the recording has.
        ours: What the cluster has.
    """

    path: str
    kind: str
    theirs: Any = None
    ours: Any = None

    def __str__(self) -> str:
        """Render as one line."""
        match self.kind:
            case "added":
                return f"{self.path}: added: {self.ours!r}"
            case "missing":
                return f"{self.path}: missing, the recording has {self.theirs!r}"
            case kind:
                return f"{self.path}: {kind}: {self.ours!r}, the recording has {self.theirs!r}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One intended difference.

    Attributes:
        where: Paths; `*` represents any part of a word.
        kind: As that of a difference.
        ours: What the value has to be; None is any.
        stages: Patterns of `case/stage` in which it may be; none is all.
        reason: Why it is intended.
        see: Where the compatibility page describes it, `docs/compatibility.md#anchor`.
    """

    where: tuple[str, ...]
    kind: str
    ours: Any
    stages: tuple[str, ...]
    reason: str
    see: str

    def allows(self, found: Difference, stage: str, where: str) -> bool:
        """Return whether `found`, of a stage `case/stage`, is what this entry lists under the path `where`."""
        return (
            found.kind == self.kind
            and _matches(where, found.path)
            and (self.ours is None or self.ours == found.ours)
            and (not self.stages or any(_matches(each, stage) for each in self.stages))
        )


def listed() -> tuple[Entry, ...]:
    content = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    return tuple(
        Entry(
            where=tuple(each["where"]),
            kind=each["is"],
            ours=each.get("ours"),
            stages=tuple(each.get("stages", ())),
            reason=each["reason"],
            see=each["see"],
        )
        for each in content.get("difference", ())
    )


def unlisted(entries: Sequence[Entry], found: Sequence[Difference], stage: str) -> list[Difference]:
    """Return those differences of a stage `case/stage` that no entry lists."""
    return [each for each in found if not any(entry.allows(each, stage, where) for entry in entries for where in entry.where)]


def differences(theirs: Objects, ours: Objects) -> list[Difference]:
    """Return how our objects differ from the recorded ones."""
    kinds = sorted({*theirs, *ours})
    return [found for kind in kinds for found in _objects(kind, theirs.get(kind, ()), ours.get(kind, ()))]


def _objects(kind: str, theirs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    left, right = _by_name(kind, theirs), _by_name(kind, ours)
    for key in dict.fromkeys((*left, *right)):
        there, here = left.get(key), right.get(key)
        title = _title(kind, there or here or {})
        if there is None:
            yield Difference(title, ADDED, ours=_short(here))
        elif here is None:
            yield Difference(title, MISSING, theirs=_short(there))
        else:
            yield from _mapping(title, there, here)


def _by_name(kind: str, objects: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    """Return objects by what distinguishes them: Events by reason, Pods of one generated name by their phase."""
    if kind == "Event":
        ranked = sorted(objects, key=lambda each: each["reason"])
        seen = Counter[str]()
        return {(each["reason"], f"{_next(seen, each['reason'])}"): each for each in ranked}
    names = [each["metadata"]["name"] for each in objects]
    if len(set(names)) == len(names):
        return {(each["metadata"]["name"],): each for each in objects}
    return {(each["metadata"]["name"], each.get("status", {}).get("phase", "")): each for each in objects}


def _next(seen: Counter[str], reason: str) -> int:
    seen[reason] += 1
    return seen[reason]


def _title(kind: str, found: Mapping[str, Any]) -> str:
    if kind == "Event":
        return f"Event({found['reason']})"
    return f"Pod({found['metadata']['labels'].get(_ROLE)})" if kind == "Pod" else kind


def _short(found: Mapping[str, Any] | None) -> str:
    metadata = (found or {}).get("metadata") or {"name": (found or {}).get("message")}
    return f"{metadata.get('name')}"


def _mapping(path: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys((*theirs, *ours)):
        yield from _value(f"{path} {name}", theirs.get(name, _NOTHING), ours.get(name, _NOTHING))


def _value(path: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    if theirs is _NOTHING and isinstance(ours, dict) and ours:
        theirs = {}
    if ours is _NOTHING and isinstance(theirs, dict) and theirs:
        ours = {}
    if theirs is _NOTHING:
        yield Difference(path, ADDED, ours=ours)
    elif ours is _NOTHING:
        yield Difference(path, MISSING, theirs=theirs)
    elif isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _mapping(path, theirs, ours)
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from _list(path, theirs, ours)
    elif theirs != ours:
        yield Difference(path, CHANGED, theirs, ours)


def _list(path: str, theirs: Sequence[Any], ours: Sequence[Any]) -> Iterator[Difference]:
    left, right = _by_identity(theirs), _by_identity(ours)
    if left is None or right is None:
        if theirs != ours:
            yield Difference(path, CHANGED, theirs, ours)
        return
    for name in dict.fromkeys((*left, *right)):
        if name in left and name in right:
            yield from _value(f"{path} {name}", left[name], right[name])
        else:
            kind = MISSING if name in left else ADDED
            yield Difference(f"{path} {name}", kind, left.get(name), right.get(name))
    orders = [name for name in left if name in right], [name for name in right if name in left]
    if orders[0] != orders[1]:
        yield Difference(path, ORDER, *orders)


def _by_identity(items: Sequence[Any]) -> dict[str, Any] | None:
    """Return the elements by what identifies each; None where nothing does."""
    if not all(isinstance(item, dict) for item in items):
        return None
    for identity in _IDENTITIES:
        values = [item.get(identity) for item in items]
        if None not in values and len(set(values)) == len(values):
            return dict(zip(values, items, strict=True))
    return None


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"[^ ]*").replace(r"\ ", " "), text) is not None
