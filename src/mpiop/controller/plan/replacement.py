"""Which workers are deleted to be created again."""

from collections.abc import Callable

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.tries import is_lost
from mpiop.kube.objects import Object, annotations_of


def replacement_rule(job: MPIJob, observed: Observed) -> Callable[[Object], bool]:
    """Return which workers are deleted to be created again; a worker that ended for another reason is kept for its log.

    In a restart it is those that are lost, or all that were made before it. A job with a budget of restarts needs none for a worker that is
    lost to the infrastructure before the launcher has called it.
    """
    if not observed.is_restarting(job):
        return _is_taken if job.restart is not None else lambda _worker: False
    if job.restart is None or job.restart.scope != c.RESTART_ALL:
        return _is_used_up
    count = str(job.status.restarts)
    return lambda worker: _is_used_up(worker) or annotations_of(worker).get(names.ANNOTATION_RESTART_COUNT) != count


def _is_used_up(worker: Object) -> bool:
    return is_lost(worker) or pods.is_finished(worker)


def _is_taken(worker: Object) -> bool:
    has_ended = pods.is_evicted(worker) or (pods.is_finished(worker) and pods.disruption(worker) is not None)
    return has_ended or pods.is_unreachable(worker)
