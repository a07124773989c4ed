"""Rate limiters of retries, after client-go's; pure, the time is an argument. Their numbers are in `mpiop.backoff`."""

import math
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from mpiop.backoff import SYNC, Backoff
from mpiop.token_bucket import TokenBuckets

KeyT = TypeVar("KeyT", bound=Hashable)
KeyT_contra = TypeVar("KeyT_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[KeyT_contra]):
    """Computes the delay of each retry."""

    def delay(self, key: KeyT_contra, now: float) -> float:
        """Count a retry of `key` at `now` (seconds, monotonic) and return its delay in seconds."""
        ...

    def forget(self, key: KeyT_contra) -> None:
        """Reset the retries of `key`."""
        ...

    def retries(self, key: KeyT_contra) -> int:
        """Return the number of retries of `key` since its last `forget`."""
        ...


class FailureLimiter(RateLimiter[KeyT]):
    """Backs off from each key by its own failures."""

    def __init__(self, backoff: Backoff) -> None:
        """Take delays from `backoff`."""
        self._backoff = backoff
        self._failures: dict[KeyT, int] = {}

    def delay(self, key: KeyT, now: float) -> float:
        """Return the delay after this failure."""
        del now  # depends on the key's own history alone
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return self._backoff.delay_seconds(failures)

    def forget(self, key: KeyT) -> None:
        """Reset the failures of `key`."""
        self._failures.pop(key, None)

    def retries(self, key: KeyT) -> int:
        """Return the number of failures of `key` since its last `forget`."""
        return self._failures.get(key, 0)


class BucketLimiter(RateLimiter[KeyT]):
    """Takes a token for each retry from the bucket of the key's namespace, so that failures in one do not delay retries in another."""

    def __init__(self, buckets: TokenBuckets, namespace_of: Callable[[KeyT], Hashable], most_seconds: float = math.inf) -> None:
        """Take tokens from `buckets`; no delay is longer than `most_seconds`."""
        self._buckets = buckets
        self._namespace_of = namespace_of
        self._most_seconds = most_seconds

    def delay(self, key: KeyT, now: float) -> float:
        """Return the seconds until there is a token for this retry."""
        return self._buckets.of(self._namespace_of(key), now).reserve(now, self._most_seconds)

    def forget(self, key: KeyT) -> None:
        """Do nothing: a taken token is not returned."""

    def retries(self, key: KeyT) -> int:
        """Return 0: the bucket does not count by key."""
        del key
        return 0


class MaxOf(RateLimiter[KeyT]):
    """Uses the longest delay of several limiters."""

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


def retry_limiter(rate: float = 10.0, burst: int = 100, namespace_of: Callable[[KeyT], Hashable] = lambda _key: "") -> MaxOf[KeyT]:
    """Return the usual limiter: per key 5 ms doubling up to 60 s, and per namespace `rate` retries a second, `burst` at once."""
    return MaxOf(FailureLimiter[KeyT](SYNC), BucketLimiter[KeyT](TokenBuckets(rate, burst), namespace_of, SYNC.most_seconds))
