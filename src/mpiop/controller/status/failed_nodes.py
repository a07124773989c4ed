"""The nodes that a job avoids: those that failed, for as long as the restarts that they led to count towards the budget."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from mpiop.api.types import MPIJob, MPIJobStatus, Restart

_MOST: Final = 50


def with_failed_nodes(job: MPIJob, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` with the nodes that failed in restarts which still count; none if the job does not ask to avoid them.

    A CRD that is older than the operator does not store to which restart a node led: such nodes stay as long as any restart counts.
    """
    if not job.restart.avoids_failed_nodes:
        return replace(status, failed_nodes=())
    known = {node for restart in status.last_restarts for node in restart.failed_nodes}
    counting = [restart for restart in status.last_restarts if _seconds_left(job, restart, now) > 0]
    others = (node for node in status.failed_nodes if node not in known) if counting else ()
    nodes = dict.fromkeys((*others, *(node for restart in counting for node in restart.failed_nodes)))
    return replace(status, failed_nodes=tuple(nodes)[-_MOST:])


def seconds_to_expiry(job: MPIJob, status: MPIJobStatus, now: datetime) -> float | None:
    """Return the seconds until a node in `status` may be used again; None if there is none, or the budget has no window."""
    if not status.failed_nodes:
        return None
    left = (_seconds_left(job, restart, now) for restart in status.last_restarts)
    return min((seconds for seconds in left if 0 < seconds < float("inf")), default=None)


def _seconds_left(job: MPIJob, restart: Restart, now: datetime) -> float:
    """Return for how many seconds a restart still counts."""
    window_seconds = job.restart.window_seconds
    return float("inf") if window_seconds is None else window_seconds - (now - restart.time).total_seconds()
