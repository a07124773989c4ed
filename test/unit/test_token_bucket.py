"""Invariant Q47: the bucket that bounds retries, requests and events."""

import pytest

from mpiop.token_bucket import TokenBucket, TokenBuckets


def test_Q47_the_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3)
    assert [bucket.reserve(100.0) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert bucket.reserve(100.25) == pytest.approx(0.05)
    assert [bucket.reserve(1000.0) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_Q47_a_clock_that_stands_still_or_goes_back_fills_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert [bucket.reserve(moment) for moment in (50.0, 50.0, 40.0)] == pytest.approx([0, 1, 2])


def test_who_does_not_wait_gets_what_is_there_and_owes_nothing() -> None:
    bucket = TokenBucket(rate=0.5, burst=2)
    taken = [(moment, bucket.take(moment)) for moment in (0.0, 0.0, 0.0, 1.5, 2.0, 2.0, 1000.0, 1000.0, 1000.0)]
    assert [moment for moment, was_there in taken if was_there] == [0.0, 0.0, 2.0, 1000.0, 1000.0]


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_Q47_a_bucket_that_never_fills_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="a token bucket needs"):
        TokenBucket(rate, burst)


def test_Q47_the_bucket_of_a_namespace_is_forgotten_once_it_is_full() -> None:
    buckets = TokenBuckets(1, 2)
    for second in range(100):
        buckets.of(second, float(second)).reserve(float(second))
        assert len(vars(buckets)["_buckets"]) <= 5
    assert [buckets.of(99, 99.5).reserve(99.5) for _ in range(2)] == pytest.approx([0, 0.5])
