"""What remains of a job that has ended: `cleanPodPolicy` and `ttlSecondsAfterFinished`."""

from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.desired import Desired, always, never

_NOTHING: Final = Desired(
    dependencies=False,
    worker_count=0,
    keep_worker=never,
    replace_worker=never,
    forces=False,
    launcher=False,
    launcher_suspended=True,
    gang=False,
)


def ttl_seconds_left(job: MPIJob, now: datetime) -> float | None:
    """Return the seconds until the TTL of a finished job is over (0: it is); None without one."""
    ttl, ended = job.run_policy.ttl_seconds_after_finished, job.status.completion_time
    if ttl is None or ended is None or not job.status.is_finished:
        return None
    return max(0.0, ttl - (now - ended).total_seconds())


def state_after_end(job: MPIJob, observed: Observed, *, is_expired: bool) -> Desired:
    """Return what stays of `job`: nothing past its TTL. Before, an active launcher is stopped, a finished one stays for its log."""
    if is_expired:
        return _NOTHING
    policy = job.run_policy.clean_pod_policy
    active = observed.launcher is not None and pods.job_outcome(observed.launcher) is None
    return Desired(
        dependencies=None,
        worker_count=0,
        keep_worker={c.CLEAN_ALL: never, c.CLEAN_RUNNING: pods.is_finished}.get(policy, always),
        replace_worker=never,
        forces=False,
        launcher=policy != c.CLEAN_ALL if active else None,
        launcher_suspended=active,
        gang=None if policy == c.CLEAN_NONE else False,
    )
