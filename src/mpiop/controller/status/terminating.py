"""Children that are still Terminating after their grace period, while the job waits until they are gone.

Nobody else reports them: the API server waits for finalizers, and for the kubelet, without a limit. The deletionTimestamp of a Pod is the
end of its grace period. Source: apiserver pkg/registry/rest/delete.go BeforeDelete.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from mpiop.api.status import timestamp
from mpiop.api.types import MPIJob
from mpiop.clock import format_time
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.pods import JOB_TRACKING
from mpiop.kube.objects import Object, is_terminating
from mpiop.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES

LATE_SECONDS: Final = 60.0
"""How long after its grace period a child may still be Terminating before that is a problem."""


def terminating_problem(job: MPIJob, observed: Observed, now: datetime) -> tuple[Problem | None, float | None]:
    """Return the problem of a job that waits for a child which should be gone, and the seconds until the next such problem."""
    awaited = ((kind, obj) for kind, obj in _needed(job, observed) if is_terminating(obj))
    found, next_seconds = None, None
    for kind, obj in awaited:
        if (over := timestamp(obj["metadata"].get("deletionTimestamp"))) is None:
            continue
        if not (left := _seconds_left(over, now)):
            found = found or _problem(kind, obj, over)
        elif next_seconds is None or left < next_seconds:
            next_seconds = left
    return found, next_seconds


def _needed(job: MPIJob, observed: Observed) -> Iterator[tuple[str, Object]]:
    """Yield each Terminating child, with its kind, that must be gone before the job can start, continue, or be fully suspended."""
    if job.status.is_finished:
        return
    needed = observed.workers if job.is_suspended else job.worker_names
    yield from ((PODS.kind, pod) for pod in map(observed.workers.get, needed) if pod is not None)
    is_job_leaving = observed.launcher is not None and is_terminating(observed.launcher)
    yield from ((PODS.kind, pod) for pod in observed.launcher_pods if is_job_leaving or not pods.is_finished(pod))
    others = [(JOBS.kind, observed.launcher), (SERVICES.kind, observed.service), (CONFIG_MAPS.kind, observed.config_map)]
    others += [(resource.kind, obj) for resource, obj in observed.gang.items()]
    yield from ((kind, obj) for kind, obj in others if obj is not None)


def _seconds_left(over: datetime, now: datetime) -> float:
    """Return the seconds until a child whose grace period ends at `over` is a problem; 0 if it is one."""
    return max(0.0, LATE_SECONDS - (now - over).total_seconds())


def _problem(kind: str, obj: Object, over: datetime) -> Problem:
    # The Job controller removes its own finalizer when the pod has ended.
    finalizers = [name for name in obj["metadata"].get("finalizers") or () if name != JOB_TRACKING]
    if not finalizers and kind == PODS.kind and (lost := disruption_problem(obj)) is not None and lost.reason == causes.NODE_LOST:
        return lost
    where = f" on node {pods.node(obj)}" if kind == PODS.kind and pods.node(obj) else ""
    why = f"it has the finalizers {', '.join(finalizers)}" if finalizers else "it has no finalizers, but its end is not confirmed"
    since = f"whose grace period ended at {format_time(over)}"
    return problem(causes.STUCK_TERMINATING, f"{kind} {obj['metadata'].get('name', '')}{where}, {since}, is still Terminating: {why}")
