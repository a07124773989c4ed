"""When a job is synced after a change of one of its workers: at once, or after a batch period together with other changes.

Kubernetes' Job controller batches the changes of all Pods in the same way.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from mpiop.controller.observe import pods
from mpiop.kube.objects import Key, Object, is_terminating

BATCH_SECONDS: Final = 0.2
"""Workers mostly change together: without batches a job of 1,000 workers would be synced 1,000 times while it starts."""
_IDLE_FACTOR: Final = 20
"""The least ratio of the period to the time spent planning the last sync: planning takes at most a twentieth of a core."""


class WorkerChange(Enum):
    """What happened to a worker."""

    READY = auto()
    TERMINATING = auto()
    ENDED = auto()
    """Its containers have ended, or it is gone before anybody saw that."""
    GONE = auto()
    """It had ended, and is gone now."""
    OTHER = auto()


_LOSSES: Final = {WorkerChange.TERMINATING, WorkerChange.ENDED, WorkerChange.GONE}


def worker_change(old: Object | None, new: Object | None) -> WorkerChange:
    """Return what happened to a worker between `old` and `new`; None means that it did not or does not exist."""
    had_ended = old is not None and pods.is_finished(old)
    if new is None:
        return WorkerChange.GONE if had_ended else WorkerChange.ENDED
    if pods.is_finished(new):
        return WorkerChange.OTHER if had_ended else WorkerChange.ENDED
    if is_terminating(new):
        return WorkerChange.OTHER if old is not None and is_terminating(old) else WorkerChange.TERMINATING
    return WorkerChange.READY if pods.is_ready(new) and not (old is not None and pods.is_ready(old)) else WorkerChange.OTHER


@dataclass(slots=True)
class _Workers:
    """The workers of a job at its last sync: how many must still become Ready or, if they are leaving, end; how many it is to have."""

    awaited: int
    desired: int
    are_leaving: bool
    batch_seconds: float = BATCH_SECONDS


class Batches:
    """Decides how long a change of a worker waits: not at all if it is the last one awaited, or the loss of a desired one."""

    def __init__(self) -> None:
        """Start without jobs; the first change of a job does not wait."""
        self._workers: dict[Key, _Workers] = {}
        self._put_off: set[Key] = set()

    def begin(self, key: Key, awaited: int, *, desired: int, are_leaving: bool) -> None:
        """Note the start of a sync of a job with `desired` workers: `awaited` must still become Ready or, if they are leaving, end."""
        before = self._workers.get(key)
        self._workers[key] = _Workers(awaited, desired, are_leaving, before.batch_seconds if before else BATCH_SECONDS)
        self._put_off.discard(key)

    def postpone(self, key: Key) -> None:
        """Note that the job cannot be synced yet, because the caches do not show our last writes."""
        self._put_off.add(key)

    def is_postponed(self, key: Key) -> bool:
        """Return whether the last sync was postponed: then any event of the job may be the awaited one."""
        return key in self._put_off

    def planned(self, key: Key, seconds: float) -> None:
        """Note how long planning the writes took."""
        self._workers[key].batch_seconds = max(BATCH_SECONDS, _IDLE_FACTOR * seconds)

    def delay_seconds(self, key: Key, change: WorkerChange, index: int | None) -> float:
        """Return the delay of the sync after that change of the worker with that index, which is None for a Pod with a strange name."""
        workers = self._workers.get(key)
        if workers is None:
            return 0.0
        if change is (WorkerChange.ENDED if workers.are_leaving else WorkerChange.READY):
            workers.awaited -= 1
            return 0.0 if workers.awaited <= 0 else workers.batch_seconds
        is_desired = index is not None and index < workers.desired and not workers.are_leaving
        return 0.0 if is_desired and change in _LOSSES else workers.batch_seconds

    def forget(self, key: Key) -> None:
        """Forget a job that is gone."""
        self._workers.pop(key, None)
        self._put_off.discard(key)
