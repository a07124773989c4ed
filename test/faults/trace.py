"""What passed through the proxy, as evidence for the oracle and for people."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from faults.meaning import Target


@dataclass(slots=True)
class Entry:
    """One request.

    Attributes:
        at: Seconds since the trace began.
        target: What it was.
        fault: What was done to it; "" when nothing.
        code: What the server answered; 0 when it was not asked or has not answered.
        delivered: Whether the whole answer went to the operator.
        answer: Of the answer to a write, what the oracle needs: metadata and, of an MPIJob, the status.
    """

    at: float
    target: Target
    fault: str = ""
    code: int = 0
    delivered: bool = False
    answer: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def took_effect(self) -> bool:
        """Tell whether it is a write that the server carried out."""
        return self.target.meaning.is_write and 200 <= self.code < 300

    def __str__(self) -> str:
        """Render as one line."""
        code = str(self.code or "-")
        lost = "" if self.delivered else " (answer not delivered)"
        fault = f"  <== {self.fault}" if self.fault else ""
        return f"{self.at:8.3f} {code:>4} {self.target}{lost}{fault}"


class Trace:
    """All requests of a run, in order, over every process of the operator in it."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self.entries: list[Entry] = []

    def begin(self, target: Target) -> Entry:
        """Note that a request came."""
        entry = Entry(time.monotonic() - self._begun, target)
        self.entries.append(entry)
        return entry

    def effects(self, *verbs: str) -> Counter[str]:
        """Count the writes of these verbs that took effect, by meaning; Leases and Events are not a job's.

        An object is deleted once, however often that is asked for while it goes.
        """
        counted = Counter[str]()
        deleted = set[str]()
        for entry in self._of_jobs():
            meaning, uid = entry.target.meaning, entry.answer.get("uid", "")
            if not entry.took_effect or meaning.verb not in verbs or (meaning.verb == "delete" and uid in deleted):
                continue
            counted[str(meaning)] += 1
            if meaning.verb == "delete" and uid:
                deleted.add(uid)
        return counted

    def statuses(self) -> list[dict[str, Any]]:
        """Return the statuses of the MPIJob in the order in which the server stored them, each with its UID and version."""
        stored = [e.answer for e in self._of_jobs() if e.took_effect and e.target.meaning.resource == "mpijobs"]
        return sorted(stored, key=lambda answer: int(answer.get("resourceVersion", 0)))

    def most_in_a_second(self) -> int:
        """Return how many requests came within one second at most."""
        times = [entry.at for entry in self.entries if entry.target.meaning.verb != "event"]
        return max((sum(1 for other in times if at <= other < at + 1) for at in times), default=0)

    def _of_jobs(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.target.meaning.resource not in {"leases", "events"})

    def __str__(self) -> str:
        """Render as lines."""
        return "\n".join(map(str, self.entries))
