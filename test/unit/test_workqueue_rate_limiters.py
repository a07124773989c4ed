"""Invariants Q46 and Q47: delays of retries, as pure arithmetic."""

import pytest

from mpiop.backoff import SYNC, Backoff
from mpiop.token_bucket import TokenBuckets
from mpiop.workqueue import BucketLimiter, FailureLimiter, MaxOf, RateLimiter, retry_limiter


def test_Q46_the_delay_doubles_up_to_the_cap() -> None:
    limiter = FailureLimiter[str](SYNC)
    assert [limiter.delay("a", 0.0) for _ in range(5)] == [0.005, 0.01, 0.02, 0.04, 0.08]
    for _ in range(8):
        limiter.delay("a", 0.0)
    assert limiter.delay("a", 0.0) == pytest.approx(0.005 * 2**13)
    assert limiter.delay("a", 0.0) == 60.0


def test_Q46_the_delay_stays_right_for_thousands_of_failures() -> None:
    limiter = FailureLimiter[str](SYNC)
    delays = [limiter.delay("a", 0.0) for _ in range(5000)]
    assert set(delays[14:]) == {60.0}
    assert limiter.retries("a") == 5000


def test_Q46_forget_resets_only_that_key() -> None:
    limiter = FailureLimiter[str](Backoff(1.0, 10.0))
    for key in "aabb":
        limiter.delay(key, 0.0)
    limiter.forget("a")
    limiter.forget("never seen")
    assert (limiter.delay("a", 0.0), limiter.delay("b", 0.0)) == (1.0, 4.0)
    assert (limiter.retries("a"), limiter.retries("b")) == (1, 3)


def test_Q47_retries_of_a_namespace_take_from_one_bucket() -> None:
    limiter = BucketLimiter[str](TokenBuckets(10, 3), str.isupper)
    assert [limiter.delay(key, 100.0) for key in "abcab"] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert [limiter.delay(key, 100.0) for key in "ABCA"] == pytest.approx([0, 0, 0, 0.1])
    limiter.forget("a")
    assert limiter.delay("a", 100.0) == pytest.approx(0.3), "a token once taken is spent"
    assert limiter.retries("a") == 0


def test_Q47_no_delay_is_longer_than_the_cap_and_what_is_beyond_it_is_not_owed() -> None:
    limiter = BucketLimiter[str](TokenBuckets(1, 1), len, most_seconds=60)
    assert max([limiter.delay("a", 0.0) for _ in range(1000)]) == 60
    assert limiter.delay("b", 61.0) == 0


def test_Q47_the_overall_delay_is_the_longest_and_retries_are_those_of_the_key() -> None:
    limiter = MaxOf[str](FailureLimiter(Backoff(1.0, 100.0)), BucketLimiter(TokenBuckets(0.5, 2), lambda _key: ""))
    assert [limiter.delay("a", 0.0) for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]
    assert limiter.delay("b", 0.0) == 6.0  # its own would be 1 s, but five tokens are gone
    assert (limiter.retries("a"), limiter.retries("b")) == (4, 1)
    limiter.forget("a")
    assert limiter.retries("a") == 0


def test_Q47_the_usual_limiter_lets_a_hundred_first_failures_through_at_once() -> None:
    limiter: RateLimiter[str] = retry_limiter()
    delays = [limiter.delay(str(number), 0.0) for number in range(102)]
    assert delays[:100] == [0.005] * 100
    assert delays[100:] == pytest.approx([0.1, 0.2])
