"""How the end of a pod reads that Kubernetes explains by itself: the same in the state of the job, its losses and its failure."""

from typing import Final

from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.kube.objects import Object

_LAYERS: Final = "unable to start container process: "
"""Before it, runc and containerd name only themselves."""


def runtime_words(message: str) -> str:
    """Return why the container runtime could not start a container, without the names of the layers that passed it on."""
    return message.rpartition(_LAYERS)[2]


def deadline_problem(worker: Object) -> Problem | None:
    """Return the problem of a worker that the kubelet ended because it ran longer than its own `activeDeadlineSeconds`."""
    if pods.phase(worker) != "Failed" or worker.get("status", {}).get("reason") != "DeadlineExceeded":
        return None
    return problem(causes.WORKER_DEADLINE, f"worker {_name(worker)} ran longer than the activeDeadlineSeconds of its Pod template")


def memory_problem(pod: Object, container: str) -> Problem:
    """Return the problem of a pod whose container of that name was killed as `OOMKilled`."""
    return problem(causes.OOM_KILLED, f"container {container} of pod {_name(pod)} was killed, because it used more memory than its limit")


def _name(pod: Object) -> str:
    """Return the name of the pod, and its node if it has one."""
    name, node = pod["metadata"].get("name", ""), pods.node(pod)
    return f"{name} on node {node}" if node else str(name)
