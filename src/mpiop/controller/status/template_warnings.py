"""The condition Warnings: what the API server warned of when Pods and Job were created, such as a field that it does not know."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from mpiop.api import constants as c
from mpiop.api.types import MPIJob, MPIJobStatus
from mpiop.controller.status import conditions as cond
from mpiop.kube.text import truncated

REASON: Final = "TemplateWarnings"


def with_warnings(job: MPIJob, status: MPIJobStatus, warnings: Iterable[str], now: datetime) -> MPIJobStatus:
    """Return `status` with those of `warnings` that its condition does not have yet; each create is answered only once."""
    old = status.true_condition(c.CONDITION_WARNINGS)
    message = old.message if old is not None else ""
    new = [text for text in (*_of_spec(job), *warnings) if text not in message]
    text = truncated("; ".join(filter(None, (message, *new))))
    if text == message or status.is_finished:
        return status
    row = cond.make(c.CONDITION_WARNINGS, "True", REASON, text, now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def without_warnings(status: MPIJobStatus, now: datetime) -> MPIJobStatus:
    """Return `status` for a job that starts again: its Pods are created anew, and so are the warnings."""
    if not status.is_true(c.CONDITION_WARNINGS):
        return status
    row = cond.make(c.CONDITION_WARNINGS, "False", "Resumed", "The Pods are created again.", now)
    return replace(status, conditions=cond.set_before_last(status.conditions, row))


def _of_spec(job: MPIJob) -> Iterator[str]:
    if job.slots_per_worker == 0 and job.worker is not None:
        yield "spec.slotsPerWorker is 0: mpirun starts nothing on the workers. Set it to the number of processes of each worker"
