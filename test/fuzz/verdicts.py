"""What became of a job: refused, served, or reported with what is wrong with it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from faults.state import role
from mpiop.api import constants as c
from mpiop.api.manager import other_manager
from mpiop.kube.objects import Object

Obj = Mapping[str, Any]


class Verdict(StrEnum):
    """How a job ended up."""

    REFUSED = "refused by the API server"
    SERVED = "served"
    STALLED = "stalled with a reason"
    FAILED = "failed with a reason"
    SUSPENDED = "suspended as asked"
    NOT_OURS = "left to another manager"


def verdict(job: Object, pods: Iterable[Object]) -> Verdict | None:
    """Return what became of a stored job; None as long as nobody who reads it could report.

    Args:
        job: As it is stored.
        pods: All Pods that carry its name.
    """
    if other_manager(job) is not None:
        return Verdict.NOT_OURS
    wire: Any = job
    status = wire.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or () if each["status"] == "True"}
    ends = ((c.CONDITION_FAILED, Verdict.FAILED), (c.CONDITION_STALLED, Verdict.STALLED), (c.CONDITION_RECONCILING, Verdict.STALLED))
    for type_, outcome in ends:
        if (found := conditions.get(type_)) and found.get("reason", "Starting") != "Starting" and found.get("message"):
            return outcome
    if c.CONDITION_SUSPENDED in conditions:
        return Verdict.SUSPENDED
    if c.CONDITION_CREATED not in conditions:
        return None
    return Verdict.SERVED if _has_its_pods(wire["spec"], list(pods)) else None


def _has_its_pods(spec: Obj, pods: list[Object]) -> bool:
    """Return whether the Pods are there that the spec asks for; a launcher that is to wait for workers waits: no kubelet starts them."""
    worker = spec["mpiReplicaSpecs"].get("Worker")
    desired = 0 if worker is None else worker.get("replicas", 1)
    if len([pod for pod in pods if role(pod) == "worker"]) != desired:
        return False
    waits = spec.get("launcherCreationPolicy") == c.WAIT_FOR_WORKERS_READY and desired
    return bool(waits) or any(role(pod) == "launcher" for pod in pods)
