"""Plans: what is done to which requests."""

from dataclasses import dataclass, field
from typing import TypeVar

from faults.meaning import Target
from faults.proxy import Fault
from faults.stream import EventFault

ALWAYS = 1_000_000
FaultT = TypeVar("FaultT")


@dataclass(slots=True)
class Faults:
    """Do something to the requests that match.

    Attributes:
        verbs: Verbs that match; empty are all.
        resources: Resources that match; empty are all.
        target: The first request that matches, where verb and resource are not enough; None is any.
        times: How many requests of the target's meaning, from it on, are hit.
        requests: What is done to a request.
        events: What is done to an event of a watch.
        hits: How often something was done.
    """

    verbs: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    target: Target | None = None
    times: int = 1
    requests: Fault | None = None
    events: EventFault | None = None
    hits: int = field(default=0, init=False)
    is_over: bool = field(default=False, init=False)

    def fault_of(self, target: Target) -> Fault | None:
        return self._taken(self.requests, target)

    def event_fault_of(self, target: Target) -> EventFault | None:
        return self._taken(self.events, target)

    def _taken(self, fault: FaultT | None, target: Target) -> FaultT | None:
        if fault is None or not self._matches(target):
            return None
        self.hits += 1
        return fault

    def _matches(self, target: Target) -> bool:
        if self.is_over or self.hits >= self.times:
            return False
        if self.target is not None:
            return target.meaning == self.target.meaning and self.target.ordinal <= target.ordinal
        meaning = target.meaning
        return (not self.verbs or meaning.verb in self.verbs) and (not self.resources or meaning.resource in self.resources)


@dataclass(slots=True)
class Several:
    """Ask several plans, the first that has something to do first."""

    plans: list[Faults]

    @property
    def hits(self) -> int:
        """Return the hits of the last plan: those before it prepare for it."""
        return self.plans[-1].hits

    def fault_of(self, target: Target) -> Fault | None:
        return next((fault for plan in self.plans if (fault := plan.fault_of(target)) is not None), None)

    def event_fault_of(self, target: Target) -> EventFault | None:
        return next((fault for plan in self.plans if (fault := plan.event_fault_of(target)) is not None), None)
