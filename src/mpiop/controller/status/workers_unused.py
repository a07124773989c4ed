"""The condition WorkersUnused: the job succeeded, and no `mpirun` reached a worker (docs/adr/0009-launcher-alone.md)."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.annotations import SSH_AGENT
from mpiop.api.mpi_implementations import IMPLEMENTATIONS
from mpiop.api.status_types import Condition, MPIJobStatus
from mpiop.api.types import MPIJob, ReplicaSpec
from mpiop.controller import names
from mpiop.controller.objects.ssh_script import leaves_mark
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.restart.attempt import mpirun_status
from mpiop.controller.status import conditions as cond
from mpiop.kube.objects import Object, annotations_of

NO_WORKER_REACHED: Final = "NoWorkerReached"
NOT_KNOWN: Final = "NotKnown"

_MPIRUN: Final = re.compile(rf"\b({'|'.join(dict.fromkeys(command for row in IMPLEMENTATIONS.values() for command in row.commands))})\b")
_OWN_SSH: Final = re.compile(r"\b(ssh|horovodrun)\b")
"""Programs with which a launcher reaches its workers without `mpirun`."""


def with_workers_unused(job: MPIJob, observed: Observed, status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status`, with the condition WorkersUnused if the job succeeded and its `mpirun` reached no worker.

    A finished job is checked again, since the end of the pod may be seen after that of the Job. The condition is put before the last one,
    which many programs read as the state of the job.
    """
    if not status.is_true(c.CONDITION_SUCCEEDED) or status.condition(c.CONDITION_WORKERS_UNUSED) is not None:
        return status
    if not leaves_mark(job):
        return status
    alone = next((pod for pod in observed.launcher_pods if _ended_alone(pod, job.launcher)), None)
    unused = None if alone is None else _unused(job, observed, alone, now)
    return status if unused is None else replace(status, conditions=cond.set_before_last(status.conditions, unused))


def _ended_alone(pod: Object, launcher: ReplicaSpec) -> bool:
    """Return whether the launcher's container succeeded without a termination message: neither our mark nor one of the program's own."""
    ended = pods.terminated(mpirun_status(pod, launcher))
    return names.ANNOTATION_SSH in annotations_of(pod) and ended.get("exitCode") == 0 and not ended.get("message")


def _unused(job: MPIJob, observed: Observed, alone: Object, now: datetime) -> Condition | None:
    """Return the condition; None if the launcher's command reaches the workers in another way.

    It is Unknown if the command names neither, because a script may call `mpirun`, or not; and with `envFrom`, which may name another ssh
    agent.
    """
    command, pod, workers = _command(job), alone["metadata"].get("name", ""), f"any of the {job.worker_replicas} workers"
    cause = _cause(job, observed, alone)
    if _MPIRUN.search(command) and not job.launcher.container.get("envFrom"):
        message = f"the launcher succeeded, but its mpirun started nothing on {workers}: all ranks ran in pod {pod}. {cause}"
        return cond.make(c.CONDITION_WORKERS_UNUSED, "True", NO_WORKER_REACHED, message, now)
    if _OWN_SSH.search(command):
        return None
    message = (
        f"the launcher succeeded, and no mpirun in pod {pod} reached {workers}. If the program calls mpirun, all ranks ran in that pod. "
        f"{cause} If it reaches its workers without mpirun, or by an ssh agent of its own, set the annotation "
        f'{SSH_AGENT.name}: "false".'
    )
    return cond.make(c.CONDITION_WORKERS_UNUSED, "Unknown", NOT_KNOWN, message, now)


def _cause(job: MPIJob, observed: Observed, launcher_pod: Object) -> str:
    if _shares_network(job, observed, launcher_pod):
        return (
            "Launcher and workers have hostNetwork and ran on one node, so mpirun takes the workers' address for its own. "
            "Remove hostNetwork from the launcher, or keep the workers off its node (podAntiAffinity)."
        )
    return f"Compare the MPI library of the image with spec.mpiImplementation, which is {job.mpi_implementation}."


def _shares_network(job: MPIJob, observed: Observed, launcher_pod: Object) -> bool:
    """Return whether launcher and workers have the network, and the address, of the same node."""
    if job.worker is None or not all(replicas.template["spec"].get("hostNetwork") for replicas in (job.launcher, job.worker)):
        return False
    nodes = set(map(pods.node, (observed.workers or observed.deleted_workers).values()))
    return nodes == {pods.node(launcher_pod)}


def _command(job: MPIJob) -> str:
    container = job.launcher.container
    return " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
