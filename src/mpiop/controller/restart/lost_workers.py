"""Which workers an attempt of the launcher has lost, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mpiop.api.types import MPIJob
from mpiop.controller import causes, names
from mpiop.controller.causes import Problem, problem
from mpiop.controller.objects.worker_pod import runs_sshd
from mpiop.controller.observe import pods
from mpiop.controller.observe.disruptions import disruption_problem, is_lost
from mpiop.controller.observe.observed import Observed
from mpiop.controller.observe.rejections import is_rejected, rejected_problem
from mpiop.kube.objects import Object, is_terminating

INFRASTRUCTURE: Final = frozenset({causes.NODE_LOST, causes.DISRUPTED, causes.WORKER_DELETED, causes.WORKER_REJECTED})
"""Reasons of losses for which the program is not to blame."""
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
        if pod is not None and pods.is_past_deadline(pod):
            return problem(causes.WORKER_DEADLINE, f"worker {self.name}{where} ran longer than its activeDeadlineSeconds")
        if pod is None or not self.exists or is_terminating(pod):
            return problem(causes.WORKER_DELETED, f"worker {self.name}{where} was deleted while the launcher ran")
        ends = [pods.last_end(row) for row in pods.main_container_statuses(pod)]
        reason = causes.OOM_KILLED if any(end.get("reason") == causes.OOM_KILLED for end in ends) else causes.WORKER_ENDED
        return problem(reason, f"worker {self.name}{where} ended while the launcher ran")

    @property
    def is_infrastructure(self) -> bool:
        """Return whether the program is not to blame.

        An sshd that succeeds was asked to end: the pod that a kubelet evicts succeeds, and does not show why, if its sshd is quick.
        """
        has_succeeded = self.pod is not None and pods.phase(self.pod) == "Succeeded"
        return has_succeeded or self.problem.reason in INFRASTRUCTURE


def is_rigid(job: MPIJob) -> bool:
    """Return whether the program of the job cannot continue without one of its workers: `mpirun` of its library starts its processes once.

    Another job may be elastic, as Horovod is, unless it asks to be restarted.
    """
    return job.library.is_rigid or job.restart.has_budget


def lost_workers(job: MPIJob, observed: Observed, count: int, newest: str) -> Iterator[Loss]:
    """Yield the losses among the first `count` workers. One that was created after `newest` is the replacement of a lost one."""
    for name in names.worker_names(job)[:count]:
        pod = observed.workers.get(name)
        if pod is None or created(pod) > newest:
            yield Loss(name, observed.deleted_workers.get(name), exists=False)
        elif name not in observed.ready_workers and (is_lost(pod) or (pods.phase(pod) == "Succeeded" and runs_sshd(job))):
            yield Loss(name, pod, exists=True)


def created(pod: Object) -> str:
    """Return the creationTimestamp of a pod as it is stored, which sorts by time; "" if it is not."""
    return pod["metadata"].get("creationTimestamp", "")
