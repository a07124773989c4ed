"""The end state of a run in a form that two runs can be compared in: without UIDs, versions, times and made-up suffixes."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast

from mpiop.kube.client import Client
from mpiop.kube.objects import Object
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SECRETS, SERVICES, Resource, Selection

JOB = "pi"
CHILDREN = (SERVICES, CONFIG_MAPS, SECRETS, JOBS, PODS)
ROLE = "training.kubeflow.org/job-role"
BYSTANDER = "bystander"
DEGRADED = "Degraded"
LOST_A_WORKER = f"mpijobs/{JOB}: {DEGRADED}, and no more"
"""The entry of a job that has reported a worker's loss, which is over; a faultless run has none."""
State = dict[str, Any]


async def objects(client: Client, resource: Resource, namespace: str, *, newest: bool = True) -> list[Object]:
    """Return the objects of a resource in a namespace, the cluster's own left out; not `newest` costs the server less."""
    page = await client.list_page(Selection(resource, namespace), resource_version="" if newest else "0")
    return [each for each in page["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]


async def read_state(client: Client, namespace: str) -> State:
    """Return what is in the namespace of a run."""
    lists = await asyncio.gather(*(objects(client, resource, namespace) for resource in (MPIJOBS, *CHILDREN)))
    state: State = {}
    for resource, found in zip((MPIJOBS, *CHILDREN), lists, strict=True):
        for obj in found:
            name = obj["metadata"]["name"]
            if name.startswith(BYSTANDER):
                continue
            if resource is PODS and role(obj) == "launcher":
                name = "launcher"
            raw = cast("Mapping[str, Any]", obj)
            state[f"{resource.plural}/{name}"] = _summary(resource, raw)
            if resource is MPIJOBS and _is_over(raw, DEGRADED):
                state[f"{resource.plural}/{name}: {DEGRADED}, and no more"] = True
    return state


def role(pod: Object) -> str:
    return pod["metadata"].get("labels", {}).get(ROLE, "")


def published_addresses(pod: Mapping[str, Any]) -> list[str]:
    """Return the addresses that are published to a launcher's pod, `<index> <address>` each."""
    annotations = pod["metadata"].get("annotations") or {}
    lines = str(annotations.get("mpiop.kubeflow.org/addresses", "")).splitlines()
    return [line for line in lines if not line.startswith("workers ")]


def conditions(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the conditions that an object has, type to status."""
    return {each["type"]: each["status"] for each in obj.get("status", {}).get("conditions") or ()}


def _is_over(obj: Mapping[str, Any], type_: str) -> bool:
    """Return whether a condition was True, and is so no more."""
    rows = obj.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"], each["reason"]) == (type_, "False", "Resolved") for each in rows)


def _summary(resource: Resource, obj: Mapping[str, Any]) -> Any:
    status = obj.get("status") or {}
    owned = [[owner["kind"], owner["name"]] for owner in obj["metadata"].get("ownerReferences", [])]
    common = {"owners": owned, "labels": sorted(obj["metadata"].get("labels") or {})}
    if resource is MPIJOBS:
        reasons = {each["type"]: [each["status"], each["reason"]] for each in status.get("conditions") or ()}
        # Writes that failed for seconds are reported until they succeed. What was degraded is an entry of its own (`read_state`).
        over = {type_ for type_ in ("Stalled", DEGRADED) if _is_over(obj, type_)}
        return {
            "conditions": {type_: row for type_, row in reasons.items() if type_ not in over},
            "replicas": status.get("replicaStatuses"),
            "started": "startTime" in status,
            "completed": "completionTime" in status,
            "restarts": status.get("restarts", 0),
        }
    if resource is PODS:
        return common | {"phase": status.get("phase"), "addresses": published_addresses(obj)}
    if resource is JOBS:
        return common | {"conditions": conditions(obj), "suspend": obj["spec"].get("suspend", False)}
    if resource is CONFIG_MAPS:
        namespace = obj["metadata"]["namespace"]
        return common | {"data": {key: text.replace(f".{namespace}.", ".NAMESPACE.") for key, text in (obj.get("data") or {}).items()}}
    if resource is SECRETS:
        return common | {"keys": sorted(obj.get("data") or {}), "type": obj.get("type")}
    return common | {"selector": obj["spec"].get("selector")}


def difference(desired: State, found: State, *, but: Collection[str] = ()) -> list[str]:
    """Return what differs, a line each, leaving out some names."""
    return [
        f"{name}: {found.get(name, 'absent')} instead of {desired.get(name, 'absent')}"
        for name in sorted(desired.keys() | found.keys())
        if desired.get(name) != found.get(name) and name not in but
    ]
