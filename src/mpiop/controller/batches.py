"""When a job is synced after a change of one of its workers: at once, or together with others after a batch period.

As in Kubernetes' Job controller, which batches the changes of all Pods.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from mpiop.controller.observe import pods
from mpiop.kube.objects import Key, Object, is_terminating

BATCH_SECONDS: Final = 0.2
"""Workers of a job mostly change together: without it a job of 1,000 is synced 1,000 times while it starts."""
_IDLE_FACTOR: Final = 20
"""The period is so many times what planning the last sync took: a job of 50,000 workers uses less than a tenth of a core."""


class WorkerChange(Enum):
    """What happened to a worker."""

    READY = auto()
    LOST = auto()
    """It is being deleted, or has ended."""
    GONE = auto()
    OTHER = auto()


def worker_change(old: Object | None, new: Object | None) -> WorkerChange:
    """Return what happened to a worker that was `old` and is `new` now; None is one that does not exist."""
    if new is None:
        return WorkerChange.GONE
    if _is_lost(new):
        return WorkerChange.OTHER if old is not None and _is_lost(old) else WorkerChange.LOST
    return WorkerChange.READY if pods.is_ready(new) and not (old is not None and pods.is_ready(old)) else WorkerChange.OTHER


def _is_lost(worker: Object) -> bool:
    return is_terminating(worker) or pods.is_finished(worker)


@dataclass(slots=True)
class _Workers:
    """The workers of a job at its last sync: how many are awaited, to become Ready or, if they are leaving, to be gone."""

    awaited: int
    are_leaving: bool
    batch_seconds: float = BATCH_SECONDS


class Batches:
    """Knows for each job how long a change of a worker may wait: not at all if it is the last one awaited, or a loss."""

    def __init__(self) -> None:
        """Know no job: its first change does not wait."""
        self._workers: dict[Key, _Workers] = {}
        self._put_off: set[Key] = set()

    def begin(self, key: Key, awaited: int, *, are_leaving: bool) -> None:
        """Note that a sync begins, and what it sees: `awaited` workers are to become Ready or, if they are leaving, to be gone."""
        self._workers[key] = _Workers(awaited, are_leaving)
        self._put_off.discard(key)

    def postpone(self, key: Key) -> None:
        """Note that the job could not be synced yet, because the caches do not show our last writes."""
        self._put_off.add(key)

    def is_postponed(self, key: Key) -> bool:
        """Return whether the last sync was put off: then any event of the job's objects may be the one that was waited for."""
        return key in self._put_off

    def planned(self, key: Key, seconds: float) -> None:
        """Note how long the sync took to plan its writes."""
        self._workers[key].batch_seconds = max(BATCH_SECONDS, _IDLE_FACTOR * seconds)

    def delay_seconds(self, key: Key, change: WorkerChange) -> float:
        """Return after how many seconds a job should be synced because of that change."""
        workers = self._workers.get(key)
        if workers is None:
            return 0.0
        if change is (WorkerChange.GONE if workers.are_leaving else WorkerChange.READY):
            workers.awaited -= 1
            return 0.0 if workers.awaited <= 0 else workers.batch_seconds
        is_loss = change in {WorkerChange.LOST, WorkerChange.GONE} and not workers.are_leaving
        return 0.0 if is_loss else workers.batch_seconds

    def forget(self, key: Key) -> None:
        """Drop what is known of a job that is gone."""
        self._workers.pop(key, None)
        self._put_off.discard(key)
