"""A bound on how often something happens; pure bookkeeping, the time is an argument."""

import math
from collections.abc import Hashable


class TokenBucket:
    """`burst` tokens at most, `rate` new ones a second: so many times at once, and so many times a second in the long run."""

    def __init__(self, rate: float, burst: int) -> None:
        """Begin full; `rate` is above 0, `burst` at least 1.

        Raises:
            ValueError: One of them is too small to ever let anything through.
        """
        if rate <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs a rate above 0 and a burst of at least 1, got {rate} and {burst}")
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at = -math.inf

    def reserve(self, now: float, most_seconds: float = math.inf) -> float:
        """Take a token at `now` (seconds, monotonic), be it one that only comes later; return the seconds until it is there.

        Nobody waits longer than `most_seconds`: what is taken beyond that is not owed.
        """
        self._fill(now)
        self._tokens = max(self._tokens - 1, -most_seconds * self._rate)
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float, *, kept: int = 0) -> bool:
        """Take a token at `now` (seconds, monotonic) if more than `kept` are there; return whether they were."""
        self._fill(now)
        if self._tokens < kept + 1:
            return False
        self._tokens -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Return whether no token is missing at `now` (seconds, monotonic)."""
        self._fill(now)
        return self._tokens == self._burst

    def _fill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = now


class TokenBuckets:
    """A bucket for each namespace, so that none takes the tokens of another."""

    def __init__(self, rate: float, burst: int) -> None:
        """Let each be a `TokenBucket(rate, burst)`."""
        self._rate = rate
        self._burst = burst
        self._buckets: dict[Hashable, TokenBucket] = {}
        self._most = 0

    def of(self, namespace: Hashable, now: float) -> TokenBucket:
        """Return the bucket of a namespace at `now` (seconds, monotonic)."""
        if namespace not in self._buckets:
            if len(self._buckets) >= self._most:
                # A full bucket is as a new one, so memory is bounded by the namespaces that have taken tokens lately.
                self._buckets = {other: bucket for other, bucket in self._buckets.items() if not bucket.is_full(now)}
                self._most = 2 * len(self._buckets) + 1
            self._buckets[namespace] = TokenBucket(self._rate, self._burst)
        return self._buckets[namespace]
