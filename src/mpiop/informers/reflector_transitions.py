"""The states of a reflector and what follows what, as one table; no I/O and no clock.

    LIST ──DONE──► WATCH ──EXPIRED, FAILED, FRUITLESS──► (pause) START
      ▲               ▲
      │ FAILED,       │ DONE: the bookmark that ends the initial events
      │ FRUITLESS     │
      └─── STREAM ────┘

START is STREAM, or LIST when the server has shown that it does not know watch-lists. What is not drawn repeats itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from mpiop.kube.errors import StatusError, TransportError

FRUITLESS_WATCHES = 2
"""So many watches in a row that broke off and brought nothing are not trusted, and a list is.

Something in between may not let events through. Or etcd was restored from a backup: to a watch from a version that is yet to come, the
server sends nothing at all until it gets there; a list from that version it refuses, and then we ask for the newest."""

TOO_MANY_REQUESTS = 429
INTERNAL_ERROR = 500
UNAVAILABLE = frozenset({502, 503, 504})
"""What a load balancer, or a server on its way up or down, answers for a while."""


class Step(Enum):
    """What a reflector does."""

    START = auto()
    STREAM = auto()
    LIST = auto()
    WATCH = auto()


class Ending(Enum):
    """How a step ended."""

    DONE = auto()
    """As it should, or with something gained."""
    SHORT = auto()
    """As before, but soon after it began: a proxy may end each watch after its first event."""
    INTERRUPTED = auto()
    """By something temporary; the reflector can continue from the version that it knows."""
    FRUITLESS = auto()
    """As before, but several times in a row with nothing gained."""
    EXPIRED = auto()
    """The server does not have the version that we asked for: too old, or too new for it."""
    FAILED = auto()
    """By anything else."""


@dataclass(frozen=True, slots=True)
class Move:
    """What comes next, and whether a pause comes before."""

    step: Step
    pause: bool = False


_AGAIN = Move(Step.START, pause=True)

TRANSITIONS: Mapping[tuple[Step, Ending], Move] = MappingProxyType({
    (Step.LIST, Ending.DONE): Move(Step.WATCH),
    (Step.LIST, Ending.EXPIRED): Move(Step.LIST),  # now at ""; a second time it is FAILED
    (Step.LIST, Ending.FAILED): _AGAIN,
    (Step.STREAM, Ending.DONE): Move(Step.STREAM, pause=True),  # ended by the server before the bookmark
    (Step.STREAM, Ending.INTERRUPTED): Move(Step.STREAM, pause=True),
    (Step.STREAM, Ending.FRUITLESS): Move(Step.LIST),
    (Step.STREAM, Ending.EXPIRED): Move(Step.STREAM),  # now at ""; a second time it is FAILED
    (Step.STREAM, Ending.FAILED): Move(Step.LIST),
    (Step.WATCH, Ending.DONE): Move(Step.WATCH),
    (Step.WATCH, Ending.SHORT): Move(Step.WATCH, pause=True),
    (Step.WATCH, Ending.INTERRUPTED): Move(Step.WATCH, pause=True),
    (Step.WATCH, Ending.FRUITLESS): _AGAIN,
    (Step.WATCH, Ending.EXPIRED): _AGAIN,
    (Step.WATCH, Ending.FAILED): _AGAIN,
})


def is_unavailable_version(error: Exception) -> bool:
    """Return whether the server refused because of the resourceVersion that we asked for."""
    return isinstance(error, StatusError) and (error.is_expired or error.is_too_large_resource_version)


def list_ending(error: Exception, *, at_newest: bool) -> Ending:
    """Return how a list ended that raised `error`; `at_newest` means that it asked for no version."""
    return Ending.EXPIRED if is_unavailable_version(error) and not at_newest else Ending.FAILED


def stream_ending(error: Exception, *, at_newest: bool) -> Ending:
    """Return how a watch-list ended that raised `error` before its initial events were complete."""
    if isinstance(error, TransportError) or (isinstance(error, StatusError) and error.code == TOO_MANY_REQUESTS):
        return Ending.INTERRUPTED
    return list_ending(error, at_newest=at_newest)


def watch_ending(error: Exception, *, has_gained: bool, retry_internal: bool) -> Ending:
    """Return how a watch ended that raised `error`.

    Args:
        error: What it raised.
        has_gained: Whether it brought an event or bookmark before.
        retry_internal: Whether an internal error of the server may still be taken for one that passes.
    """
    if isinstance(error, TransportError):
        return Ending.DONE if has_gained else Ending.INTERRUPTED
    if not isinstance(error, StatusError):
        return Ending.FAILED
    if is_unavailable_version(error):
        return Ending.EXPIRED
    passes = error.code == TOO_MANY_REQUESTS or error.code in UNAVAILABLE or (error.code == INTERNAL_ERROR and retry_internal)
    return Ending.INTERRUPTED if passes else Ending.FAILED
