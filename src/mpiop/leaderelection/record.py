"""The record in a Lease, and when it was seen to change."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mpiop.clock import Clock
from mpiop.kube.objects import Object


def format_micro_time(moment: datetime) -> str:
    """Render `moment` (aware) as the `metav1.MicroTime` of a Lease."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def spec_of(lease: Object) -> Mapping[str, Any]:
    """Return the spec of `lease`; null or absent counts as empty."""
    return lease.get("spec") or {}


def holder_of(lease: Object) -> str:
    """Return the holder of `lease`; "" if there is none."""
    holder = spec_of(lease).get("holderIdentity")
    return holder if isinstance(holder, str) else ""


def held(lease: Object, identity: str, duration_seconds: float, now: datetime) -> Object:
    """Return `lease` as `identity` would write it to hold it from `now` on.

    Labels, resourceVersion, uid and fields of the spec that we do not know stay. A takeover has a new acquireTime and one transition more;
    a renewal keeps both (L63).
    """
    old = spec_of(lease)
    time = format_micro_time(now)
    taken = {
        "holderIdentity": identity,
        "leaseDurationSeconds": int(duration_seconds),
        "acquireTime": time,
        "renewTime": time,
        "leaseTransitions": _transitions(old) + 1,
    }
    if holder_of(lease) == identity:
        taken["leaseTransitions"] = _transitions(old)
        taken["acquireTime"] = old.get("acquireTime") or time
    return {**lease, "spec": {**old, **taken}}


def released(lease: Object, now: datetime) -> Object:
    """Return `lease` without a holder, so that anyone may take it at once (L65)."""
    time = format_micro_time(now)
    given_up = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,  # the API server allows no 0
        "acquireTime": time,
        "renewTime": time,
        "leaseTransitions": _transitions(spec_of(lease)),
    }
    return {**lease, "spec": {**spec_of(lease), **given_up}}


def _transitions(spec: Mapping[str, Any]) -> int:
    transitions = spec.get("leaseTransitions")
    return transitions if isinstance(transitions, int) and transitions >= 0 else 0


class Observation:
    """Since when the record of the Lease has been as it is, by our own clock (L61).

    It counts from the moment that the record reached us, so it never ends before the holder's own wait, which began earlier.
    """

    def __init__(self, clock: Clock, *, fallback_duration_seconds: float) -> None:
        """Start without having seen a record; `fallback_duration_seconds` counts for a record without its own."""
        self._clock = clock
        self._fallback_duration_seconds = fallback_duration_seconds
        self._spec: Mapping[str, Any] | None = None
        self._since = clock.monotonic()

    def note(self, lease: Object) -> bool:
        """Note the current record; return whether it differs from the one before."""
        spec = spec_of(lease)
        if spec == self._spec:
            return False
        self._spec = spec
        self._since = self._clock.monotonic()
        return True

    def remaining_seconds(self) -> float:
        """Return how long the record still counts if it does not change: 0 or less when it is over, infinite when none was seen."""
        if self._spec is None:
            return math.inf
        return self._since + self._duration_seconds() - self._clock.monotonic()

    def _duration_seconds(self) -> float:
        duration = self._spec.get("leaseDurationSeconds") if self._spec else None
        if isinstance(duration, (int, float)) and duration > 0:
            return float(duration)
        return self._fallback_duration_seconds
