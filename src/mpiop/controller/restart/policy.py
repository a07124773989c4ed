"""The policy of a job for restarts: how many are left, and what earlier ones leave of its limits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.fields import INT32_MAX
from mpiop.api.restart import RestartPolicy
from mpiop.api.status_types import MPIJobStatus, Restart
from mpiop.api.types import MPIJob

LEAST_TTL_SECONDS: Final = 600
"""The least TTL of a launcher Job: a failover is shorter, so its end is recorded before the Job is deleted."""
DEFAULT_BACKOFF_LIMIT: Final = 6
"""Of a Job without one. Source: kubernetes pkg/apis/batch/v1/defaults.go."""
_SPARE_ATTEMPTS: Final = 2
"""Extra failures to allow, because the Job controller counts a restarted container before the operator can suspend its Job."""


def restart_limit(job: MPIJob) -> int:
    """Return how many restarts the job may have. Without a budget it may have as many as retries, so that it does not loop."""
    return job.restart.max_restarts if job.restart.has_budget else user_backoff_limit(job)


def is_used_up(job: MPIJob, now: datetime) -> bool:
    """Return whether no restart is left: those of the window count, or all of them; without a budget, failed attempts too."""
    status = job.status
    if not job.restart.has_budget:
        failed = status.attempts[-1].number if status.attempts else 0
        return status.restarts + failed >= restart_limit(job)
    used = status.restarts if job.restart.window_seconds is None else len(counting_restarts(job.restart, status, now))
    return used >= restart_limit(job)


def counting_restarts(policy: RestartPolicy, status: MPIJobStatus, now: datetime) -> Sequence[Restart]:
    """Return the restarts in `status` that count towards the budget now."""
    return [restart for restart in status.last_restarts if _seconds_left(policy, restart, now) > 0]


def seconds_to_expiry(policy: RestartPolicy, status: MPIJobStatus, now: datetime) -> float | None:
    """Return the seconds until a failed node in `status` may be used again; None if there is none, or the budget has no window."""
    if not status.failed_nodes:
        return None
    left = (_seconds_left(policy, restart, now) for restart in status.last_restarts)
    return min((seconds for seconds in left if 0 < seconds < float("inf")), default=None)


def _seconds_left(policy: RestartPolicy, restart: Restart, now: datetime) -> float:
    """Return for how many seconds a restart still counts."""
    return float("inf") if policy.window_seconds is None else policy.window_seconds - (now - restart.time).total_seconds()


def launcher_limits(job: MPIJob) -> Mapping[str, int | None]:
    """Return the limits of the launcher Job, less what restarts have used; None leaves a field to the API server.

    At the user's time to live we delete the Job ourselves; its own is for when no operator runs. The Job controller counts the deadline
    from each resume.
    """
    ttl, restarts = job.run_policy.ttl_seconds_after_finished, job.status.last_restarts
    left = seconds_to_deadline(job, restarts[-1].time) if restarts else None
    return {
        "ttlSecondsAfterFinished": None if ttl is None else max(ttl, LEAST_TTL_SECONDS),
        "activeDeadlineSeconds": job.run_policy.active_deadline_seconds if left is None else max(1, left),
        "backoffLimit": _backoff_limit(job),
    }


def user_backoff_limit(job: MPIJob) -> int:
    """Return how often the program may fail: the user's `backoffLimit`, or the API server's default."""
    limit = job.run_policy.backoff_limit
    return DEFAULT_BACKOFF_LIMIT if limit is None else limit


def _backoff_limit(job: MPIJob) -> int | None:
    """Return the `backoffLimit` of the launcher Job; None leaves it to the API server.

    A launcher may fail before its loss is known, and the Job controller counts that. So a job with a budget of restarts gets more, and the
    operator sees to it that failures of the program alone do not exceed the user's (`decision.py`). Without a budget, a
    restart is one of the retries.
    """
    status = job.status
    if not job.restart.has_budget:
        return max(0, user_backoff_limit(job) - status.restarts) if status.restarts else job.run_policy.backoff_limit
    forgotten = status.restarts - len(status.last_restarts)
    explained = sum(max(1, len(restart.launcher_pods)) for restart in status.last_restarts)
    return min(user_backoff_limit(job) + forgotten + explained + _SPARE_ATTEMPTS, INT32_MAX)


def seconds_to_deadline(job: MPIJob, now: datetime) -> int | None:
    """Return what is left of `activeDeadlineSeconds` in a run that was restarted; None if the Job controller sees to it alone.

    The Job controller does not count while a restart waits. The deadline begins with the job, or with a launcher that is created later.
    """
    deadline, status = job.run_policy.active_deadline_seconds, job.status
    running = status.true_condition(c.CONDITION_RUNNING)
    began = status.start_time
    if job.launcher_creation_policy == c.WAIT_FOR_WORKERS_READY:
        began = running.last_transition_time if running else None
    if deadline is None or began is None or job.is_resuming or not status.last_restarts or status.last_restarts[-1].time < began:
        return None
    return deadline - int((now - began).total_seconds())
