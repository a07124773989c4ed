"""Which children should exist now: the rules of suspension, waiting, clean-up and TTL."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.unsuspend import is_suspension_complete
from mpiop.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired children, in terms that `diff` turns into writes.

    Attributes:
        dependencies: Whether Service, ConfigMap and Secret should exist; None leaves them as they are, False deletes them.
        worker_count: Workers 0 … n-1 should exist; missing ones are created.
        keep_worker: Decides on an existing worker outside that range; False deletes it.
        launcher: Whether the launcher Job should exist; None leaves it as it is, False deletes it.
        launcher_suspended: Its desired `suspend`.
        gang: Whether the objects of gang scheduling should exist, if it is on; None leaves them as they are, False deletes them.
    """

    dependencies: bool | None
    worker_count: int
    keep_worker: Callable[[Object], bool]
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
    is_early = job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and not ready
    return observed.is_launcher_suspended and (observed.awaits_old_gang or is_early)


def _after_the_end(job: MPIJob, observed: Observed) -> Desired:
    """Apply `cleanPodPolicy`: an active launcher is stopped, a finished one stays for its log."""
    policy = job.run_policy.clean_pod_policy
    active = observed.launcher is not None and pods.job_outcome(observed.launcher) is None
    return Desired(
        dependencies=None,
        worker_count=0,
        keep_worker={c.CLEAN_ALL: _never, c.CLEAN_RUNNING: pods.is_finished}.get(policy, _always),
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
    launcher=False,
    launcher_suspended=True,
    gang=False,
)
