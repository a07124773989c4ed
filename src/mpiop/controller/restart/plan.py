"""How a restart is carried out: which workers are deleted to be created again, and when the launcher Job may be resumed."""

from collections.abc import Callable, Iterable
from datetime import datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import is_lost
from mpiop.controller.observe.observed import restart_count
from mpiop.controller.observe.rejections import is_rejected, least_age_seconds
from mpiop.controller.restart.attempt import LauncherAttempt
from mpiop.kube.objects import Object, annotations_of, creation_time


def replacement_rule(attempt: LauncherAttempt) -> Callable[[Object], bool]:
    """Return which workers are deleted to be created again; a worker that ended for another reason is kept for its log.

    In a restart it is those that are lost, or all that were made before it. A job with a budget of restarts needs none for a worker that is
    lost to the infrastructure before the launcher has called it. One that its kubelet rejected has lost nothing, whatever the job asks for.
    """
    job = attempt.job
    if not attempt.is_restarting:
        return _is_taken if job.restart.has_budget else is_rejected
    if job.restart.scope != c.RESTART_ALL:
        return _is_used_up
    count = str(job.status.restarts)
    return lambda worker: _is_used_up(worker) or annotations_of(worker).get(names.ANNOTATION_RESTART_COUNT) != count


def may_resume(attempt: LauncherAttempt) -> bool:
    """Return whether the restarted launcher may run: its pods are gone, and all workers are Ready.

    A gang that counts the launcher is only scheduled with it. Then it is enough that no worker is the old one: the launcher waits for them.
    """
    job, observed = attempt.job, attempt.observed
    workers = [observed.workers.get(name) for name in job.worker_names]
    must_replace = replacement_rule(attempt)
    if any(pod is None or must_replace(pod) for pod in workers) or not all(map(pods.is_finished, observed.launcher_pods)):
        return False
    return attempt.has_ready_workers or (bool(observed.gang) and job.launcher_creation_policy == c.AT_STARTUP)


def keeps_workers(job: MPIJob, launcher: Object) -> bool:
    """Return whether a restart resumes the launcher Job, and replaces the lost workers only: the others are as they were made."""
    is_restart = restart_count(launcher) < job.status.restarts and job.status.is_true(c.CONDITION_RESTARTING)
    return is_restart and job.restart.scope != c.RESTART_ALL


def seconds_to_replacement(workers: Iterable[Object], must_replace: Callable[[Object], bool], now: datetime) -> float | None:
    """Return the seconds until the next of these workers that has ended is replaced; None if there is none to wait for."""
    return min((left for pod in workers if must_replace(pod) and (left := seconds_too_young(pod, now))), default=None)


def seconds_too_young(worker: Object, now: datetime) -> float:
    """Return the seconds until an ended worker may be replaced. Without the delay, one that exits at once would be recreated in a loop."""
    created = creation_time(worker)
    if created is None or not pods.is_finished(worker):
        return 0.0
    return max(0.0, least_age_seconds(worker) - max(0.0, (now - created).total_seconds()))


def _is_used_up(worker: Object) -> bool:
    return is_lost(worker) or pods.is_finished(worker)


def _is_taken(worker: Object) -> bool:
    has_ended = pods.is_evicted(worker) or (pods.is_finished(worker) and pods.disruption(worker) is not None)
    return has_ended or pods.is_unreachable(worker) or is_rejected(worker)
