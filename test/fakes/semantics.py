"""What the API server does to objects, as pure functions: merge patch, selectors, generation, status."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mpiop.kube.resources import JOBS, MPIJOBS, PODS, SERVICES

Json = dict[str, Any]

WITH_STATUS = {MPIJOBS, JOBS, PODS, SERVICES}
"""Resources whose status is written through the subresource alone."""

WITH_GENERATION = {MPIJOBS, JOBS, PODS}
"""Resources whose `metadata.generation` counts changes of the desired state."""

SERVER_METADATA = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")


def copied(value: Any) -> Any:
    """Return `value` as it comes out of JSON: nothing shared, tuples as lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


def projected(obj: Any, projection: type[Any] | None) -> Any:
    """Return what of `obj` a client decodes that asks for `projection`; None is all."""
    return obj if projection is None else msgspec.json.decode(msgspec.json.encode(obj), type=projection)


def merged(target: Any, patch: Any) -> Any:
    """Return `target` after the merge patch `patch` (RFC 7386); null removes."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def desired(obj: Mapping[str, Any]) -> Json:
    """Return what `metadata.generation` counts the changes of."""
    return {name: value for name, value in obj.items() if name not in {"status", "metadata"}}


def partial(obj: Mapping[str, Any]) -> Json:
    """Return `obj` as `PartialObjectMetadata`."""
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj["metadata"]}


def field(obj: Mapping[str, Any], path: str) -> Any:
    """Return the value at the dotted `path`, or None."""
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


_SET = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)$")
_PAIR = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<operator>==|=|!=)\s*(?P<values>\S*)$")


def label_predicate(selector: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether an object matches the label `selector` (the syntax of `kubectl -l`)."""
    terms = [_label_term(term.strip()) for term in re.split(r",(?![^(]*\))", selector) if term.strip()]

    def matches(obj: Mapping[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(term(labels) for term in terms)

    return matches


def _label_term(term: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(term) or _PAIR.match(term):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["operator"] in {"notin", "!="}:
            return lambda labels: labels.get(key) not in values
        return lambda labels: labels.get(key) in values
    if term.startswith("!"):
        return lambda labels: term[1:] not in labels
    return lambda labels: term in labels


def field_predicate(selector: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether an object matches the field `selector`: `path=value` or `path!=value`, joined by commas."""
    terms = [re.split(r"(!=|==|=)", term) for term in selector.split(",") if term]

    def matches(obj: Mapping[str, Any]) -> bool:
        return all((str(field(obj, path) or "") == value) != (operator == "!=") for path, operator, value in terms)

    return matches


def same_but_version(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two objects differ in nothing but their resourceVersion: then the server writes nothing."""

    def bare(obj: Mapping[str, Any]) -> Json:
        return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}}

    return bare(one) == bare(other)
