"""Delays writes that somebody else undoes each time, with a growing delay, and reports who that is.

A write *restores* when it only sets fields to the values that we stored last, or creates an object again that we did not delete. The caches
show our last writes before a job is synced, so somebody has undone them since, or admission did so as they were stored. Suspend and resume
alternate between values, so they are no restores. The memory may be lost without harm. Rejected: to stop at conflicts of server-side
apply, because admission policies have no field manager (docs/adr/0024-damping.md).
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from mpiop.api import constants as c
from mpiop.api.status_types import MPIJobStatus
from mpiop.backoff import RESTORE
from mpiop.clock import Clock
from mpiop.controller import causes
from mpiop.controller.causes import Problem, problem
from mpiop.controller.errors import DampedWriteError
from mpiop.controller.memory import JobMemory
from mpiop.controller.plan.diff import Action, Create, Delete, Patch
from mpiop.controller.status.reconciling import current_problem
from mpiop.controller.write.field_managers import Path, Writers, writers_of
from mpiop.kube.objects import Key, Object, uid_of
from mpiop.kube.resources import MPIJOBS, Resource

REPORTED: Final = 6
"""How many restores are reported: more than a few, within 8 s if nothing else slows them down."""
_LASTING_SECONDS: Final = 120.0
"""A write that lasts so long after the next one would have been due has taken effect, and its contention has ended. Another operator that
is slowed down, too, undoes it within 60 s."""
_ALIVE_SECONDS: Final = 10.0
"""The same for an object that was created. Ordinary workers are lost, too, but not within seconds and over and over."""
_MOST_REMEMBERED: Final = 4096
"""Writes of all jobs that are remembered before anything has been restored."""
_REASONS: Final = {causes.CHANGED_BACK, causes.SECOND_OPERATOR}
_EXISTS: Final[Mapping[Path, int]] = {(): 1}

_Subject = tuple[str, Resource, str, str]
"""The job's UID, the resource and name of an object, and the UID of the one that is patched, or what else is done about its name."""


def _count_nothing(_resource: str) -> None:
    """Count nothing."""


@dataclass(slots=True)
class Contended:
    """What we wrote to an object, and how often it had to be restored.

    Attributes:
        values: By field, a digest of what we stored there last.
        due_seconds: When it may be restored again, on the monotonic clock.
        began: When we wrote it first.
        fields: What was restored last; an object that was created again has none.
        is_waiting: A restore waits until it is due.
        writers: Who else writes these fields; None is not known yet.
    """

    resource: Resource
    name: str
    values: dict[Path, int]
    due_seconds: float
    began: datetime
    restores: int = 0
    fields: tuple[Path, ...] = ()
    is_waiting: bool = False
    writers: Writers | None = None

    @property
    def is_reported(self) -> bool:
        """Return whether it was restored more than a few times."""
        return self.restores >= REPORTED

    @property
    def ends_seconds(self) -> float:
        """Return when the contention ends, unless somebody undoes the last write before."""
        return self.due_seconds + (_ALIVE_SECONDS if () in self.values and not self.is_waiting else _LASTING_SECONDS)

    @property
    def is_unexplained(self) -> bool:
        """Return whether it is to be reported and nobody knows who else writes the object, which exists."""
        return self.restores >= REPORTED - 1 and self.writers is None and () not in self.values


@dataclass(slots=True)
class Contention:
    """Remembers the writes of jobs that may have to be restored, and delays those that have been restored too often.

    Attributes:
        field_manager: The name under which we write.
        memory: Keeps what has been restored.
        count_damped: Called with the resource of each write that is delayed.
    """

    clock: Clock
    field_manager: str
    memory: InitVar[JobMemory]
    count_damped: Callable[[str], None] = _count_nothing
    _recent: OrderedDict[_Subject, Contended] = field(default_factory=OrderedDict[_Subject, Contended], init=False)
    _restored: dict[Key, dict[_Subject, Contended]] = field(init=False)
    _believed_until: dict[Key, float] = field(init=False)

    def __post_init__(self, memory: JobMemory) -> None:
        """Take two tables of `memory`."""
        self._restored, self._believed_until = memory.table(), memory.table()

    def check(self, job: Key, uid: str, action: Action) -> Contended | None:
        """Return what `action` restores; None if it writes something new.

        Raises:
            DampedWriteError: It is not due.
        """
        found, values = self._find(job, _subject(uid, action)), _values(action)
        if found is None or not _restores(found, values):
            return None
        wait_seconds = found.due_seconds - self.clock.monotonic()
        if wait_seconds <= 0:
            return found
        found.is_waiting = True
        self.count_damped(action.resource.plural)
        raise DampedWriteError(action.resource, action.key, wait_seconds)

    def wrote(self, job: Key, uid: str, action: Action) -> None:
        """Note that `action` was carried out."""
        subject, values, now = _subject(uid, action), _values(action), self.clock.monotonic()
        if isinstance(action, Delete):
            self._drop(job, (*subject[:3], Create.__name__))
        if not values:
            return
        found = self._find(job, subject)
        if found is not None and _restores(found, values):
            self._recent.pop(subject, None)
            self._restored.setdefault(job, {})[subject] = found
            found.due_seconds = now + RESTORE.delay_seconds(found.restores)
            found.restores, found.fields, found.is_waiting = found.restores + 1, tuple(sorted(values)), False
        elif found is not None and found.is_reported:
            found.values |= values
        else:
            known = {} if found is None else found.values
            self._drop(job, subject)
            self._recent[subject] = Contended(action.resource, action.key.name, {**known, **values}, now, self.clock.now())
            self._forget_old(now)

    def explain(self, found: Contended, live: Object) -> None:
        """Note who else writes the object, which `live` is just before it is restored."""
        found.writers = writers_of(live, found.fields or tuple(found.values), self.field_manager, found.began)

    def problem(self, job: Key, status: MPIJobStatus) -> Problem | None:
        """Return the problem of a job whose objects somebody changes back; of several objects, always the same.

        What `status` reports of it counts for a while, and as long as anything has to be restored: this process may have started just now,
        or another operator has noticed it first.
        """
        now, current = self.clock.monotonic(), self._current(job)
        if current:
            self._believed_until[job] = now
        if reported := [found for found in current if found.is_reported]:
            found = min(reported, key=lambda each: (each.resource is MPIJOBS, each.resource.plural, each.name))
            return _problem(found, self.field_manager)
        stored = current_problem(status) or status.true_condition(c.CONDITION_DEGRADED)
        if stored is None or stored.reason not in _REASONS:
            self._believed_until.pop(job, None)
            return None
        is_believed = bool(current) or now < self._believed_until.setdefault(job, now + _LASTING_SECONDS)
        return Problem(stored.reason, stored.message) if is_believed else None

    def wait_seconds(self, job: Key) -> float | None:
        """Return the seconds until a restore is due, or until the end of a contention should be reported; None if there is neither."""
        now = self.clock.monotonic()
        ends = [
            found.due_seconds if found.is_waiting and found.due_seconds > now else found.ends_seconds
            for found in self._current(job)
            if found.is_waiting or found.is_reported or job in self._believed_until
        ]
        ends += [until for until in (self._believed_until.get(job),) if until is not None and until > now]
        return min(ends) - now if ends else None

    def _current(self, job: Key) -> list[Contended]:
        found = [self._find(job, subject) for subject in tuple(self._restored.get(job, ()))]
        return [each for each in found if each is not None]

    def _find(self, job: Key, subject: _Subject) -> Contended | None:
        found = self._restored.get(job, {}).get(subject) or self._recent.get(subject)
        if found is not None and found.ends_seconds <= self.clock.monotonic():
            self._drop(job, subject)
            return None
        return found

    def _drop(self, job: Key, subject: _Subject) -> None:
        self._recent.pop(subject, None)
        if (restored := self._restored.get(job)) is not None:
            restored.pop(subject, None)
            if not restored:
                del self._restored[job]

    def _forget_old(self, now: float) -> None:
        while self._recent:
            oldest = next(iter(self._recent.values()))
            if len(self._recent) <= _MOST_REMEMBERED and oldest.ends_seconds > now:
                return
            self._recent.popitem(last=False)


def _subject(uid: str, action: Action) -> _Subject:
    return (uid, action.resource, action.key.name, uid_of(action.observed) if isinstance(action, Patch) else type(action).__name__)


def _values(action: Action) -> Mapping[Path, int]:
    """Return a digest of each field that `action` sets; a delete has one if the object is created again with another value."""
    match action:
        case Create():
            return _EXISTS
        case Patch():
            return dict(_leaves(action.body, ()))
        case Delete():
            return {action.replaces: 1} if action.replaces else {}


def _leaves(body: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, int]]:
    for name, value in body.items():
        if isinstance(value, dict) and value:
            yield from _leaves(cast("dict[str, Any]", value), (*path, name))
        elif isinstance(value, str):
            yield (*path, name), hash(value)
        else:
            yield (*path, name), hash(json.dumps(_without_times(cast("object", value)), sort_keys=True))


def _without_times(value: object) -> object:
    """Return `value`; conditions without their times, for the same condition that is set again has others."""
    if not isinstance(value, list):
        return value
    rows = cast("list[object]", value)
    return [
        {k: v for k, v in cast("dict[str, Any]", row).items() if not k.endswith("Time")} if isinstance(row, dict) else row for row in rows
    ]


def _restores(found: Contended, values: Mapping[Path, int]) -> bool:
    return bool(values) and all(found.values.get(path) == value for path, value in values.items())


def _problem(found: Contended, ours: str) -> Problem:
    what = f"{found.resource.kind} {found.name}"
    if found.fields == ((),):
        return problem(causes.CHANGED_BACK, f"{what} is missing again each time the operator has created it")
    fields, writers = ", ".join(map(_rendered, found.fields)), found.writers or Writers()
    if writers.are_operators:
        return problem(
            causes.SECOND_OPERATOR, f"{' and '.join(sorted({ours, *writers.names}))} write different values to {fields} of {what}"
        )
    who = " and ".join(writers.names) or ("a webhook or an admission policy" if writers.is_admission else "something")
    return problem(causes.CHANGED_BACK, f"{who} changes {fields} of {what} each time the operator has set it")


def _rendered(path: Path) -> str:
    """Return the field as users write it: `metadata.labels[example.org/team]`."""
    return path[0] + "".join(f"[{name}]" if "." in name or "/" in name else f".{name}" for name in path[1:])
