"""Reads from `metadata.managedFields` who has written which fields of an object (pure)."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict, cast

from mpiop.api.fields import as_mapping
from mpiop.api.status import timestamp
from mpiop.kube.objects import Object

Path = tuple[str, ...]
"""The names of a field and of those around it, such as `("data", "hostfile")`."""

_MPIOP: Final = "mpiop"
_KUBEFLOW: Final = "mpi-operator"
_MAX_LENGTH: Final = 128
"""Of the name of a field manager. Source: apimachinery, validation.FieldManagerMaxLength."""
_DIGEST_LENGTH: Final = 8


def field_manager(lock_namespace: str, lease_name: str) -> str:
    """Return the name under which an operator writes. Two that write at the same time have different Leases, and so different names."""
    name = f"{_MPIOP}:{lock_namespace}/{lease_name}"
    if len(name) <= _MAX_LENGTH:
        return name
    return name[: _MAX_LENGTH - _DIGEST_LENGTH] + hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]


class _ManagedFields(TypedDict, total=False):
    managedFields: list[Any]


class WithManagedFields(TypedDict, total=False):
    """The projection of an object that has its writers."""

    metadata: _ManagedFields


@dataclass(frozen=True, slots=True)
class Writers:
    """Who writes the same fields as we do.

    Attributes:
        names: Field managers; without any, nobody is known.
        are_operators: They are operators of MPIJobs.
        is_admission: The server stored other values than we sent, in our own request.
    """

    names: tuple[str, ...] = ()
    are_operators: bool = False
    is_admission: bool = False


def writers_of(live: Object, fields: Collection[Path], ours: str, since: datetime) -> Writers:
    """Return who has written `fields`, besides `ours`.

    A write takes the ownership of each field that it changes. What admission changes has the owner of the request. Nobody owns a field that
    was removed, so an operator that has written the object since then is to blame: two of them do not manage one job by design.
    """
    entries, since = list(_entries(live)), since.replace(microsecond=0)
    owners = {str(entry.get("manager")) for entry in entries if any(_has(entry.get("fieldsV1"), path) for path in fields)}
    others = sorted(owners - {ours})
    if not others and ours in owners:
        return Writers(is_admission=True)
    late = {str(entry.get("manager")) for entry in entries if (time := timestamp(entry.get("time"))) is not None and time >= since}
    operators = tuple(sorted(filter(_is_operator, others or late - {ours})))
    return Writers(operators, are_operators=True) if operators else Writers(tuple(others))


def _is_operator(manager: str) -> bool:
    return manager == _KUBEFLOW or manager.partition(":")[0] == _MPIOP


def _entries(live: Object) -> Iterator[Mapping[str, Any]]:
    rows = cast("Mapping[str, Any]", live["metadata"]).get("managedFields")
    yield from filter(None, map(as_mapping, cast("list[object]", rows) if isinstance(rows, list) else ()))


def _has(fields: object, path: Path) -> bool:
    for name in path:
        fields = (as_mapping(fields) or {}).get(f"f:{name}")
    return fields is not None
