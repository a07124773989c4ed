"""What remains of a job that has ended: `cleanPodPolicy` and `ttlSecondsAfterFinished`."""

from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.plan.desired import Desired, Presence, always, never
from mpiop.kube.objects import Object

_NOTHING: Final = Desired(
    dependencies=Presence.DELETE,
    worker_count=0,
    keep_worker=never,
    replace_worker=never,
    forces=False,
    launcher=Presence.DELETE,
    launcher_suspended=True,
    gang=Presence.DELETE,
)


def ttl_seconds_left(job: MPIJob, now: datetime) -> float | None:
    """Return the seconds until the TTL of a finished job is over (0: it is); None without one."""
    ttl, ended = job.run_policy.ttl_seconds_after_finished, job.status.completion_time
    if ttl is None or ended is None or not job.status.is_finished:
        return None
    return max(0.0, ttl - (now - ended).total_seconds())


def state_after_end(policy: str, launcher: Object | None, *, is_expired: bool) -> Desired:
    """Return what stays of a job by its `cleanPodPolicy`; nothing past its TTL.

    Before that, an active launcher Job is stopped. A finished one stays for its log.
    """
    if is_expired:
        return _NOTHING
    active = launcher is not None and pods.job_outcome(launcher) is None
    stopped = Presence.DELETE if policy == c.CLEAN_ALL else Presence.ENSURE
    return Desired(
        dependencies=Presence.KEEP,
        worker_count=0,
        keep_worker={c.CLEAN_ALL: never, c.CLEAN_RUNNING: pods.is_finished}.get(policy, always),
        replace_worker=never,
        forces=False,
        launcher=stopped if active else Presence.KEEP,
        launcher_suspended=active,
        gang=Presence.KEEP if policy == c.CLEAN_NONE else Presence.DELETE,
    )
