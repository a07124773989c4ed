"""Answers questions about the status of a Pod or a Job: is it Ready, evicted, disrupted, how did it end? Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mpiop.api import constants as c
from mpiop.kube.objects import Object, is_terminating, labels_of

JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer with which the Job controller keeps a pod until it has counted its end."""
_CRASH_LOOP: Final = "CrashLoopBackOff"
_CREATION_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing"})
_NORMAL_REASONS: Final = _CREATION_REASONS | {None}


def phase(pod: Object) -> str:
    """Return `status.phase`; a pod without one is Pending."""
    return pod.get("status", {}).get("phase") or "Pending"


def role(pod: Object) -> str:
    """Return the pod's part in its job, `c.ROLE_LAUNCHER` or `c.ROLE_WORKER`; "" for an object without the label."""
    return labels_of(pod).get(c.LABEL_JOB_ROLE, "")


def address(pod: Object) -> str:
    """Return `status.podIP`, or "" before the pod has one."""
    return pod.get("status", {}).get("podIP") or ""


def is_running(pod: Object) -> bool:
    """Return whether the pod is in phase Running, not terminating, and none of its containers waits to be restarted after a crash."""
    return phase(pod) == "Running" and not is_terminating(pod) and not any(map(is_crash_looping, main_container_statuses(pod)))


def is_crash_looping(status: Mapping[str, Any]) -> bool:
    """Return whether a container has failed more than once and does not run; the kubelet reports `CrashLoopBackOff` some time later."""
    if waiting(status).get("reason") == _CRASH_LOOP:
        return True
    return bool(terminated(status).get("exitCode")) and bool(last_terminated(status).get("exitCode"))


def is_ready(pod: Object) -> bool:
    """Return whether the pod is Ready and not terminating."""
    return condition_status(pod, "Ready") == "True" and not is_terminating(pod)


def is_finished(pod: Object) -> bool:
    """Return whether the pod has succeeded or failed."""
    return phase(pod) in {"Succeeded", "Failed"}


def is_evicted(pod: Object) -> bool:
    """Return whether the kubelet or the API evicted the pod."""
    return phase(pod) == "Failed" and pod.get("status", {}).get("reason") == "Evicted"


def disruption(pod: Object) -> Mapping[str, Any] | None:
    """Return the pod's condition DisruptionTarget if it is True: the cluster removes the pod, and the program did not cause it."""
    row = condition(pod, "DisruptionTarget")
    return row if row is not None and row.get("status") == "True" else None


def is_unreachable(pod: Object) -> bool:
    """Return whether the pod's node does not answer.

    The node lifecycle controller then sets Ready to False and touches nothing else. A kubelet that does so gives a reason, and has found a
    container or a readiness gate that is not ready. Source: kubernetes pkg/controller/util/node MarkPodsNotReady, pkg/kubelet/status.
    """
    ready = condition(pod, "Ready") or {}
    is_marked = ready.get("status") == "False" and not ready.get("reason")
    return is_marked and condition_status(pod, "ContainersReady") == "True" and phase(pod) == "Running"


def node(pod: Object) -> str:
    """Return the name of the pod's node, or "" before it has one."""
    return pod.get("spec", {}).get("nodeName") or ""


def scheduling_gates(pod: Object) -> Sequence[str]:
    """Return the names of the gates that keep the pod from the scheduler; those who set them remove them."""
    return [gate.get("name") or "" for gate in pod.get("spec", {}).get("schedulingGates") or ()]


def is_suspended(launcher: Object) -> bool:
    """Return whether a launcher Job is suspended by its spec."""
    return bool(launcher.get("spec", {}).get("suspend"))


def is_suspension_complete(launcher: Object | None) -> bool:
    """Return whether the Job controller has carried out the suspension, or there was nothing to suspend.

    Resumed earlier, the old launcher pod would run on while its workers are replaced.
    """
    if launcher is None:
        return True
    status = launcher.get("status", {})
    return not status.get("active") and (not status.get("startTime") or condition_status(launcher, "Suspended") == "True")


def has_begun(pod: Object) -> bool:
    """Return whether a container of the pod has started, which means that its volumes are mounted."""
    return phase(pod) != "Pending" or any(waiting(status).get("reason") not in _CREATION_REASONS for status in container_statuses(pod))


def is_starting(pod: Object) -> bool:
    """Return whether the pod is not Ready yet, and nothing that it shows has gone wrong so far."""
    is_refused = condition_status(pod, "PodScheduled") == "False"
    if is_refused or is_terminating(pod) or phase(pod) not in {"Pending", "Running"}:
        return False
    return all(
        waiting(status).get("reason") in _NORMAL_REASONS and not last_end(status).get("exitCode") for status in container_statuses(pod)
    )


def is_being_created(pod: Object) -> bool:
    """Return whether the pod has a node but no started container: volumes are being mounted, or the first image is being pulled."""
    is_bound = bool(node(pod)) and any(container_statuses(pod))
    return is_bound and not has_begun(pod) and not is_terminating(pod)


def condition(obj: Object, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of that type of a Pod or a Job."""
    conditions: Sequence[Mapping[str, Any]] = obj.get("status", {}).get("conditions") or ()
    for row in conditions:  # no generator: each sync asks this of every worker
        if row.get("type") == type_:
            return row
    return None


def condition_status(obj: Object, type_: str) -> str:
    """Return the status of that condition, or "" when there is none."""
    row = condition(obj, type_)
    return "" if row is None else row.get("status", "")


def container_statuses(pod: Object) -> Iterator[Mapping[str, Any]]:
    """Yield the statuses of the pod's init containers, then of its containers."""
    yield from init_container_statuses(pod)
    yield from main_container_statuses(pod)


def main_container_status(pod: Object, container: str) -> Mapping[str, Any]:
    """Return the status of one of the pod's containers; empty while it has none."""
    return next((row for row in main_container_statuses(pod) if row.get("name") == container), dict[str, Any]())


def init_container_statuses(pod: Object) -> Sequence[Mapping[str, Any]]:
    """Return the statuses of the pod's init containers, sidecars among them."""
    return pod.get("status", {}).get("initContainerStatuses") or ()


def main_container_statuses(pod: Object) -> Sequence[Mapping[str, Any]]:
    """Return the statuses of the pod's containers."""
    return pod.get("status", {}).get("containerStatuses") or ()


def waiting(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `state.waiting` of a container status; empty when it does not wait."""
    return _state(status, "state", "waiting")


def terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `state.terminated` of a container status; empty when it has not ended."""
    return _state(status, "state", "terminated")


def last_terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `lastState.terminated` of a container status: how it ended before it was restarted; empty when it was not."""
    return _state(status, "lastState", "terminated")


def last_end(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container ended last: now, or before it was restarted; empty when it never ended."""
    return terminated(status) or last_terminated(status)


def _state(status: Mapping[str, Any], when: str, kind: str) -> Mapping[str, Any]:
    state: Mapping[str, Any] = status.get(when) or {}
    return state.get(kind) or {}


def job_outcome(job: Object | None) -> Mapping[str, Any] | None:
    """Return the Job's condition Complete or Failed that is True; None while it has not ended."""
    if job is None:
        return None
    for type_ in ("Complete", "Failed"):
        row = condition(job, type_)
        if row is not None and row.get("status") == "True":
            return row
    return None
