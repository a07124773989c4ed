"""When a job is synced after a watch event: at once, after a batch period together with other changes, or not at all.

Nobody waits for one worker of many to start, so the changes of a start are handled in batches that grow: after 1 s, then 2, 4, 8 and
10 s. Written at once, a job whose workers arrive one by one would cost a status and a whole list of hosts for each of them.
"""

from dataclasses import dataclass
from typing import Final

from mpiop.api import constants as c
from mpiop.api.names import worker_index
from mpiop.controller.changes import (
    LOSSES,
    WorkerChange,
    has_same_conditions,
    has_same_metadata,
    is_by_user,
    is_launcher_success,
    is_nothing_new,
    is_worker,
    worker_change,
)
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe.consistency import Consistency
from mpiop.informers.store import Notification
from mpiop.kube.objects import Key, key_of
from mpiop.kube.resources import CONFIG_MAPS, MPIJOBS

FIRST_SECONDS: Final = 1.0
"""Of the first batch of a start, and of all other batches: elastic programs must see within a second that hosts have gone."""
MOST_SECONDS: Final = 10.0
"""How far the counts in the status, and the list of running hosts, may be behind while workers start."""
_COUNTS: Final = {resource.kind: resource for resource in (MPIJOBS, CONFIG_MAPS)}


@dataclass(slots=True)
class _Workers:
    """The workers of a job at its last sync.

    Attributes:
        awaited: How many must still become Ready or, if they are leaving, end.
        desired: How many the job is to have.
        period_seconds: Of the next batch of workers that start.
        is_batch_open: A worker has started since.
    """

    awaited: int
    desired: int
    are_leaving: bool
    period_seconds: float = FIRST_SECONDS
    is_batch_open: bool = False


class Batches:
    """Decides when a change triggers a sync: at once for a lost worker or the last one we wait for, else with the next batch."""

    def __init__(self, memory: JobMemory, consistency: Consistency) -> None:
        """Keep in `memory` what the last sync of each job was; `consistency` knows what we wrote."""
        self._workers: dict[Key, _Workers] = memory.table()
        self._postponed: dict[Key, bool] = memory.table()
        self._consistency = consistency

    def begin(self, key: Key, awaited: int, *, desired: int, are_leaving: bool) -> None:
        """Note the start of a sync of a job with `desired` workers: `awaited` must still become Ready or, if they are leaving, end."""
        before = self._workers.get(key)
        workers = self._workers[key] = _Workers(awaited, desired, are_leaving)
        if before is not None and awaited > 0 and (before.desired, before.are_leaving) == (desired, are_leaving):
            factor = 2 if before.is_batch_open else 1
            workers.period_seconds = min(MOST_SECONDS, factor * before.period_seconds)
        self._postponed[key] = False

    def postpone(self, key: Key) -> None:
        """Note that the job cannot be synced yet, because the caches do not show our last writes."""
        self._postponed[key] = True

    def is_postponed(self, key: Key) -> bool:
        """Return whether the last sync was postponed: then any event of the job may be the awaited one."""
        return self._postponed.get(key, False)

    def delay_seconds(self, key: Key, notification: Notification) -> float | None:
        """Note a change of the job or of one of its children, and return the seconds until the sync; None if it needs none."""
        obj = notification.new or notification.old
        if obj is None or is_nothing_new(notification):
            return None
        if self._is_echo(key, notification):
            return MOST_SECONDS  # admission may have changed what we wrote
        if is_worker(obj):
            return self._of_worker(key, worker_change(notification.old, notification.new), worker_index(key.name, key_of(obj).name))
        is_status = obj.get("kind") == c.KIND and not is_by_user(notification)
        return FIRST_SECONDS if is_status or is_launcher_success(notification) else 0.0

    def _is_echo(self, key: Key, notification: Notification) -> bool:
        """Return whether we changed counts or the list of hosts, and nothing else: a sync would write again what changed meanwhile."""
        old, new = notification.old, notification.new
        resource = None if old is None or new is None else _COUNTS.get(new.get("kind") or "")
        if old is None or new is None or resource is None or is_by_user(notification):
            return False
        is_ours = self._consistency.is_last_write(key, resource, new)
        return is_ours and has_same_conditions(old, new) and has_same_metadata(old, new)

    def _of_worker(self, key: Key, change: WorkerChange, index: int | None) -> float:
        """Return the seconds until the sync after that change of the worker with that index, None for a Pod with a strange name."""
        workers = self._workers.get(key)
        if workers is None:
            return 0.0
        if change is (WorkerChange.ENDED if workers.are_leaving else WorkerChange.READY):
            workers.awaited -= 1
            if workers.awaited <= 0:
                return 0.0
        if change in {WorkerChange.READY, WorkerChange.STARTING}:
            workers.is_batch_open = True
            return workers.period_seconds
        is_desired = index is not None and index < workers.desired and not workers.are_leaving
        return 0.0 if is_desired and change in LOSSES else FIRST_SECONDS
