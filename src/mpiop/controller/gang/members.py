"""How many pods of a job are a gang, what they need, and their priority.

This follows the reference operator's code, which differs from its documents about Volcano's minResources (docs/gang-scheduling.md).
"""

from collections.abc import Mapping

from mpiop.api import constants as c
from mpiop.api.types import MPIJob, ReplicaSpec
from mpiop.controller.objects.pod_template import section
from mpiop.kube.quantity import is_quantity, sum_quantities

Priorities = Mapping[str, int]
"""Values of the PriorityClasses by name; one that is not there counts 0."""


def min_member(job: MPIJob) -> int:
    """Return how many pods of the job must find room before any of them starts.

    With WaitForWorkersReady there is no launcher before the workers are Ready, so no gang may wait for it, whatever the policy contains.
    """
    policy = job.run_policy.scheduling_policy
    members = job.worker_replicas + has_launcher_at_start(job)
    if policy is None or policy.min_available is None:
        return members
    return policy.min_available if has_launcher_at_start(job) else min(policy.min_available, members)


def has_launcher_at_start(job: MPIJob) -> bool:
    """Return whether the launcher starts together with the workers; on its own it always does."""
    return job.launcher_creation_policy == c.AT_STARTUP or not job.worker_replicas


def min_resources(job: MPIJob, priorities: Priorities) -> dict[str, str]:
    """Return what must be free before any pod starts: the policy's value, else what the `min_member` most important pods ask for.

    The launcher comes before workers of the same priority. A container asks for its requests, and for its limit where a request is
    missing; init containers and overhead are not counted. {} is nothing to ask for.
    """
    policy = job.run_policy.scheduling_policy
    if policy is not None and policy.min_resources is not None:
        return dict(policy.min_resources)
    launcher = (job.launcher,) if has_launcher_at_start(job) else ()
    roles = sorted((*launcher, *((job.worker,) if job.worker else ())), key=lambda spec: -priorities.get(_priority_class(spec), 0))
    addends: dict[str, list[tuple[str, int]]] = {}
    left = min_member(job)
    for spec in roles:
        counted = min(left, spec.replicas)
        left -= counted
        for name, quantity in _requests(spec) if counted else ():
            addends.setdefault(name, []).append((quantity, counted))
    return {name: sum_quantities(rows) for name, rows in sorted(addends.items())}


def priority_class(job: MPIJob) -> str:
    """Return the PriorityClass of the gang: the policy's, else the launcher's, else the workers'; "" is none."""
    policy = job.run_policy.scheduling_policy
    said = (policy.priority_class if policy else "", _priority_class(job.launcher), _priority_class(job.worker) if job.worker else "")
    return next((name for name in said if name), "")


def _priority_class(spec: ReplicaSpec) -> str:
    name: str = section(spec.template, "spec").get("priorityClassName") or ""
    return name


def _requests(spec: ReplicaSpec) -> list[tuple[str, str]]:
    """Return what each container of a pod asks for, by resource, without invalid quantities: the API server refuses their pod."""
    rows: list[tuple[str, str]] = []
    for container in section(spec.template, "spec").get("containers") or ():
        resources = section(container, "resources")
        asked = {**section(resources, "limits"), **section(resources, "requests")}
        rows += [(name, str(quantity)) for name, quantity in asked.items() if is_quantity(str(quantity))]
    return rows
