"""Which children should exist now: the rules of suspension, waiting, clean-up and TTL."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import names
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.tries import is_lost
from mpiop.controller.plan.unsuspend import is_suspension_complete
from mpiop.kube.objects import Object, annotations_of


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired children, in terms that `diff` turns into writes.

    Attributes:
        dependencies: Whether Service, ConfigMap and Secret should exist; None leaves them as they are, False deletes them.
        worker_count: Workers 0 … n-1 should exist; missing ones are created.
        keep_worker: Decides on an existing worker outside that range; False deletes it.
        replace_worker: Decides on an existing worker of that range; True deletes it, and it is created again.
        forces: Whether pods that must go and whose nodes do not answer are deleted without asking the node.
        launcher: Whether the launcher Job should exist; None leaves it as it is, False deletes it.
        launcher_suspended: Its desired `suspend`.
        gang: Whether the objects of gang scheduling should exist, if it is on; None leaves them as they are, False deletes them.
    """

    dependencies: bool | None
    worker_count: int
    keep_worker: Callable[[Object], bool]
    replace_worker: Callable[[Object], bool]
    forces: bool
    launcher: bool | None
    launcher_suspended: bool
    gang: bool | None


def desired_state(job: MPIJob, observed: Observed, *, is_expired: bool = False) -> Desired | None:
    """Return the desired children of `job`; None while its end is not recorded, when nothing may change."""
    if job.status.is_finished:
        return _NOTHING if is_expired else _after_the_end(job, observed)
    if pods.job_outcome(observed.launcher) is not None or observed.evicted_workers(job) or observed.has_lost_launcher(job):
        return None
    ready = observed.is_ready(job)
    is_outdated = observed.has_outdated_launcher(job)
    waits = observed.awaits_old_gang
    return Desired(
        dependencies=True,
        worker_count=0 if job.is_suspended or waits else job.worker_replicas,
        keep_worker=_always if waits and not job.is_suspended else _never,
        replace_worker=replacement_rule(job, observed),
        forces=job.restart is not None and not job.is_suspended,
        launcher=_launcher_exists(job, observed, ready=ready) and not (is_outdated and is_suspension_complete(observed.launcher)),
        launcher_suspended=is_outdated or _launcher_waits(job, observed, ready=ready),
        gang=not job.is_suspended,
    )


def remaining_seconds(job: MPIJob, now: datetime) -> float | None:
    """Return the seconds until the TTL of a finished job is over (0: it is); None without one."""
    ttl, ended = job.run_policy.ttl_seconds_after_finished, job.status.completion_time
    if ttl is None or ended is None or not job.status.is_finished:
        return None
    return max(0.0, ttl - (now - ended).total_seconds())


def _launcher_exists(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    at_startup = job.launcher_creation_policy == c.AT_STARTUP
    return at_startup or job.is_suspended or observed.launcher is not None or ready


def _launcher_waits(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    """Return whether the launcher Job should be suspended; once running it is not suspended again for a replaced worker."""
    if job.is_suspended:
        return True
    if observed.is_restarting(job):
        return not (observed.is_launcher_suspended and _may_resume(job, observed, ready=ready))
    is_early = job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and not ready
    return observed.is_launcher_suspended and (observed.awaits_old_gang or is_early)


def replacement_rule(job: MPIJob, observed: Observed) -> Callable[[Object], bool]:
    """Return which workers are deleted to be created again; a worker that ended for another reason is kept for its log.

    In a restart it is those that are lost, or all that were made before it. A job with a budget of restarts needs none for a worker that is
    lost to the infrastructure before the launcher has called it.
    """
    if not observed.is_restarting(job):
        return _never if job.restart is None else _is_taken
    if job.restart is None or job.restart.scope != c.RESTART_ALL:
        return _is_used_up
    count = str(job.status.restarts)
    return lambda worker: _is_used_up(worker) or annotations_of(worker).get(names.ANNOTATION_RESTART_COUNT) != count


def _is_used_up(worker: Object) -> bool:
    return is_lost(worker) or pods.is_finished(worker)


def _is_taken(worker: Object) -> bool:
    has_ended = pods.is_evicted(worker) or (pods.is_finished(worker) and pods.disruption(worker) is not None)
    return has_ended or pods.is_unreachable(worker)


def _may_resume(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    """Return whether the restarted launcher may run: its pods are gone, and all workers stand.

    A gang that counts the launcher is only scheduled with it. Then it is enough that no worker is the old one: the launcher waits for them.
    """
    workers = [observed.workers.get(name) for name in names.worker_names(job)]
    must_replace = replacement_rule(job, observed)
    if any(pod is None or must_replace(pod) for pod in workers) or not all(map(pods.is_finished, observed.launcher_pods)):
        return False
    return ready or (bool(observed.gang) and job.launcher_creation_policy == c.AT_STARTUP)


def _after_the_end(job: MPIJob, observed: Observed) -> Desired:
    """Apply `cleanPodPolicy`: an active launcher is stopped, a finished one stays for its log."""
    policy = job.run_policy.clean_pod_policy
    active = observed.launcher is not None and pods.job_outcome(observed.launcher) is None
    return Desired(
        dependencies=None,
        worker_count=0,
        keep_worker={c.CLEAN_ALL: _never, c.CLEAN_RUNNING: pods.is_finished}.get(policy, _always),
        replace_worker=_never,
        forces=False,
        launcher=policy != c.CLEAN_ALL if active else None,
        launcher_suspended=active,
        gang=None if policy == c.CLEAN_NONE else False,
    )


def _never(_pod: Object) -> bool:
    return False


def _always(_pod: Object) -> bool:
    return True


_NOTHING = Desired(
    dependencies=False,
    worker_count=0,
    keep_worker=_never,
    replace_worker=_never,
    forces=False,
    launcher=False,
    launcher_suspended=True,
    gang=False,
)
