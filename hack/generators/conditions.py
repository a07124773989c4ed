"""The page docs/reference/conditions.md: conditions, and the events that the operator's own code makes of them."""

from datetime import UTC, datetime

from mpiop.api import constants as c
from mpiop.api.condition_type import Meaning
from mpiop.api.status_types import MPIJobStatus
from mpiop.controller.causes import CAUSES, DEGRADING
from mpiop.controller.status import conditions as cond
from mpiop.controller.status.status import transitions
from mpiop.kube.objects import Key

_HEAD = f"""# Conditions and events

<!-- Made by hack/generate from src/mpiop/api/constants.py; edit that. -->

`kubectl describe mpijob NAME` shows both. Conditions remain in the status of the job; events are deleted after an hour, unless
the cluster keeps them longer. `{c.EVENT_COMPONENT}` records each event once, after the status is stored. When a condition
changes, it moves to the end of the list; only `Reconciling` always comes first. As with Kubeflow's operator, programs can therefore read
the last condition as the state of the job.

| condition | status, reason | when | event |
|---|---|---|---|
"""
_FOOT = """
`…` as a reason means one of the [causes](causes.md): {causes}. While the job runs, these causes become `Degraded`: {degrading}.

## Other events

| event | when |
|---|---|
| Warning `SetPodTemplateRestartPolicy` | the `restartPolicy` of the Pod template has no effect; the replica spec's applies |
"""


def conditions_page() -> str:
    """Return the text of the page."""
    causes, degrading = (", ".join(f"`{reason}`" for reason in CAUSES if reason in chosen) for chosen in (CAUSES, DEGRADING))
    lines = (_line(row.type, meaning) for row in c.CONDITION_TYPES.values() for meaning in row.meanings)
    return _HEAD + "".join(lines) + _FOOT.format(causes=causes, degrading=degrading)


def _line(type_: str, meaning: Meaning) -> str:
    return f"| `{type_}` | {meaning.status}, {_shown(meaning.reason)} | {meaning.when} | {_event(type_, meaning)} |\n"


def _event(type_: str, meaning: Meaning) -> str:
    """Return the event that the operator makes of the condition when it becomes so."""
    condition = cond.make(type_, meaning.status, meaning.reason, "", datetime(2026, 1, 1, tzinfo=UTC))
    events = transitions(Key("default", "pi"), MPIJobStatus(), MPIJobStatus(conditions=(condition,)))
    return "".join(f"{event.type} {_shown(event.reason)}" for event in events)


def _shown(reason: str) -> str:
    return reason if reason == "…" else f"`{reason}`"
