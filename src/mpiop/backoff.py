"""How long to wait before each retry: the rule, and all policies of the operator next to each other."""

import math
from dataclasses import dataclass
from typing import Final

_MOST_DOUBLINGS: Final = 64
"""Beyond it every delay is at its cap, and a float would overflow some time later."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with each failure in a row.

    Attributes:
        first_seconds: Delay after the first failure.
        most_seconds: Cap, to which jitter is added.
        factor: By which each failure multiplies the delay; 1 keeps it constant.
        jitter: Largest part of a delay that chance adds to it, so that clients do not all retry at the same moment.
    """

    first_seconds: float
    most_seconds: float = math.inf
    factor: float = 2.0
    jitter: float = 0.0

    def delay_seconds(self, failures: int, chance: float = 0.0) -> float:
        """Return the delay after a failure.

        Args:
            failures: How many failed before it.
            chance: A random number from 0 to 1, for the jitter.
        """
        delay = min(self.first_seconds * self.factor ** min(failures, _MOST_DOUBLINGS), self.most_seconds)
        return delay * (1.0 + self.jitter * chance)

    def total_seconds(self, retries: int) -> float:
        """Return the time from the first failure to a retry, without jitter, if each attempt fails at once."""
        return sum(self.delay_seconds(failures) for failures in range(retries))


SYNC: Final = Backoff(0.005, 60.0)
"""Of the failed syncs of a job; the retries of a namespace are limited by a token bucket too."""
RESTORE: Final = Backoff(0.25, 60.0)
"""Of a write that somebody undoes: eight in the first minute, then one a minute."""
REFLECTOR: Final = Backoff(0.8, 30.0, jitter=1.0)
"""Of lists and watches."""
RESET_READ: Final = Backoff(0.05)
"""Of a read whose connection ended before an answer began."""
EVENT: Final = Backoff(1.0, 10.0)
"""Of an Event that the API server did not take."""
SIGN: Final = Backoff(5.0, 30.0)
"""Of the question why a Pod waits, while no event answers it."""
REJECTED_WORKER: Final = Backoff(10.0, 300.0)
"""Age of a worker that a kubelet rejected, before the next Pod of its name is created."""


def every(seconds: float) -> Backoff:
    """Return the policy of a period that flags set: retries are from one to two periods apart."""
    return Backoff(seconds, factor=1.0, jitter=1.0)
