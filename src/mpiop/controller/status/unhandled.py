"""Waits that nothing in the cluster explains: the scheduler or controller does not run, so nobody writes a condition or an event."""

from typing import Final

from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.kube.objects import Object, is_terminating, key_of
from mpiop.kube.resources import JOBS

_GATES: Final = "ReadinessGatesNotReady"
_KUEUE: Final = "kueue.x-k8s.io/"


def unhandled_problem(waiting: Object, *, is_queued: bool) -> Problem | None:
    """Return the problem of a job that has waited long for `waiting`, the launcher Job or a Pod, without any event or other sign."""
    name = key_of(waiting).name
    if waiting.get("kind") == JOBS.kind:
        if not pods.is_suspended(waiting) and waiting.get("status", {}).get("failed"):
            return None  # the Job controller may be backing off
        is_due = "has not deleted the Pod of the suspended" if pods.is_suspended(waiting) else "has not created a Pod for the"
        return problem(causes.UNHANDLED, f"the Job controller {is_due} Job {name}")
    if gates := pods.scheduling_gates(waiting):
        left = [gate for gate in gates if not (is_queued and gate.startswith(_KUEUE))]  # Kueue removes its gates when it has room
        return problem(causes.SCHEDULING_GATED, f"pod {name} has the scheduling gate {', '.join(left)}") if left else None
    if not pods.node(waiting) and pods.condition(waiting, "PodScheduled") is None:
        return problem(causes.UNHANDLED, f"no scheduler has seen pod {name}")
    ready = pods.condition(waiting, "Ready") or {}
    return problem(causes.UNHEALTHY, f"pod {name} is not Ready: {ready.get('message', '')}") if ready.get("reason") == _GATES else None


def is_suspension_ignored(observed: Observed) -> bool:
    """Return whether the launcher Job is suspended, and its Pod was not deleted for that."""
    launcher = observed.launcher
    if launcher is None or not pods.is_suspended(launcher) or pods.is_suspension_complete(launcher):
        return False
    return not any(map(is_terminating, observed.launcher_pods))
