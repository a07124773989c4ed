"""Lists the events of the object that a job waits for, because some causes, such as a failed mount, appear nowhere else.

Events are not watched, because a cluster has very many. They are listed once the oldest Pod of a job has waited for 3 s, again 3 s after
that Pod has changed, and every 30 s; sooner while no event has a cause, because a slow node writes it late. The jobs of a namespace send at
most one request a second, or ten at once, and all jobs together 20. Without the right to list events, these causes are not reported.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol, Self

import structlog

from mpiop.api import constants as c
from mpiop.api.status import timestamp
from mpiop.api.types import MPIJob
from mpiop.backoff import SIGN
from mpiop.clock import Clock
from mpiop.controller.causes import FAILED_CREATE, Problem, problem
from mpiop.controller.memory import JobMemory
from mpiop.controller.observe import pods
from mpiop.controller.observe.observed import Observed
from mpiop.controller.status.reconciling import current_problem
from mpiop.controller.status.refusals import refusal_reason
from mpiop.controller.status.unhandled import is_suspension_ignored, unhandled_problem
from mpiop.controller.write.optional_permission import OptionalPermission
from mpiop.kube.errors import KubeError
from mpiop.kube.objects import Key, Object, ObjectList, creation_time, is_terminating, key_of, resource_version_of, uid_of
from mpiop.kube.resources import EVENTS, JOBS, Selection
from mpiop.token_bucket import TokenBucket, TokenBuckets

WAITING_SECONDS: Final = 3.0
UNHANDLED_SECONDS: Final = 57.0
"""How much longer a job may wait for something about which there is no sign."""
NEXT_SECONDS: Final = 10.0
"""How soon, at the latest, a Pod is asked about that is the oldest one now: not each of many that start slowly."""
LATER_SECONDS: Final = 10.0
"""How long a job waits for its turn: a thousand jobs that wait at the same time are not synced each second for it."""
BURST: Final = 10
ALL_RATE: Final = 20.0
ALL_BURST: Final = 50
"""Of hundreds of namespaces together: the API server reads all Events of a namespace for each list."""
ALL_KEPT: Final = 25
"""Of that burst, for namespaces that have asked nothing lately, so that those with many waiting jobs do not delay their first answer."""
LIMIT: Final = 20
SLOW_READS: Final = 3
"""A busy node may need two attempts to read a Secret; after three, something is wrong with the API server or the way to it."""
_ENDS: Final = frozenset({c.BACKOFF_LIMIT_EXCEEDED, c.DEADLINE_EXCEEDED})
"""The Job controller reports these ends as events a moment before the launcher Job has the condition. No job waits for them."""
_SLOW_READ: Final = re.compile(r"failed to sync (?:secret|configmap) cache: timed out")
_WHOLE_SECONDS: Final = len("2026-01-01T00:00:00")
_UNKNOWN: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EventSource(Protocol):
    """The part of the client that lists."""

    def of_flow(self, flow: Hashable) -> Self:
        """Return a client whose requests wait with those of `flow`."""
        ...

    async def list_page(self, selection: Selection, *, resource_version: str, limit: int = 0) -> ObjectList:
        """Return a page of a list."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the events of an object reported.

    Attributes:
        uid: Of the object.
        version: Of the object, when it was asked about.
        again_at_seconds: When to ask again, monotonic.
        problem: What they name.
        silent: How many answers in a row named nothing, since the object changed.
    """

    uid: str
    version: str
    again_at_seconds: float
    problem: Problem | None
    silent: int


class WarningEvents:
    """Reads the newest event of what a job waits for, if it is a warning."""

    def __init__(self, client: EventSource, clock: Clock, memory: JobMemory) -> None:
        """Ask with `client`, and keep the answers in `memory`."""
        self._client = client
        self._clock = clock
        self._buckets = TokenBuckets(1.0, BURST)
        self._all = TokenBucket(ALL_RATE, ALL_BURST)
        self._answers: dict[Key, _Answer] = memory.table()
        self._waited: dict[Key, tuple[str, float, float]] = memory.table()
        self._right = OptionalPermission(clock)
        self._log = structlog.get_logger(__name__)

    async def problem(self, job: MPIJob, observed: Observed, now: datetime) -> tuple[Problem | None, float | None]:
        """Return the problem of what `job` waits for, and the seconds until this should be called again; None if it waits for nothing."""
        waiting = longest_waiting(job, observed)
        if waiting is None:
            self._answers.pop(job.key, None)
            self._waited.pop(job.key, None)
            return None, None
        due = WAITING_SECONDS - (now - _since(waiting)).total_seconds()
        if due > 0:
            return None, due
        found, again_in_seconds = await self._newest(job.key, waiting, current_problem(job.status))
        if found is not None or (unhandled := unhandled_problem(waiting, is_queued=job.is_queued)) is None:
            return found, again_in_seconds
        left = round(UNHANDLED_SECONDS - self._waited_seconds(job.key, uid_of(waiting)), 3)  # a clock may not show 1e-15 s
        return (None, min(left, again_in_seconds)) if left > 0 else (unhandled, min(SIGN.most_seconds, again_in_seconds))

    def _waited_seconds(self, job: Key, uid: str) -> float:
        """Return for how long the job has waited for the object with that UID, as far as this replica has seen it without a break."""
        now = self._clock.monotonic()
        known, since, last = self._waited.get(job, ("", now, now))
        if known != uid or now - last > 2 * SIGN.most_seconds:
            since = now
        self._waited[job] = uid, since, now
        return now - since

    async def _newest(self, job: Key, waiting: Object, known: Problem | None) -> tuple[Problem | None, float]:
        seconds, answer, version, silent = self._clock.monotonic(), self._answers.get(job), resource_version_of(waiting), 0
        if answer is not None and answer.uid != uid_of(waiting):  # the Pod before has come: nothing points to a fault of this one
            again_at_seconds = min(answer.again_at_seconds, seconds + NEXT_SECONDS)
            answer = None if answer.problem else replace(answer, uid=uid_of(waiting), version=version, again_at_seconds=again_at_seconds)
        if answer is not None:
            self._answers[job] = answer
            if answer.version != version:  # the event with the reason arrives a moment after the change
                again_at_seconds = min(answer.again_at_seconds, seconds + WAITING_SECONDS)
                self._answers[job] = answer = replace(answer, version=version, again_at_seconds=again_at_seconds, silent=0)
            silent = answer.silent
            if seconds < answer.again_at_seconds:
                return answer.problem, answer.again_at_seconds - seconds
        if forbidden_seconds := self._right.wait_seconds(job.namespace):
            return None, forbidden_seconds
        own = self._buckets.of(job.namespace, seconds)
        kept = 0 if own.is_full(seconds) else ALL_KEPT
        if not (own.take(seconds) and self._all.take(seconds, kept=kept)):
            return known, LATER_SECONDS
        found = await self._read(job, waiting, known)
        again_in_seconds = SIGN.most_seconds if found else SIGN.delay_seconds(silent)
        self._answers[job] = _Answer(uid_of(waiting), version, seconds + again_in_seconds, found, 0 if found else silent + 1)
        return found, again_in_seconds

    async def _read(self, job: Key, waiting: Object, known: Problem | None) -> Problem | None:
        """Return the problem that the events of `waiting` name; if they cannot be read, the `known` one that the job has now."""
        selection = Selection(EVENTS, job.namespace, field_selector=f"involvedObject.uid={uid_of(waiting)}")
        try:
            page = await self._client.of_flow(job).list_page(selection, resource_version="", limit=LIMIT)
        except KubeError as error:
            self._right.note(job.namespace, error)
            self._log.info("events not readable, causes that only events name are not shown", error=str(error))
            return known
        return newest_warning(waiting, page["items"])


def longest_waiting(job: MPIJob, observed: Observed) -> Object | None:
    """Return a launcher Job that should have a Pod and has none, or else the oldest Pod that should be Ready and is not.

    The Job comes first: it has its Pod at once, or was refused it, while workers may wait for hours and still come. Last comes a suspended
    Job whose Pod still runs.
    """
    if job.status.is_finished:
        return None
    launcher = observed.launcher
    ignored = launcher if is_suspension_ignored(observed) else None
    if job.is_suspended:
        return ignored
    has_no_pod = launcher is not None and not observed.launcher_pods and pods.job_outcome(launcher) is None
    if has_no_pod and not observed.is_launcher_suspended:
        return launcher
    workers = (observed.workers[name] for name in job.worker_names if name in observed.workers)
    waiting = [pod for pod in workers if not pods.is_ready(pod)]
    if observed.launcher_pod is not None and pods.phase(observed.launcher_pod) == "Pending":
        waiting.append(observed.launcher_pod)
    waiting = [pod for pod in waiting if not (is_terminating(pod) or pods.is_finished(pod))]
    return min(waiting, key=lambda pod: pod["metadata"].get("creationTimestamp", ""), default=ignored)  # as text: there may be thousands


def newest_warning(waiting: Object, events: Sequence[Mapping[str, Any]]) -> Problem | None:
    """Return the problem that the newest event of `waiting` reports; None if that event has another type than Warning."""
    signs = (event for event in events if event.get("reason") not in _ENDS and not _is_slowness(event))
    newest = max(signs, key=_time, default=None)
    if newest is None or newest.get("type") != "Warning":
        return None
    reason, message = str(newest.get("reason") or ""), str(newest.get("message") or "")
    if reason == FAILED_CREATE:
        return problem(_refusal_reason(message), f"launcher pod created failed: {message}")
    return problem(reason if reason.isalnum() else "Warning", f"pod {key_of(waiting).name}: {message}")


def _refusal_reason(message: str) -> str:
    """Return the reason of a refusal that the Job controller words as an event."""
    return refusal_reason(HTTPStatus.FORBIDDEN, message) if "forbidden" in message or "denied" in message else FAILED_CREATE


def _is_slowness(event: Mapping[str, Any]) -> bool:
    """Return whether a kubelet did not read a Secret or ConfigMap in time, and will most likely read it at its next attempt."""
    return (event.get("count") or 1) < SLOW_READS and _SLOW_READ.search(str(event.get("message"))) is not None


def _time(event: Mapping[str, Any]) -> tuple[str, bool]:
    """Return when an event was seen last, in whole seconds as the kubelet writes them; of those of the same second a warning counts."""
    series: Mapping[str, Any] = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return next((str(time)[:_WHOLE_SECONDS] for time in times if time), ""), event.get("type") == "Warning"


def _since(waiting: Object) -> datetime:
    """Return when the Pod was created, or when the Job was started last."""
    started = timestamp(waiting.get("status", {}).get("startTime")) if waiting.get("kind") == JOBS.kind else None
    return started or creation_time(waiting) or _UNKNOWN
