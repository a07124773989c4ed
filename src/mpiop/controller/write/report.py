"""Stores the status of a job, then records the events and counters that follow from it, each once.

An update without an answer may have been stored. It is remembered, and its events are recorded once the caches show that status.
"""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol

from mpiop.api import constants as c
from mpiop.api.fields import as_mapping
from mpiop.api.status import parse_status, status_to_wire
from mpiop.api.status_types import MPIJobStatus
from mpiop.api.types import MPIJob
from mpiop.clock import Clock
from mpiop.controller.observe.observed import Observed
from mpiop.controller.plan.diff import Patch
from mpiop.controller.plan.merge_patch import merge_patch
from mpiop.controller.status.reconciling import with_generation
from mpiop.controller.status.stalled import unreadable_problem
from mpiop.controller.status.status import Transition, failure_between, invalid_status, transitions
from mpiop.controller.write.apply import Applier, Owner
from mpiop.controller.write.job_log import log_changes
from mpiop.kube.errors import KubeError, StatusError
from mpiop.kube.objects import Key, Object, Unreadable, key_of, uid_of
from mpiop.kube.resources import MPIJOBS
from mpiop.metrics import Metrics

_MOST_UNANSWERED: Final = 20
"""One of the last is what is stored, if any: earlier ones have been answered by the time limit of the server."""
_WHOLE: Final = frozenset({"replicaStatuses", "lastFailure", "lostWorker", "summary"})


class Recorder(Protocol):
    """The part of the event recorder that is used here."""

    def record(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """Record an event of `obj` without blocking."""
        ...


@dataclass(frozen=True, slots=True)
class UnansweredUpdate:
    """A status update without an answer; its events are recorded once the status is seen to be stored."""

    uid: str
    old: MPIJobStatus
    new: MPIJobStatus


@dataclass(frozen=True, slots=True)
class Reporter:
    """Stores statuses and records their transitions.

    Attributes:
        unanswered: By job, the updates without an answer since the status last changed.
    """

    applier: Applier
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    unanswered: dict[Key, tuple[UnansweredUpdate, ...]]

    def now(self) -> datetime:
        """Return the current time in whole seconds, as statuses store it."""
        return self.clock.now().replace(microsecond=0)

    async def report(self, job: MPIJob, new: MPIJobStatus) -> None:
        """Store `new` if it differs, then record its transitions."""
        self._record_unanswered(job.raw, job.status)
        new = with_generation(job.status, new, job.generation)
        if new != job.status:
            await self._store(job.raw, job.status, new)

    async def refuse(self, raw: Object, message: str) -> None:
        """Store and record that the job of `raw` is invalid."""
        stored = parse_status(raw.get("status"))
        self._record_unanswered(raw, stored)
        new = with_generation(stored, invalid_status(stored, message, self.now()), raw["metadata"].get("generation", 0))
        if new != stored:
            await self._store(raw, stored, new)

    def warn(self, unreadable: Unreadable) -> None:
        """Record that an MPIJob cannot be decoded: nothing can be written into its status."""
        found = unreadable_problem([unreadable])
        self.recorder.record(unreadable.object, "Warning", found.reason, found.message)

    def show(self, job: Key, observed: Observed) -> None:
        """Show the job's launcher in the metrics, to join them with those of its pods."""
        if observed.launcher is not None:
            launcher_pods = (key_of(pod).name for pod in observed.launcher_pods)
            self.metrics.show_job(job, key_of(observed.launcher).name, launcher_pods)

    def hide(self, key: Key) -> None:
        """Show the launcher of a job no more."""
        self.metrics.hide_job(key)

    async def _store(self, raw: Object, old: MPIJobStatus, new: MPIJobStatus) -> None:
        key, attempt = key_of(raw), UnansweredUpdate(uid_of(raw), old, new)
        before, wire = status_to_wire(old), status_to_wire(new)
        body = dict.fromkeys(before.keys() - wire.keys()) | merge_patch(wire, raw.get("status") or {}, whole=_WHOLE)
        try:
            await self.applier.perform(Owner(key, attempt.uid), Patch(MPIJOBS, raw, {"status": body}, subresource="status"))
        except KubeError as error:
            if has_unknown_outcome(error):
                self.unanswered[key] = (*self.unanswered.get(key, ()), attempt)[-_MOST_UNANSWERED:]
            raise
        self.unanswered.pop(key, None)
        self._record(raw, old, new)

    def _record_unanswered(self, raw: Object, stored: MPIJobStatus) -> None:
        """Record the transitions of an update without an answer if that is what is stored now."""
        attempts = self.unanswered.get(key_of(raw), ())
        if not attempts or (attempts[0].uid, attempts[0].old) == (uid_of(raw), stored):
            return
        del self.unanswered[key_of(raw)]
        if UnansweredUpdate(uid_of(raw), attempts[0].old, stored) in attempts:
            self._record(raw, attempts[0].old, stored)

    def _record(self, raw: Object, old: MPIJobStatus, new: MPIJobStatus) -> None:
        if failure_between(old, new) is not None:
            self.metrics.launcher_failures.inc()
        if new.is_finished and not old.is_finished and new.duration is not None:
            self.metrics.job_duration_seconds.observe(new.duration.total_seconds())
        log_changes(raw, old, new)
        for transition in transitions(key_of(raw), old, new):
            self.recorder.record(raw, transition.type, transition.reason, transition.message)
            self._count(new, transition)
            if transition.condition == c.CONDITION_CREATED:
                self._warn_of_restart_policies(raw)

    def _count(self, new: MPIJobStatus, transition: Transition) -> None:
        match transition.condition:
            case c.CONDITION_CREATED:
                self.metrics.jobs_created.inc()
            case c.CONDITION_SUCCEEDED:
                self.metrics.jobs_successful.inc()
            case c.CONDITION_FAILED:
                self.metrics.jobs_failed.inc()
                self.metrics.count_failure(transition.reason)
            case c.CONDITION_RESTARTING if new.is_true(c.CONDITION_RESTARTING):
                self.metrics.count_restart(new.last_restarts[-1].reason)
            case c.CONDITION_RUNNING if new.start_time is not None:
                self.metrics.time_to_running_seconds.observe((self.now() - new.start_time).total_seconds())
            case _:
                return

    def _warn_of_restart_policies(self, raw: Object) -> None:
        for role in (c.LAUNCHER, c.WORKER):
            if _at(raw, "spec", "mpiReplicaSpecs", role, "template", "spec", "restartPolicy"):
                message = f"restartPolicy of the {role}'s pod template is not used: set spec.mpiReplicaSpecs.{role}.restartPolicy instead"
                self.recorder.record(raw, "Warning", "SetPodTemplateRestartPolicy", message)


def _at(value: object, *path: str) -> object:
    """Return the value at `path` of a job that may be malformed; None if there is none."""
    for name in path:
        value = (as_mapping(value) or {}).get(name)
    return value


def has_unknown_outcome(error: KubeError) -> bool:
    """Return whether a write that failed with `error` may have taken effect."""
    return not isinstance(error, StatusError) or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
