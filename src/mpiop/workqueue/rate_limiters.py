"""How long a key that failed must wait: pure bookkeeping; the time is an argument."""

from collections.abc import Hashable
from typing import Protocol, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
KeyT_contra = TypeVar("KeyT_contra", bound=Hashable, contravariant=True)

BASE_DELAY_SECONDS = 0.005
MAX_DELAY_SECONDS = 1000.0
_MAX_DOUBLINGS = 64
"""Beyond it every delay is at its cap, and a float would overflow some time later."""


class RateLimiter(Protocol[KeyT_contra]):
    """Decides on the delay of each retry."""

    def delay(self, key: KeyT_contra, now: float) -> float:
        """Count one more retry of `key` at `now` (seconds, monotonic) and return the seconds it must wait."""
        ...

    def forget(self, key: KeyT_contra) -> None:
        """Let the next retry of `key` be its first."""
        ...

    def retries(self, key: KeyT_contra) -> int:
        """Return how often `key` was retried since it was last forgotten."""
        ...


class ExponentialBackoff(RateLimiter[KeyT]):
    """Twice the delay with each failure of the same key, up to a cap."""

    def __init__(self, base_seconds: float = BASE_DELAY_SECONDS, cap_seconds: float = MAX_DELAY_SECONDS) -> None:
        """Begin with `base_seconds`, end with `cap_seconds`."""
        self._base_seconds = base_seconds
        self._cap_seconds = cap_seconds
        self._failures: dict[KeyT, int] = {}

    def delay(self, key: KeyT, now: float) -> float:
        """Return `base · 2ⁿ` for the n-th failure before this one, at most the cap."""
        del now  # depends on the key's own history alone
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        doublings = min(failures, _MAX_DOUBLINGS)
        return min(self._base_seconds * 2.0**doublings, self._cap_seconds)

    def forget(self, key: KeyT) -> None:
        """Drop what is known of `key`."""
        self._failures.pop(key, None)

    def retries(self, key: KeyT) -> int:
        """Return the failures of `key` since it was last forgotten."""
        return self._failures.get(key, 0)


class TokenBucket(RateLimiter[KeyT]):
    """At most `burst` retries at once and `rate` a second in the long run, whatever their keys."""

    def __init__(self, rate: float, burst: int) -> None:
        """Allow `rate` retries a second (> 0), with a full bucket of `burst` (≥ 1) to begin with.

        Raises:
            ValueError: One of them is too small to ever let a retry through.
        """
        if rate <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs a rate above 0 and a burst of at least 1, got {rate} and {burst}")
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def delay(self, key: KeyT, now: float) -> float:
        """Take a token, which may be one that only comes later, and return the seconds until it is there."""
        del key  # one bucket for all
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def forget(self, key: KeyT) -> None:
        """Do nothing: a token once taken is spent."""

    def retries(self, key: KeyT) -> int:
        """Return 0: the bucket does not know keys apart."""
        del key
        return 0


class MaxOf(RateLimiter[KeyT]):
    """The longest delay that any of several limiters asks for."""

    def __init__(self, *limiters: RateLimiter[KeyT]) -> None:
        """Ask each of `limiters` (at least one) each time."""
        self._limiters = limiters

    def delay(self, key: KeyT, now: float) -> float:
        """Return the longest of the delays; every limiter counts the retry."""
        return max([limiter.delay(key, now) for limiter in self._limiters])

    def forget(self, key: KeyT) -> None:
        """Let every limiter forget `key`."""
        for limiter in self._limiters:
            limiter.forget(key)

    def retries(self, key: KeyT) -> int:
        """Return the highest count among the limiters."""
        return max([limiter.retries(key) for limiter in self._limiters])


def retry_limiter(rate: float = 10.0, burst: int = 100) -> MaxOf[KeyT]:
    """Return the usual limiter: per key 5 ms doubling up to 1000 s, and `rate` retries a second with `burst` for all keys together."""
    return MaxOf(ExponentialBackoff[KeyT](), TokenBucket[KeyT](rate, burst))
