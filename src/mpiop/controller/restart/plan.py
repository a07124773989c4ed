"""How a restart is carried out: which workers are deleted to be created again, and when the launcher Job may be resumed."""

from collections.abc import Callable
from datetime import datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import is_lost
from mpiop.controller.observe.observed import Observed, restart_count
from mpiop.controller.observe.rejections import is_rejected, least_age_seconds
from mpiop.kube.objects import Object, annotations_of, creation_time


def replacement_rule(job: MPIJob, observed: Observed) -> Callable[[Object], bool]:
    """Return which workers are deleted to be created again; a worker that ended for another reason is kept for its log.

    In a restart it is those that are lost, or all that were made before it. A job with a budget of restarts needs none for a worker that is
    lost to the infrastructure before the launcher has called it. One that its kubelet rejected has lost nothing, whatever the job asks for.
    """
    if not observed.is_restarting(job):
        return _is_taken if job.restart.has_budget else is_rejected
    if job.restart.scope != c.RESTART_ALL:
        return _is_used_up
    count = str(job.status.restarts)
    return lambda worker: _is_used_up(worker) or annotations_of(worker).get(names.ANNOTATION_RESTART_COUNT) != count


def may_resume(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    """Return whether the restarted launcher may run: its pods are gone, and all workers are Ready.

    A gang that counts the launcher is only scheduled with it. Then it is enough that no worker is the old one: the launcher waits for them.
    """
    workers = [observed.workers.get(name) for name in names.worker_names(job)]
    must_replace = replacement_rule(job, observed)
    if any(pod is None or must_replace(pod) for pod in workers) or not all(map(pods.is_finished, observed.launcher_pods)):
        return False
    return ready or (bool(observed.gang) and job.launcher_creation_policy == c.AT_STARTUP)


def keeps_workers(job: MPIJob, launcher: Object) -> bool:
    """Return whether a restart resumes the launcher Job, and replaces the lost workers only: the others are as they were made."""
    is_restart = restart_count(launcher) < job.status.restarts and job.status.is_true(c.CONDITION_RESTARTING)
    return is_restart and job.restart.scope != c.RESTART_ALL


def seconds_to_replacement(job: MPIJob, observed: Observed, now: datetime) -> float | None:
    """Return the seconds until the next worker that has ended is replaced; None if there is none to wait for."""
    must_replace = replacement_rule(job, observed)
    workers = filter(None, map(observed.workers.get, names.worker_names(job)))
    return min((left for pod in workers if must_replace(pod) and (left := seconds_too_young(pod, now))), default=None)


def seconds_too_young(worker: Object, now: datetime) -> float:
    """Return for how many seconds a worker that has ended stays; 0 if it may be replaced. Others would end like it, one after the other."""
    created = creation_time(worker)
    if created is None or not pods.is_finished(worker):
        return 0.0
    return max(0.0, least_age_seconds(worker) - max(0.0, (now - created).total_seconds()))


def _is_used_up(worker: Object) -> bool:
    return is_lost(worker) or pods.is_finished(worker)


def _is_taken(worker: Object) -> bool:
    has_ended = pods.is_evicted(worker) or (pods.is_finished(worker) and pods.disruption(worker) is not None)
    return has_ended or pods.is_unreachable(worker) or is_rejected(worker)
