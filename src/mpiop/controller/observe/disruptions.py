"""Whether the cluster takes a pod away or cannot reach it, why, and whether the pod's node is to blame."""

from typing import Final

from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.kube.objects import Object, is_terminating

_BY_TAINT: Final = "DeletionByTaintManager"
_BY_KUBELET: Final = "TerminationByKubelet"


def disruption_problem(pod: Object) -> Problem | None:
    """Return why the cluster takes a pod away, or cannot reach it. If its node is lost, nobody confirms that its containers have ended."""
    name, node = pod["metadata"].get("name", ""), pods.node(pod)
    disruption = pods.disruption(pod)
    if disruption is not None and disruption.get("reason") == _BY_TAINT and is_terminating(pod):
        return problem(causes.NODE_LOST, f"pod {name} cannot be deleted, because its node {node} does not answer")
    if pods.is_unreachable(pod):
        return problem(causes.NODE_LOST, f"pod {name} cannot be reached, because its node {node} does not answer")
    if disruption is not None:
        return problem(causes.DISRUPTED, f"pod {name} is taken from node {node}: {disruption.get('message', '')}")
    if pods.is_evicted(pod):
        return problem(causes.DISRUPTED, f"pod {name} is taken from node {node}: {pod.get('status', {}).get('message', '')}")
    return None


def is_lost(pod: Object) -> bool:
    """Return whether programs of the pod cannot continue: it failed, is being deleted, or its node does not answer.

    A worker that succeeded may have run a command of its own, not ssh's server.
    """
    return is_terminating(pod) or pods.phase(pod) == "Failed" or pods.disruption(pod) is not None or pods.is_unreachable(pod)


def is_node_to_blame(pod: Object) -> bool:
    """Return whether the pod's node is lost or short of something; not if it is drained, or wanted by another pod."""
    found = disruption_problem(pod)
    disruption = pods.disruption(pod) or {}
    is_short = pods.is_evicted(pod) or disruption.get("reason") == _BY_KUBELET
    return bool(pods.node(pod)) and (is_short or (found is not None and found.reason == causes.NODE_LOST))
