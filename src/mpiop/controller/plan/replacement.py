"""Which workers are deleted to be created again, and when."""

from collections.abc import Callable
from datetime import datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import is_lost
from mpiop.controller.observe.observed import Observed
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
