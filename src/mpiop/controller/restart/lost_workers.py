"""Which workers an attempt of the launcher has lost, and why."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem, is_lost
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.pod_ends import deadline_problem, memory_problem
from mpiop.controller.observe.rejections import is_rejected, rejected_problem
from mpiop.kube.objects import Object, is_terminating

INFRASTRUCTURE: Final = frozenset({causes.NODE_LOST, causes.DISRUPTED, causes.WORKER_DELETED, causes.WORKER_REJECTED})
"""Reasons of losses that the program did not cause."""
LOSSES: Final = INFRASTRUCTURE | {causes.WORKER_DEADLINE, causes.WORKER_ENDED, causes.OOM_KILLED}


@dataclass(frozen=True, slots=True)
class Loss:
    """A worker that an attempt of the launcher has lost.

    Attributes:
        name: Its name.
        pod: Its pod, or the last state of a deleted one; None if that is not known.
        exists: Whether the pod still exists.
    """

    name: str
    pod: Object | None
    exists: bool

    @property
    def node(self) -> str:
        """Return the node of the worker, or "" if it is not known."""
        return pods.node(self.pod) if self.pod is not None else ""

    @property
    def problem(self) -> Problem:
        """Return why the worker is lost."""
        pod, where = self.pod, f" on node {self.node}" if self.node else ""
        if pod is not None and (disrupted := disruption_problem(pod)) is not None:
            return disrupted
        if pod is not None and is_rejected(pod):
            return rejected_problem(pod)
        if pod is not None and (late := deadline_problem(pod)) is not None:
            return late
        if pod is None or not self.exists or is_terminating(pod):
            return problem(causes.WORKER_DELETED, f"worker {self.name}{where} was deleted while the launcher ran")
        for row in pods.main_container_statuses(pod):
            if pods.last_end(row).get("reason") == causes.OOM_KILLED:
                return memory_problem(pod, row.get("name", ""))
        return problem(causes.WORKER_ENDED, f"worker {self.name}{where} ended while the launcher ran")

    @property
    def is_infrastructure(self) -> bool:
        """Return whether something else than the program caused the loss.

        An sshd that succeeds was asked to end: an evicted pod whose sshd exits quickly succeeds, with no reason in its status.
        """
        has_succeeded = self.pod is not None and pods.phase(self.pod) == "Succeeded"
        return has_succeeded or self.problem.reason in INFRASTRUCTURE


def lost_workers(observed: Observed, workers: Iterable[str], newest: str, *, run_sshd: bool) -> Iterator[Loss]:
    """Yield the losses among the workers of these names.

    Args:
        observed: The children of their job.
        workers: Names of the workers with which the attempt began.
        newest: creationTimestamp of the newest of them: a worker that was created later is the replacement of a lost one.
        run_sshd: Whether they run an sshd, so that one that succeeded serves nobody any more.
    """
    for name in workers:
        pod = observed.workers.get(name)
        if pod is None or created(pod) > newest:
            yield Loss(name, observed.deleted_workers.get(name), exists=False)
        elif name not in observed.ready_workers and (is_lost(pod) or (run_sshd and pods.phase(pod) == "Succeeded")):
            yield Loss(name, pod, exists=True)


def created(pod: Object) -> str:
    """Return the creationTimestamp of a pod as it is stored, which sorts by time; "" if it is not."""
    return pod["metadata"].get("creationTimestamp", "")
