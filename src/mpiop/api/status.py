"""The status of an MPIJob between its wire form and its dataclass.

Reading never fails: the operator itself wrote the status (or the Go operator did), and what cannot be understood of it is left out rather
than letting a job stand still for it.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

from mpiop.api.fields import INT32_MAX, as_integer, as_mapping
from mpiop.api.status_types import Attempt, Condition, Failure, LostWorker, MPIJobStatus, ReplicaStatus, Restart, Summary
from mpiop.clock import format_time, parse_time

_Value = TypeVar("_Value")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNSEEN: Final = -1
"""Observed generation of a job that no operator has seen; the CRD sets it."""
_STATUS_VALUES: Final = ("True", "False", "Unknown")
_SUMMARY: Final = tuple(field.name for field in fields(Summary))
_FAILURE: Final = tuple(field.name for field in fields(Failure))
_COUNTS: Final = ("active", "succeeded", "failed")


def parse_status(raw: object, *, created: datetime = _EPOCH) -> MPIJobStatus:
    """Parse the wire form of a status; whatever cannot be understood is left out.

    Args:
        raw: The object's `status`, or None.
        created: The object's creationTimestamp, for conditions that carry no time of their own.
    """
    status = as_mapping(raw) or {}
    summary = as_mapping(status.get("summary")) or {}
    return MPIJobStatus(
        conditions=_conditions(status.get("conditions"), created),
        observed_generation=max(as_integer(status.get("observedGeneration")) or 0, _UNSEEN),
        replica_statuses=_replica_statuses(status.get("replicaStatuses")),
        start_time=timestamp(status.get("startTime")),
        completion_time=timestamp(status.get("completionTime")),
        last_failure=_failure(status.get("lastFailure")),
        attempts=tuple(filter(None, map(_attempt, _items(status.get("attempts"))))),
        lost_worker=_lost_worker(status.get("lostWorker")),
        restarts=_count(status.get("restarts")),
        last_restarts=tuple(filter(None, map(_restart, _items(status.get("lastRestarts"))))),
        failed_nodes=_texts(status.get("failedNodes")),
        summary=Summary(*(_text(summary.get(name)) for name in _SUMMARY)),
    )


def stored_status(raw: Mapping[str, Any]) -> MPIJobStatus:
    """Parse the status of a stored MPIJob, which may hold anything."""
    metadata = as_mapping(raw.get("metadata")) or {}
    return parse_status(raw.get("status"), created=timestamp(metadata.get("creationTimestamp")) or _EPOCH)


def state_of(raw: object) -> str:
    """Return `summary.state` of the wire form of a status, without parsing the rest of it; "" if there is none."""
    summary = as_mapping((as_mapping(raw) or {}).get("summary")) or {}
    return _text(summary.get("state"))


def status_to_wire(status: MPIJobStatus) -> dict[str, Any]:
    """Render `status` for the API server: keys in a stable order, None and empty left out.

    A replica status without pods is rendered as `{}`: its key shows that the role exists.
    """
    wire: dict[str, Any] = {
        "conditions": [_condition_to_wire(condition) for condition in status.conditions],
        "observedGeneration": status.observed_generation,
        "replicaStatuses": {role: _replica_status_to_wire(status.replica_statuses[role]) for role in sorted(status.replica_statuses)},
        "startTime": format_time(status.start_time) if status.start_time else None,
        "completionTime": format_time(status.completion_time) if status.completion_time else None,
        "lastFailure": _failure_to_wire(status.last_failure),
        "attempts": [_attempt_to_wire(attempt) for attempt in status.attempts],
        "lostWorker": _lost_worker_to_wire(status.lost_worker),
        "restarts": status.restarts,
        "lastRestarts": [_restart_to_wire(restart) for restart in status.last_restarts],
        "failedNodes": list(status.failed_nodes),
        "summary": _filled({name: getattr(status.summary, name) for name in _SUMMARY}),
    }
    return _filled(wire)


def _filled(wire: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the fields that are not None, empty or 0, as Go leaves them out (`omitempty`)."""
    return {name: value for name, value in wire.items() if value}


def timestamp(value: object) -> datetime | None:
    """Parse an RFC 3339 time stamp to whole seconds in UTC; None for Go's zero time and for an invalid time stamp."""
    if not isinstance(value, str):
        return None
    try:
        moment = parse_time(value)
        moment = moment.replace(microsecond=0, tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment >= _EPOCH else None


def _conditions(raw: object, created: datetime) -> tuple[Condition, ...]:
    """Return the conditions in their order; of two with one type the later one, since a rewritten condition moves to the end."""
    by_type: dict[str, Condition] = {}
    for item in _items(raw):
        condition = _condition(item, created)
        if condition is not None:
            by_type.pop(condition.type, None)
            by_type[condition.type] = condition
    return tuple(by_type.values())


def _condition(raw: object, created: datetime) -> Condition | None:
    fields = as_mapping(raw) or {}
    type_ = _text(fields.get("type"))
    if not type_:
        return None
    status = fields.get("status")
    updated, changed = timestamp(fields.get("lastUpdateTime")), timestamp(fields.get("lastTransitionTime"))
    return Condition(
        type=type_,
        status=status if status in _STATUS_VALUES else "Unknown",
        reason=_text(fields.get("reason")),
        message=_text(fields.get("message")),
        last_update_time=updated or changed or created,
        last_transition_time=changed or updated or created,
    )


def _condition_to_wire(condition: Condition) -> dict[str, str]:
    wire = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": format_time(condition.last_update_time),
        "lastTransitionTime": format_time(condition.last_transition_time),
    }
    return _filled(wire)


def _replica_statuses(raw: object) -> Mapping[str, ReplicaStatus]:
    statuses = {role: as_mapping(counts) for role, counts in (as_mapping(raw) or {}).items()}
    return {role: ReplicaStatus(*(_count(counts.get(name)) for name in _COUNTS)) for role, counts in statuses.items() if counts is not None}


def _replica_status_to_wire(status: ReplicaStatus) -> dict[str, int]:
    counts = {"active": status.active, "succeeded": status.succeeded, "failed": status.failed}
    return _filled(counts)


def _failure(raw: object) -> Failure | None:
    fields = as_mapping(raw) or {}
    failure = Failure(*(_text(fields.get(name)) for name in _FAILURE))
    return failure if failure.reason or failure.message else None


def _failure_to_wire(failure: Failure | None) -> dict[str, str]:
    return _filled({name: getattr(failure, name) for name in _FAILURE}) if failure else {}


def _attempt(raw: object) -> Attempt | None:
    fields = as_mapping(raw) or {}
    pod, ended = _text(fields.get("pod")), timestamp(fields.get("endTime"))
    if not pod or ended is None:
        return None
    return Attempt(
        number=_count(fields.get("number")),
        pod=pod,
        node=_text(fields.get("node")),
        started=timestamp(fields.get("startTime")),
        ended=ended,
        exit_code=_count(fields.get("exitCode")),
        reason=_text(fields.get("reason")),
    )


def _attempt_to_wire(attempt: Attempt) -> dict[str, Any]:
    wire = {
        "number": attempt.number,
        "pod": attempt.pod,
        "node": attempt.node,
        "startTime": format_time(attempt.started) if attempt.started else None,
        "endTime": format_time(attempt.ended),
        "exitCode": attempt.exit_code,
        "reason": attempt.reason,
    }
    return _filled(wire)


def _lost_worker(raw: object) -> LostWorker | None:
    fields = as_mapping(raw) or {}
    seen = timestamp(fields.get("time"))
    if seen is None:
        return None
    pod, node, reason, message, attempt = (_text(fields.get(name)) for name in ("pod", "node", "reason", "message", "launcherTry"))
    return LostWorker(pod, node, reason, message, seen, attempt)


def _lost_worker_to_wire(lost: LostWorker | None) -> dict[str, str]:
    if lost is None:
        return {}
    wire = {"pod": lost.pod, "node": lost.node, "reason": lost.reason, "message": lost.message, "launcherTry": lost.attempt}
    return _filled(wire | {"time": format_time(lost.time)})


def _restart(raw: object) -> Restart | None:
    fields = as_mapping(raw) or {}
    number, decided = _count(fields.get("number")), timestamp(fields.get("time"))
    if not number or decided is None:
        return None
    reason, message = _text(fields.get("reason")), _text(fields.get("message"))
    return Restart(number, decided, reason, message, _texts(fields.get("launcherPods")), _texts(fields.get("failedNodes")))


def _restart_to_wire(restart: Restart) -> dict[str, Any]:
    wire: dict[str, Any] = {"number": restart.number, "reason": restart.reason, "message": restart.message}
    lists = {"launcherPods": list(restart.launcher_pods), "failedNodes": list(restart.failed_nodes)}
    return _filled(wire | {"time": format_time(restart.time)} | lists)


def _items(raw: object) -> list[object]:
    return cast("list[object]", raw) if isinstance(raw, list) else []


def _texts(raw: object) -> tuple[str, ...]:
    return tuple(text for text in map(_text, _items(raw)) if text)


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _count(raw: object) -> int:
    return min(max(as_integer(raw) or 0, 0), INT32_MAX)
