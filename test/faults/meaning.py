"""What a request means, so that the same request is found again in another run: `create pods/pi-worker-0 #1`."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/[^/]+)?/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_TEXT = re.compile(r"(?P<verb>\w+) (?P<resource>\w+)(?:\.(?P<subresource>\w+))?(?:/(?P<name>\S+))? #(?P<ordinal>\d+)")
_MADE_UP = re.compile(r"(?<=-launcher)-[a-z0-9]{5}$")
"""What the Job controller adds to the name of a launcher's pod, another thing in each run."""
WRITES = frozenset(_VERBS.values())
FOLLOWED: dict[str, Resource] = {resource.plural: resource for resource in (CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES)}
"""What the operator watches, by plural."""


@dataclass(frozen=True, slots=True, order=True)
class Meaning:
    """What is asked of what. The namespace is left out: each run has its own.

    Attributes:
        verb: get, list, watch, create, patch, update or delete; `event` for an event of a watch.
        resource: Plural of the resource.
        subresource: For example `status`, or "".
        name: Of the object, also of one to be created; an Event's reason, since its name is made of times; a launcher's pod without what
            makes its name unique; "" for a collection.
    """

    verb: str
    resource: str
    subresource: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Render as `verb resource.subresource/name`."""
        kind = f"{self.resource}.{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {kind}/{self.name}" if self.name else f"{self.verb} {kind}"

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """The n-th request of a meaning in a run, from 1."""

    meaning: Meaning
    ordinal: int = 1

    def __str__(self) -> str:
        """Render as `verb resource/name #n`."""
        return f"{self.meaning} #{self.ordinal}"

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read what `str` wrote.

        Raises:
            ValueError: It is something else.
        """
        if not (match := _TEXT.fullmatch(text)):
            raise ValueError(f"{text!r} is no target; they look like: create pods/pi-worker-0 #1")
        parts = match.groupdict(default="")
        return cls(Meaning(parts["verb"], parts["resource"], parts["subresource"], parts["name"]), int(parts["ordinal"]))


class Numbering:
    """Counts requests by meaning."""

    def __init__(self) -> None:
        self._seen = Counter[Meaning]()

    def next(self, meaning: Meaning) -> Target:
        """Return the target that this request of `meaning` is."""
        self._seen[meaning] += 1
        return Target(meaning, self._seen[meaning])


def meaning_of(first_line: str, body: bytes) -> Meaning:
    """Return what a request means.

    Args:
        first_line: For example `GET /api/v1/namespaces/x/pods?watch=true HTTP/1.1`.
        body: Its body, which names the object of a create.
    """
    method, target, _ = first_line.split(" ")
    url = urlsplit(target)
    match = _PATH.fullmatch(url.path)
    if not match:
        return Meaning("get", "other", "", url.path)
    resource, subresource = match["resource"], match["subresource"] or ""
    name = unquote(match["name"] or "")
    if resource == "pods":
        name = _MADE_UP.sub("-pod", name)
    if method == "GET":
        if "watch" in parse_qs(url.query):
            return Meaning("watch", resource)
        return Meaning("get" if name else "list", resource, subresource, name)
    verb = _VERBS[method]
    if resource == "events":
        return Meaning(verb, resource, "", _reason(body) if verb == "create" else "")
    return Meaning(verb, resource, subresource, name or _body_name(body))


def object_name(first_line: str) -> str:
    """Return the name of the object that a request is about, as it is; "" when it names none."""
    match = _PATH.fullmatch(urlsplit(first_line.split(" ")[1]).path)
    return unquote(match["name"] or "") if match else ""


def asked_of(first_line: str, body: bytes) -> dict[str, str]:
    """Return what the request makes a condition, or asks to be served from: `resourceVersion` and `uid`, those that it names.

    Args:
        first_line: As for `meaning_of`.
        body: A write's has them in its metadata, a deletion's in its preconditions.
    """
    method, target, _ = first_line.split(" ")
    if method == "GET":
        query = parse_qs(urlsplit(target).query)
        return {name: query[name][0] for name in ("resourceVersion", "sendInitialEvents") if name in query}
    decoded = _decoded(body)
    given = decoded.get("preconditions" if method == "DELETE" else "metadata") or {}
    return {name: str(given[name]) for name in ("uid", "resourceVersion") if given.get(name)}


def _decoded(body: bytes) -> dict[str, Any]:
    decoded: Any = msgspec.json.decode(body) if body else {}
    return decoded if isinstance(decoded, dict) else {}


def _body_name(body: bytes) -> str:
    return str(_decoded(body).get("metadata", {}).get("name", ""))


def _reason(body: bytes) -> str:
    return str(_decoded(body).get("reason", ""))
