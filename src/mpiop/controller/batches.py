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
    begins_to_run,
    has_same_conditions,
    has_same_metadata,
    is_by_user,
    is_launcher_start,
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
        pending: How many must still begin to run.
        desired: How many the job is to have.
        period_seconds: Of the next batch of Pods that start.
        is_batch_open: A Pod has started since.
    """

    awaited: int
    pending: int
    desired: int
    are_leaving: bool
    period_seconds: float = FIRST_SECONDS
    is_batch_open: bool = False

    def open_batch(self) -> float:
        """Add a change to the next batch, and return the seconds until its end."""
        self.is_batch_open = True
        return self.period_seconds

    def delay_seconds(self, notification: Notification, index: int | None) -> float:
        """Note a change of the worker with that index, None for a Pod with a strange name, and return the seconds until the sync."""
        change = worker_change(notification.old, notification.new)
        is_last = False
        if begins_to_run(notification.old, notification.new):
            self.pending -= 1
            is_last = self.pending <= 0
        if change is (WorkerChange.ENDED if self.are_leaving else WorkerChange.READY):
            self.awaited -= 1
            is_last |= self.awaited <= 0
        if is_last:
            return 0.0
        if change in {WorkerChange.READY, WorkerChange.STARTING}:
            return self.open_batch()
        is_desired = index is not None and index < self.desired and not self.are_leaving
        return 0.0 if is_desired and change in LOSSES else FIRST_SECONDS


class Batches:
    """Decides when a change triggers a sync: at once for a lost worker or the last one we wait for, else with the next batch."""

    def __init__(self, memory: JobMemory, consistency: Consistency) -> None:
        """Keep in `memory` what the last sync of each job was; `consistency` knows what we wrote."""
        self._workers: dict[Key, _Workers] = memory.table()
        self._postponed: dict[Key, bool] = memory.table()
        self._consistency = consistency

    def begin(self, key: Key, awaited: int, *, pending: int, desired: int, are_leaving: bool) -> None:
        """Note the start of a sync of a job with `desired` workers.

        Args:
            key: The job's.
            awaited: How many workers must still become Ready or, if they are leaving, end.
            pending: How many must still begin to run.
            desired: How many the job is to have.
            are_leaving: Whether they are to end.
        """
        before = self._workers.get(key)
        workers = self._workers[key] = _Workers(awaited, pending, desired, are_leaving)
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
        workers = self._workers.get(key)
        if is_worker(obj):
            return 0.0 if workers is None else workers.delay_seconds(notification, worker_index(key.name, key_of(obj).name))
        if workers is not None and workers.pending > 0 and not workers.are_leaving and is_launcher_start(notification):
            return workers.open_batch()  # no condition changes before all workers run
        if is_launcher_success(notification):
            return MOST_SECONDS  # the Job is Complete a second or two later, and that queues the job at once
        is_status = obj.get("kind") == c.KIND and not is_by_user(notification)
        return FIRST_SECONDS if is_status else 0.0

    def _is_echo(self, key: Key, notification: Notification) -> bool:
        """Return whether we changed counts or the list of hosts, and nothing else: a sync would write again what changed meanwhile."""
        old, new = notification.old, notification.new
        resource = None if old is None or new is None else _COUNTS.get(new.get("kind") or "")
        if old is None or new is None or resource is None or is_by_user(notification):
            return False
        is_ours = self._consistency.is_last_write(key, resource, new)
        return is_ours and has_same_conditions(old, new) and has_same_metadata(old, new)
