"""What a row of the table of conditions consists of: see `constants.CONDITION_TYPES`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class AtEnd(Enum):
    """What the end of its job does to a condition."""

    STAYS = auto()
    TURNS_FALSE = auto()
    """Its status alone: reason and times stay."""
    IS_RESOLVED = auto()
    """It names the problem of a job, and turns False with that: because of `Resolved`, or at a failure of `JobFailed`."""
    IS_REMOVED = auto()


class State(Enum):
    """What `kubectl get mpijobs` shows as the state of a job while a condition is True."""

    NOTHING = auto()
    TYPE = auto()
    REASON = auto()
    """Before the type of any other condition."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of a condition is reported by.

    Attributes:
        event: Type of the event, `Normal` or `Warning`; "" records none.
        log: Phrase in the operator's log; "" logs nothing. With a warning, reason and message follow.
        event_reason: Of the event; "" is the condition's.
        event_message: Of the event, with the job as `{job}`; "" is the condition's.
    """

    event: str = ""
    log: str = ""
    event_reason: str = ""
    event_message: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """When a condition has a status and a reason, for the reference page; the reason `…` is any cause of a problem."""

    status: str
    reason: str
    when: str


@dataclass(frozen=True, slots=True)
class ConditionType:
    """A condition of an MPIJob.

    Attributes:
        type: Its name.
        meanings: Its rows of the reference page.
        changes: By the new status, or by the new reason, how a change is reported.
        at_end: What the end of the job does to it.
        rank: Of the conditions that are True, the first by rank gives the summary its state, and the first that `explains` its message.
        state: What the summary shows as the state of the job.
        explains: Whether its message is the summary's.
        names_cause: Whether its reason is the cause of a problem: events leave out the advice.
    """

    type: str
    meanings: tuple[Meaning, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict[str, Change])
    at_end: AtEnd = AtEnd.STAYS
    rank: int = 0
    state: State = State.NOTHING
    explains: bool = False
    names_cause: bool = False

    def change(self, status: str, reason: str) -> Change:
        """Return how a change to this status and reason is reported."""
        return self.changes.get(status) or self.changes.get(reason) or Change()
