"""The progress of a job in one line."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.api.defaults import WORKER_REPLICAS
from mpiop.api.names import launcher_name, worker_index
from mpiop.client.status import PENDING, TERMINATING, JobStatus, is_unseen, status_of

Object = Mapping[str, Any]
UNSEEN_SECONDS: Final = 10.0
"""An operator that watches the namespace of a job writes its status within a second."""


def progress(job: Object, pods: Sequence[Object]) -> str:
    """Return the progress of the job: the reason if it waits, else how far its workers are."""
    status = status_of(job)
    if status.is_finished or status.state == TERMINATING:
        return status.state.lower()
    if (problem := status.problem) is not None:
        return f"{problem.reason}: {problem.message}"
    if status.state == c.QUEUED:
        return f"queued: waits for Kueue queue {job['metadata'].get('labels', {}).get(c.LABEL_QUEUE, '')}"
    if status.condition(c.CONDITION_SUSPENDED) is not None:
        return "suspended"
    if status.state == PENDING:
        return f"created: {unseen(job)}" if is_unseen(job, UNSEEN_SECONDS) else "created: waits for the operator"
    return _workers(job, status, [pod for pod in pods if is_worker(pod)])


def unseen(job: Object) -> str:
    """Return what is known of a job that no operator has seen, and the command that helps."""
    namespace = job["metadata"].get("namespace", "default")
    return f"no operator has seen it: none runs, or none watches namespace {namespace}; check with: kubectl mpi doctor -n {namespace}"


def is_worker(pod: Object) -> bool:
    """Return whether it is a worker's Pod."""
    return bool(pod["metadata"].get("labels", {}).get(c.LABEL_JOB_ROLE) == c.ROLE_WORKER)


def is_controlled(job: Object, pod: Object) -> bool:
    """Return whether a Pod with the labels of the job is one of its workers, or of its launcher: anybody can give a Pod these labels."""
    name, metadata = job["metadata"]["name"], pod["metadata"]
    owners: Sequence[Object] = metadata.get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), dict[str, Any]())
    if is_worker(pod):
        return owner.get("uid") == job["metadata"]["uid"] and worker_index(name, metadata["name"]) is not None
    return (owner.get("kind"), owner.get("name")) == ("Job", launcher_name(name))


def pod_order(pod: Object) -> tuple[bool, int, str]:
    """Return the key that sorts the launcher's Pods before the workers, and these by index."""
    name: str = pod["metadata"]["name"]
    return is_worker(pod), len(name), name


def ranks_of_pod(job: Object, pod: Object, total: int | None) -> str:
    """Return the ranks of a Pod, such as `4-7`, where `mpirun` fills one host after the other as by default; "" for none.

    Args:
        job: The MPIJob. With `runLauncherAsWorker`, its launcher has the first ranks.
        pod: One of its Pods.
        total: How many ranks the job has; None if that is not known.
    """
    is_first = bool(job["spec"].get("runLauncherAsWorker"))
    index = worker_index(job["metadata"]["name"], pod["metadata"]["name"])
    host = 0 if is_first and not is_worker(pod) else None if index is None else index + is_first
    if host is None:
        return ""
    slots = status_of(job).slots
    first, end = host * slots, (host + 1) * slots if total is None else min((host + 1) * slots, total)
    return f"{first}-{end - 1}" if end - first > 1 else str(first) * (end > first)


def desired_workers(job: Object) -> int:
    """Return how many workers the job is to have."""
    worker: Object | None = job["spec"]["mpiReplicaSpecs"].get(c.WORKER)
    return 0 if worker is None else worker.get("replicas", WORKER_REPLICAS)


def newest_launcher(pods: Sequence[Object]) -> Object | None:
    """Return the launcher's newest Pod; None if there is none."""
    launchers = [pod for pod in pods if not is_worker(pod)]
    return max(launchers, key=lambda pod: pod["metadata"].get("creationTimestamp", ""), default=None)


def _workers(job: Object, status: JobStatus, workers: Sequence[Object]) -> str:
    desired = desired_workers(job)
    ready = sum(map(is_ready, workers))
    if status.condition(c.CONDITION_RUNNING) is not None:
        return f"running: {ready}/{desired} workers"
    unscheduled = sum(not pod.get("spec", {}).get("nodeName") for pod in workers)
    if len(workers) < desired or unscheduled:
        return f"scheduling: {len(workers) - unscheduled}/{desired} workers have a node"
    created = sum(_has_containers(pod) for pod in workers)
    if created < desired:
        return f"pulling and creating: {created}/{desired} workers"
    return f"starting: {ready}/{desired} workers are ready"


def is_ready(pod: Object) -> bool:
    """Return whether a Pod or a node is Ready."""
    rows = pod.get("status", {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)


def _has_containers(pod: Object) -> bool:
    rows = pod.get("status", {}).get("containerStatuses") or ()
    return bool(rows) and not any("waiting" in row.get("state", {}) for row in rows)
