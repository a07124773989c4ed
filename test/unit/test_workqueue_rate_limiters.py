"""Invariants Q46 and Q47: delays of retries, as pure arithmetic."""

import pytest

from mpiop.workqueue import ExponentialBackoff, MaxOf, RateLimiter, TokenBucket, retry_limiter


def test_Q46_the_delay_doubles_up_to_the_cap() -> None:
    backoff = ExponentialBackoff[str]()
    assert [backoff.delay("a", 0.0) for _ in range(5)] == [0.005, 0.01, 0.02, 0.04, 0.08]
    for _ in range(12):
        backoff.delay("a", 0.0)
    assert backoff.delay("a", 0.0) == pytest.approx(0.005 * 2**17)
    assert backoff.delay("a", 0.0) == 1000.0


def test_Q46_the_delay_stays_right_for_thousands_of_failures() -> None:
    backoff = ExponentialBackoff[str]()
    delays = [backoff.delay("a", 0.0) for _ in range(5000)]
    assert set(delays[18:]) == {1000.0}
    assert backoff.retries("a") == 5000


def test_Q46_forget_resets_only_that_key() -> None:
    backoff = ExponentialBackoff[str](1.0, 10.0)
    for key in "aabb":
        backoff.delay(key, 0.0)
    backoff.forget("a")
    backoff.forget("never seen")
    assert (backoff.delay("a", 0.0), backoff.delay("b", 0.0)) == (1.0, 4.0)
    assert (backoff.retries("a"), backoff.retries("b")) == (1, 3)


def test_Q47_the_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket[str](rate=10, burst=3)
    assert [bucket.delay("a", 100.0) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert bucket.delay("a", 100.25) == pytest.approx(0.05)
    assert [bucket.delay("a", 1000.0) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    assert bucket.retries("a") == 0


def test_Q47_a_clock_that_stands_still_or_goes_back_fills_nothing() -> None:
    bucket = TokenBucket[str](rate=1, burst=1)
    assert [bucket.delay("a", moment) for moment in (50.0, 50.0, 40.0)] == pytest.approx([0, 1, 2])


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_Q47_a_bucket_that_never_fills_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="a token bucket needs"):
        TokenBucket[str](rate, burst)


def test_Q47_the_overall_delay_is_the_longest_and_retries_are_those_of_the_key() -> None:
    limiter = MaxOf[str](ExponentialBackoff(1.0, 100.0), TokenBucket(rate=0.5, burst=2))
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
