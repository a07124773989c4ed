"""Which worker the running attempt of the launcher has lost, why, and for how long the status reports it."""

from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import LostWorker, MPIJob
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.rejections import is_rejected, rejected_problem
from mpiop.controller.observe.tries import can_be_ended, lost_workers, running_try
from mpiop.kube.objects import Object, is_terminating

LOSSES: Final = frozenset({
    causes.NODE_LOST,
    causes.DISRUPTED,
    causes.WORKER_DELETED,
    causes.WORKER_REJECTED,
    causes.WORKER_DEADLINE,
    causes.WORKER_ENDED,
    causes.OOM_KILLED,
})
HYDRA: Final = frozenset({c.INTEL, c.MPICH})


def is_rigid(job: MPIJob) -> bool:
    """Return whether the program of the job cannot go on without one of its workers: Hydra starts its processes once.

    A job of Open MPI may be elastic, as Horovod is, unless it asks to be restarted.
    """
    return job.mpi_implementation in HYDRA or job.restart.has_budget


def loss_problem(job: MPIJob, observed: Observed) -> Problem | None:
    """Return the problem of an attempt that has lost a worker.

    A rigid program (`is_rigid`) has it until the attempt ends. Another may use the replacement, and has it until the replacement is Ready.
    """
    known, current = job.status.lost_worker, running_try(job, observed)
    if current is None:
        return _problem_of_ended_try(job, observed)
    if known is not None and known.launcher_try == current and any(name == known.pod for name, _ in lost_workers(job, observed)):
        return Problem(known.reason, known.message)
    lost = ((name, pod) for name, pod in lost_workers(job, observed) if is_rigid(job) or name not in observed.ready_workers)
    return next((worker_problem(observed, name, pod) for name, pod in lost), None)


def _problem_of_ended_try(job: MPIJob, observed: Observed) -> Problem | None:
    """Return the problem that the last try had: its end resolves nothing, only the next try does, which begins with other workers."""
    degraded = job.status.true_condition(c.CONDITION_DEGRADED)
    if degraded is None or degraded.reason not in LOSSES or not can_be_ended(job, observed) or observed.is_restarting(job):
        return None
    return Problem(degraded.reason, degraded.message) if any(True for _ in lost_workers(job, observed)) else None


def lost_worker(job: MPIJob, observed: Observed, now: datetime) -> LostWorker | None:
    """Return the first worker that the running attempt of a rigid program has lost; the stored one as long as it is lost."""
    current = running_try(job, observed) if is_rigid(job) else None
    if current is None:
        return None
    lost = dict(lost_workers(job, observed))
    known = job.status.lost_worker
    if known is not None and known.launcher_try == current and known.pod in lost:
        return known
    for name, pod in lost.items():
        found = worker_problem(observed, name, pod)
        return LostWorker(name, pods.node(pod) if pod is not None else "", found.reason, found.message, now, current)
    return None


def worker_problem(observed: Observed, name: str, pod: Object | None) -> Problem:
    """Return why a worker is lost; `pod` is its last state, None if that is not known."""
    if pod is not None and (disrupted := disruption_problem(pod)) is not None:
        return disrupted
    if pod is not None and is_rejected(pod):
        return rejected_problem(pod)
    where = f" on node {pods.node(pod)}" if pod is not None and pods.node(pod) else ""
    if pod is not None and pods.is_past_deadline(pod):
        return problem(causes.WORKER_DEADLINE, f"worker {name}{where} ran longer than its activeDeadlineSeconds")
    is_there = pod is not None and observed.workers.get(name) is pod
    if pod is None or not is_there or is_terminating(pod):
        return problem(causes.WORKER_DELETED, f"worker {name}{where} was deleted while the launcher ran")
    ends = [pods.last_end(row) for row in pods.main_container_statuses(pod)]
    reason = causes.OOM_KILLED if any(end.get("reason") == causes.OOM_KILLED for end in ends) else causes.WORKER_ENDED
    return problem(reason, f"worker {name}{where} ended while the launcher ran")
