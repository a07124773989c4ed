"""Which children should exist now: every rule of suspending, waiting, ending and cleaning up, as values."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller import pods
from mpiop.controller.observed import Observed
from mpiop.controller.release import is_at_rest
from mpiop.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Desired:
    """What should be, in terms that `diff` turns into writes.

    Attributes:
        dependencies: Service, ConfigMap and Secret should exist; None leaves them as they are, False deletes them.
        worker_count: Workers 0 … n-1 should exist; a missing one is made.
        keep_worker: Judges an existing worker pod beyond that range or after the end; False deletes it.
        launcher: The launcher Job should exist; None leaves it as it is, False deletes it.
        launcher_suspended: What its `suspend` should be.
        gang: PodGroup and the like should exist, where gang scheduling is on; None leaves them as they are, False deletes them.
    """

    dependencies: bool | None
    worker_count: int
    keep_worker: Callable[[Object], bool]
    launcher: bool | None
    launcher_suspended: bool
    gang: bool | None


def desired(job: MPIJob, observed: Observed, *, is_expired: bool = False) -> Desired | None:
    """Return what should exist of `job`, or None when nothing may change until the end is recorded."""
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
        launcher=_launcher_exists(job, observed, ready=ready) and not (is_outdated and is_at_rest(observed.launcher)),
        launcher_suspended=is_outdated or _launcher_waits(job, observed, ready=ready),
        gang=not job.is_suspended,
    )


def remaining_seconds(job: MPIJob, now: datetime) -> float | None:
    """Return in how many seconds (0: already) all that is left of a finished job has to go; None when it may stay."""
    ttl, ended = job.run_policy.ttl_seconds_after_finished, job.status.completion_time
    if ttl is None or ended is None or not job.status.is_finished:
        return None
    return max(0.0, (ended + timedelta(seconds=ttl) - now).total_seconds())


def _launcher_exists(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    at_startup = job.launcher_creation_policy == c.AT_STARTUP
    return at_startup or job.is_suspended or observed.launcher is not None or ready


def _launcher_waits(job: MPIJob, observed: Observed, *, ready: bool) -> bool:
    """Tell whether the launcher Job should be suspended; once let go it is not held again for a worker that comes back."""
    if job.is_suspended:
        return True
    is_early = job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY and not ready
    return observed.is_launcher_held and (observed.awaits_old_gang or is_early)


def _after_the_end(job: MPIJob, observed: Observed) -> Desired:
    """Return the clean-up by policy; a launcher that is still active stops, one that has ended stays for its log."""
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
