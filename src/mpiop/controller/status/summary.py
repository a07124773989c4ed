"""The summary of a status: what `kubectl get mpijobs` shows in its columns."""

from collections.abc import Sequence

from mpiop.api import constants as c
from mpiop.api.condition_type import ConditionType, State
from mpiop.api.durations import format_duration
from mpiop.api.status_types import Condition, MPIJobStatus, Summary
from mpiop.api.types import MPIJob
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status.reconciling import current_problem


def summarized(job: MPIJob, observed: Observed, status: MPIJobStatus) -> Summary:
    """Return the summary of `status`."""
    attempts = str(status.attempts[-1].number) if status.attempts else ""
    restarts = str(status.restarts)
    explaining = (condition for kind, condition in _ranked(status) if kind.explains)
    wrong = current_problem(status) or next(explaining, None)
    message = wrong.message if wrong is not None else ""
    node, state = _launcher_node(observed, status), _state(status, is_queued=job.is_queued)
    slots = job.status.summary.slots if job.status.is_finished else str(job.slots_per_worker)
    if status.is_finished:
        message = status.summary.message or message
        workers = status.summary.workers or ("" if job.status.is_finished else f"0/{job.worker_replicas}")
        duration = "" if status.duration is None else format_duration(status.duration)
        return Summary(state, workers, duration, restarts, attempts, message, node, slots)
    running = observed.running_workers.intersection(job.worker_names)
    return Summary(state, f"{len(running)}/{job.worker_replicas}", "", restarts, attempts, message, node, slots)


def _launcher_node(observed: Observed, status: MPIJobStatus) -> str:
    """Return the node of the newest launcher pod, once the job runs: until then it would cost a write of its own."""
    if not (status.is_true(c.CONDITION_RUNNING) or status.is_finished):
        return ""
    nodes = (pods.node(pod) for pod in reversed(observed.launcher_pods))
    return next(filter(None, nodes), status.summary.node)


def _state(status: MPIJobStatus, *, is_queued: bool) -> str:
    """Return the state of a job in one word; for a stalled or degraded one it is the reason, as kubectl shows it for Pods."""
    ranked = _ranked(status)
    reasons = (condition for kind, condition in ranked if kind.state is State.REASON)
    if (problem := current_problem(status) or next(reasons, None)) is not None:
        return problem.reason
    state = next((kind.type for kind, _ in ranked if kind.state is State.TYPE), c.STARTING)
    return c.QUEUED if state == c.CONDITION_SUSPENDED and is_queued else state


def _ranked(status: MPIJobStatus) -> Sequence[tuple[ConditionType, Condition]]:
    """Return the conditions that are True, with their rows, by rank."""
    true = ((c.condition_type(condition.type), condition) for condition in status.conditions if condition.status == "True")
    return sorted(true, key=lambda pair: pair[0].rank)
