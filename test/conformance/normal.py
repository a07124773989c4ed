"""Objects of a cluster in the form of the recordings: without what differs from one run to the next."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.recordings import Objects

_LEFT_OUT = frozenset({"resourceVersion", "generation", "managedFields"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_GENERATED = re.compile(r"(kube-api-access-)[a-z0-9]{5}")
_SUFFIX_CHARACTERS = 5


def normalised(found: Mapping[str, Sequence[Mapping[str, Any]]], namespace: str) -> Objects:
    """Return objects by kind as the recordings have them; Events are those about MPIJobs, Pods those that are not on their way out."""
    everything = [(kind, each) for kind, objects in found.items() for each in objects]
    names = {each["metadata"]["uid"]: f"<uid of {kind} {_base(each)}>" for kind, each in everything}
    names |= {each["metadata"]["name"]: f"{_base(each)}-<5>" for _, each in everything if "generateName" in each["metadata"]}
    return {kind: [_object(kind, each, names, namespace) for each in objects if _counts(kind, each)] for kind, objects in found.items()}


def _counts(kind: str, found: Mapping[str, Any]) -> bool:
    if kind == "Event":
        return bool(found["involvedObject"].get("kind") == "MPIJob")
    if kind == "ConfigMap":
        return bool(found["metadata"]["name"] != "kube-root-ca.crt")
    return kind != "Pod" or "deletionTimestamp" not in found["metadata"]


def _object(kind: str, found: Mapping[str, Any], names: Mapping[str, str], namespace: str) -> Mapping[str, Any]:
    metadata = {name: value for name, value in found["metadata"].items() if name not in _LEFT_OUT}
    result = {**found, "metadata": metadata}
    if kind == "Event":
        del result["metadata"]
    if kind != "MPIJob":
        result = {name: value for name, value in result.items() if name not in {"apiVersion", "kind"}}
    if kind == "Pod":
        result["status"] = {"phase": found["status"]["phase"]}
    if kind == "Secret":
        result["data"] = dict.fromkeys(found.get("data") or (), "<key>")
    plain: Mapping[str, Any] = _replaced(result, names, namespace)
    return plain


def _replaced(value: Any, names: Mapping[str, str], namespace: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(member, names, namespace) for name, member in value.items()}
    if isinstance(value, list):
        return [_replaced(item, names, namespace) for item in value]
    if not isinstance(value, str):
        return value
    if _TIME.fullmatch(value):
        return "<time>"
    for name, plain in names.items():
        value = value.replace(name, plain)
    return _GENERATED.sub(r"\1<5>", value.replace(namespace, "ns"))


def _base(found: Mapping[str, Any]) -> str:
    name: str = found["metadata"]["name"]
    return name[: -_SUFFIX_CHARACTERS - 1] if "generateName" in found["metadata"] else name
