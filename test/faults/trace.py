"""What passed through the proxy, as evidence for the oracle and for people."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from faults.meaning import Target
from mpiop.api import capabilities

ERROR = 500
"""From this code on the server does not know what became of a write: it may have asked etcd."""


@dataclass(slots=True)
class Entry:
    """One request.

    Attributes:
        at: Seconds since the trace began.
        target: What it was.
        fault: What was done to it; "" when nothing.
        was_sent: Whether the server was asked.
        code: What the server answered; 0 when it was not asked or has not answered.
        delivered: Whether the whole answer went to the operator.
        delivered_at: When, in seconds since the trace began.
        asked: The versions and UIDs that it named.
        answer: Of the answer, what the oracle needs: metadata after a write, an MPIJob's status, a Lease's holder, a list's version.
    """

    at: float
    target: Target
    fault: str = ""
    was_sent: bool = False
    code: int = 0
    delivered: bool = False
    delivered_at: float = 0.0
    asked: dict[str, str] = field(default_factory=dict[str, str])
    answer: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def took_effect(self) -> bool:
        """Return whether it is a write that the server carried out."""
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

    def now(self) -> float:
        """Return how many seconds ago the trace began."""
        return time.monotonic() - self._begun

    def since(self, moment: float) -> float:
        """Return a moment of `time.monotonic` in seconds since the trace began."""
        return moment - self._begun

    def begin(self, target: Target, asked: dict[str, str] | None = None) -> Entry:
        entry = Entry(self.now(), target, asked=asked or {})
        self.entries.append(entry)
        return entry

    def effects(self, *verbs: str) -> Counter[str]:
        """Count the writes of these verbs that took effect, by meaning; Leases, Events and what the operator offers are not a job's.

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

    def unknown(self) -> Counter[str]:
        """Count the writes that were sent to the server, that may or may not have taken effect, by meaning."""
        return Counter(
            str(e.target.meaning) for e in self._of_jobs() if e.target.meaning.is_write and e.was_sent and not 0 < e.code < ERROR
        )

    def statuses(self) -> list[dict[str, Any]]:
        """Return what was written of the MPIJob's status in the order in which the server stored it, each with its UID and version."""
        stored = [e.answer for e in self._of_jobs() if e.took_effect and "status" in e.answer]
        return sorted(stored, key=lambda answer: int(answer.get("resourceVersion", 0)))

    def most_in_a_second(self) -> int:
        """Return how many requests came within one second at most."""
        times = [entry.at for entry in self.entries if entry.target.meaning.verb != "event"]
        return max((sum(1 for other in times if at <= other < at + 1) for at in times), default=0)

    def _of_jobs(self) -> Iterator[Entry]:
        meanings = ((entry, entry.target.meaning) for entry in self.entries)
        return (entry for entry, meaning in meanings if meaning.resource not in {"leases", "events"} and meaning.name != capabilities.NAME)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))
