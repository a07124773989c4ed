"""Wire objects as the API server sends them, and accessors for common fields.

Objects of other people stay dicts: a field that we do not know is never lost (see docs/adr/0001).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, NotRequired, TypedDict

from mpiop.clock import parse_time


class Key(NamedTuple):
    """What identifies an object of one kind at one moment: namespace ("" for cluster scope) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Render as `namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ControllerId(NamedTuple):
    """The controller of an object, which is in the object's namespace: the same UID in another namespace means another controller."""

    namespace: str
    group: str
    kind: str
    uid: str

    def __str__(self) -> str:
        """Render uniquely, for an index: a UID contains no slash."""
        return "/".join(self)


class OwnerReference(TypedDict):
    """`metav1.OwnerReference`."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: NotRequired[bool]
    blockOwnerDeletion: NotRequired[bool]


class ObjectMeta(TypedDict, total=False):
    """`metav1.ObjectMeta`: the fields that we read or set."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: str
    deletionTimestamp: str
    deletionGracePeriodSeconds: int
    labels: dict[str, str]
    annotations: dict[str, str]
    ownerReferences: list[OwnerReference]
    finalizers: list[str]


class Object(TypedDict):
    """Any Kubernetes object; never change one that comes from a store."""

    apiVersion: NotRequired[str]
    kind: NotRequired[str]
    metadata: ObjectMeta
    spec: NotRequired[dict[str, Any]]
    status: NotRequired[dict[str, Any]]
    data: NotRequired[dict[str, str]]
    type: NotRequired[str]
    immutable: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that exists and cannot be decoded.

    Attributes:
        object: What is known of it: apiVersion, kind, and of its metadata what could be read, mostly all.
        problem: Why it cannot be decoded.
    """

    object: Object
    problem: str


Item = Object | Unreadable
"""What a list has many of, and a watch sends the changes of."""


class PartialObjectMetadata(TypedDict, total=False):
    """The projection of an answer of which metadata alone was asked for: `PartialObjectMetadata`, or a Status; of both, what is read."""

    kind: str
    metadata: ObjectMeta


class ObjectList(TypedDict):
    """A page of a list; `metadata["continue"]` is present when there are more pages. Items may be `Unreadable`, like objects of events."""

    metadata: Mapping[str, Any]
    items: Sequence[Any]


class WatchEvent(TypedDict):
    """One line of a watch: `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (then `object` is a Status)."""

    type: str
    object: Any


def key_of(obj: Object) -> Key:
    """Return the key of `obj`."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata.get("name", ""))


def known_part(item: Item) -> Object:
    """Return the object, or of one that cannot be decoded what is known."""
    return item.object if isinstance(item, Unreadable) else item


def uid_of(obj: Object) -> str:
    """Return the UID of `obj`, or "" when the server has not assigned one."""
    return obj["metadata"].get("uid", "")


def resource_version_of(obj: Object) -> str:
    """Return the resourceVersion of `obj`, or ""."""
    return obj["metadata"].get("resourceVersion", "")


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return the labels of `obj`; null counts as none."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> Mapping[str, str]:
    """Return the annotations of `obj`; null counts as none."""
    return obj["metadata"].get("annotations") or {}


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the owner reference with `controller: true`, of which there is at most one."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference
    return None


def controller_id(obj: Object) -> ControllerId | None:
    """Return the ID of the controller of `obj`, whatever API version the reference names."""
    reference = controller_of(obj)
    if reference is None:
        return None
    group, _, _ = reference["apiVersion"].rpartition("/")
    return ControllerId(obj["metadata"].get("namespace", ""), group, reference["kind"], reference["uid"])


def creation_time(obj: Object) -> datetime | None:
    """Return the creation time of `obj`; None if it is not stored."""
    created = obj["metadata"].get("creationTimestamp")
    return parse_time(created) if created else None


def is_terminating(obj: Object) -> bool:
    """Return whether deletion of `obj` has begun."""
    return "deletionTimestamp" in obj["metadata"]


def is_at_least(have: str, want: str) -> bool | None:
    """Compare two resourceVersions of the same resource: return whether `have` is as new as `want`.

    Returns:
        None when they cannot be compared. Kubernetes orders them as decimal integers (KEP-5504); others, such as "", are only equal or not.
    """
    if have == want:
        return True
    if have.isdecimal() and want.isdecimal():
        return int(have) >= int(want)
    return None
