"""The page docs/reference/conditions.md: conditions, and the events that the operator's own code makes of them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from mpiop.api import constants as c
from mpiop.api.types import MPIJobStatus
from mpiop.controller.causes import CAUSES, DEGRADING, NODE_LOST, OOM_KILLED, RESOURCE_EXISTS, UNSCHEDULABLE
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.reconciling import STARTING
from mpiop.controller.status.status import transitions
from mpiop.kube.objects import Key

_HEAD = f"""# Conditions and events

<!-- Made by hack/generate from hack/generators/conditions.py; edit that. -->

`kubectl describe mpijob NAME` shows both. Conditions stay in the status of the job; events go after an hour, unless
the cluster keeps them longer. Each event is recorded once, after the status was stored, by `{c.EVENT_COMPONENT}`. A condition that changes
moves to the end of the list (`Reconciling` is the first):
programs that read the last one as the state of the job, as they do with Kubeflow's operator, find it there.

| condition | status, reason | when | event |
|---|---|---|---|
"""
_FOOT = """
`…` as a reason means one of the [causes](causes.md): {causes}. Of these, {degrading} become `Degraded` while the job runs.

## Other events

| event | when |
|---|---|
| Warning `SetPodTemplateRestartPolicy` | the Pod template has a `restartPolicy`, which has no effect: the one beside the template counts |
"""


@dataclass(frozen=True)
class Row:
    """What one status of a condition means; `reason` may be shown as another word that stands for several."""

    type: str
    status: str
    reason: str
    when: str
    shown: str = ""


# fmt: off
ROWS = (
    Row(c.CONDITION_CREATED, "True", "MPIJobCreated", "the operator has seen the job"),
    Row(c.CONDITION_RUNNING, "True", "MPIJobRunning", "launcher and all workers run. It stays True if Pods are lost later"),
    Row(c.CONDITION_RUNNING, "False", "MPIJobRunning", "the job has ended; times and reason stay, so that its duration can be computed"),
    Row(c.CONDITION_RUNNING, "False", "MPIJobSuspended", "the job is suspended"),
    Row(c.CONDITION_SUSPENDED, "True", "MPIJobSuspended", "`suspend` is true. When all Pods are gone, `replicaStatuses.*.active` is 0"),
    Row(c.CONDITION_SUSPENDED, "False", "MPIJobResumed", "it is false again; `startTime` is set anew"),
    Row(c.CONDITION_RECONCILING, "True", STARTING, "the job waits for its Pods; removed when it runs or ends"),
    Row(c.CONDITION_RECONCILING, "True", UNSCHEDULABLE, "time or an autoscaler may resolve what it waits for", "…"),
    Row(c.CONDITION_STALLED, "True", UNSCHEDULABLE, "its [grace period](../gitops.md) is over, or the job failed", "…"),
    Row(c.CONDITION_STALLED, "True", RESOURCE_EXISTS, "one of these causes; only its event has another name, that of Kubeflow's operator"),
    Row(c.CONDITION_STALLED, "False", "Resolved", "the problem is resolved"),
    Row(c.CONDITION_DEGRADED, "True", OOM_KILLED, "the job runs, and something is wrong with a Pod of it", "…"),
    Row(c.CONDITION_DEGRADED, "False", "Resolved", "nothing is wrong any more"),
    Row(c.CONDITION_DEGRADED, "False", "JobFailed", "the job has failed with this problem; the message names it"),
    Row(c.CONDITION_WARNINGS, "True", "TemplateWarnings", "the API server warned of a part of a Pod template: unknown or deprecated"),
    Row(c.CONDITION_WARNINGS, "False", "Resumed", "the Pods are created anew"),
    Row(c.CONDITION_UPDATE_PENDING, "True", "EditedAfterStart", "an edit takes effect only after a suspend and resume"),
    Row(c.CONDITION_UPDATE_PENDING, "False", "UpToDate", "it has taken effect"),
    Row(c.CONDITION_RESTARTING, "True", NODE_LOST, "workers or the launcher were lost; the operator replaces them", "…"),
    Row(c.CONDITION_RESTARTING, "False", "Restarted", "the launcher runs again"),
    Row(c.CONDITION_RESTARTING, "False", "Suspended", "the job was suspended meanwhile; the resume starts it"),
    Row(c.CONDITION_RESTARTING, "False", "NotStored", "the CRD is of an older version, and nothing is restarted: apply the newer one"),
    Row(c.CONDITION_SUCCEEDED, "True", "MPIJobSucceeded", "the launcher ended with exit code 0"),
    Row(c.CONDITION_FAILED, "True", "BackoffLimitExceeded/…", "the launcher failed more often than `backoffLimit`; … says why"),
    Row(c.CONDITION_FAILED, "True", "DeadlineExceeded", "`activeDeadlineSeconds` are over"),
    Row(c.CONDITION_FAILED, "True", "MPIJobEvicted", "the kubelet evicted a worker of a job without `max-restarts`"),
    Row(c.CONDITION_FAILED, "True", "ReachedMaxRestarts", "workers or the launcher were lost more often than `max-restarts` allows"),
    Row(c.CONDITION_FAILED, "True", "LauncherJobNotFound", "the launcher Job is gone, and nobody saw how it ended"),
    Row(c.CONDITION_WORKERS_UNUSED, "True", "NoWorkerReached", "the job succeeded, and `mpirun` has started nothing on the workers"),
    Row(c.CONDITION_WORKERS_UNUSED, "Unknown", "NotKnown", "no `mpirun` reached a worker; the command may not call it"),
    Row(c.CONDITION_FINISHED, "True", c.CONDITION_SUCCEEDED, "the job has ended", "`Succeeded` or `Failed`"),
)
# fmt: on


def conditions_page() -> str:
    """Return the text of the page."""
    causes, degrading = (", ".join(f"`{reason}`" for reason in CAUSES if reason in chosen) for chosen in (CAUSES, DEGRADING))
    return _HEAD + "".join(map(_line, ROWS)) + _FOOT.format(causes=causes, degrading=degrading)


def _line(row: Row) -> str:
    shown = row.shown or f"`{row.reason}`"
    return f"| `{row.type}` | {row.status}, {shown} | {row.when} | {_event(row)} |\n"


def _event(row: Row) -> str:
    """Return the event that the operator makes of the condition when it becomes so."""
    condition = cond.make(row.type, row.status, row.reason, "", datetime(2026, 1, 1, tzinfo=UTC))
    events = transitions(Key("default", "pi"), MPIJobStatus(), MPIJobStatus(conditions=(condition,)))
    return "".join(f"{event.type} {row.shown if event.reason == row.reason and row.shown else f'`{event.reason}`'}" for event in events)
