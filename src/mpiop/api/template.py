"""The parts of a pod template that the operator itself reads or extends, checked for their types.

The CRD keeps the types of all known fields, but an object may have been stored under an older schema. After `conform` the builders may
rely on these parts: absent, or of the right type, never null. All other fields pass through unseen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from mpiop.api.fields import as_integer, as_mapping, invalid


@dataclass(frozen=True, slots=True)
class MapOf:
    """A JSON object with keys of the user's choice and values of one shape."""

    value: "Shape"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A `resource.Quantity`: a string or a number."""


@dataclass(frozen=True, slots=True)
class AnyObject:
    """A JSON object that is not looked into."""


Shape: TypeAlias = type[str] | type[bool] | type[int] | Quantity | AnyObject | MapOf | Mapping[str, "Shape"] | Sequence["Shape"]

_CONTAINER: Final[Shape] = {
    "name": str,
    "image": str,
    "command": (str,),
    "args": (str,),
    "workingDir": str,
    "env": ({"name": str, "value": str, "valueFrom": AnyObject()},),
    "envFrom": (AnyObject(),),
    "ports": (AnyObject(),),
    "volumeMounts": ({"name": str, "mountPath": str},),
    "volumeDevices": (AnyObject(),),
    "resources": {"limits": MapOf(Quantity()), "requests": MapOf(Quantity()), "claims": (AnyObject(),)},
    "securityContext": AnyObject(),
    "startupProbe": AnyObject(),
    "readinessProbe": AnyObject(),
    "livenessProbe": AnyObject(),
    "lifecycle": AnyObject(),
}

POD_TEMPLATE: Final[Shape] = {
    "metadata": {"labels": MapOf(str), "annotations": MapOf(str), "finalizers": (str,)},
    "spec": {
        "containers": (_CONTAINER,),
        "initContainers": (_CONTAINER,),
        "volumes": ({"name": str},),
        "imagePullSecrets": (AnyObject(),),
        "restartPolicy": str,
        "hostname": str,
        "subdomain": str,
        "hostNetwork": bool,
        "dnsPolicy": str,
        "dnsConfig": {"nameservers": (str,), "searches": (str,), "options": (AnyObject(),)},
        "schedulerName": str,
        "priorityClassName": str,
        "priority": int,
        "nodeSelector": MapOf(str),
        "affinity": AnyObject(),
        "tolerations": (AnyObject(),),
        "schedulingGates": (AnyObject(),),
        "schedulingGroup": AnyObject(),
        "securityContext": AnyObject(),
        "overhead": MapOf(Quantity()),
        "resources": {"limits": MapOf(Quantity()), "requests": MapOf(Quantity())},
    },
}

_ADVICE: Final[Mapping[object, str]] = {
    str: "must be a string; put it in quotes",
    bool: "must be true or false, without quotes",
    int: "must be a whole number, without quotes",
}


def conform(value: object, shape: Shape, path: str, errors: list[str]) -> Any:
    """Return `value` without the nulls at places that `shape` names; note in `errors` what has the wrong type.

    The value itself is never changed; it is returned as it is when nothing had to be left out. The depth of the walk is that of `shape`,
    however deep the value is.
    """
    if isinstance(shape, MapOf | Mapping):
        return _conform_object(value, shape, path, errors)
    if isinstance(shape, Sequence):
        return _conform_list(value, shape[0], path, errors)
    if not _is_scalar(value, shape):
        errors.append(invalid(path, value, _scalar_advice(shape)))
    return value


def _conform_object(value: object, shape: MapOf | Mapping[str, Shape], path: str, errors: list[str]) -> Any:
    mapping = as_mapping(value)
    if mapping is None:
        errors.append(invalid(path, value, "must be an object: indent its fields below it"))
        return value
    known = dict.fromkeys(mapping, shape.value) if isinstance(shape, MapOf) else shape
    changed: dict[str, Any] = {}
    nulls: set[str] = set()
    for name, inner in known.items():
        if name not in mapping:
            continue
        if mapping[name] is None:
            nulls.add(name)
            continue
        conformed = conform(mapping[name], inner, f"{path}.{name}", errors)
        if conformed is not mapping[name]:
            changed[name] = conformed
    if not changed and not nulls:
        return mapping
    return {name: changed.get(name, item) for name, item in mapping.items() if name not in nulls}


def _conform_list(value: object, shape: Shape, path: str, errors: list[str]) -> Any:
    if not isinstance(value, list):
        errors.append(invalid(path, value, 'must be a list: begin each item with "- "'))
        return value
    items = cast("list[object]", value)
    conformed = [conform(item, shape, f"{path}[{index}]", errors) for index, item in enumerate(items)]
    return items if all(new is old for new, old in zip(conformed, items, strict=True)) else conformed


def _is_scalar(value: object, shape: Shape) -> bool:
    if isinstance(shape, Quantity):
        return isinstance(value, str | int | float) and not isinstance(value, bool)
    if isinstance(shape, AnyObject):
        return as_mapping(value) is not None
    if shape is int:
        return as_integer(value) is not None
    return isinstance(value, cast("type", shape))


def _scalar_advice(shape: Shape) -> str:
    if isinstance(shape, Quantity):
        return 'must be a quantity such as 2, "500m" or "16Gi"'
    return _ADVICE.get(shape, "must be an object: indent its fields below it")
