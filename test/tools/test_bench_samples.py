"""Medians that were measured by turns, and their ratio."""

import pytest

from bench.samples import percentile, ratio_of_medians, sum_of


def test_the_percentile_is_a_sample() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert percentile([*range(100, 0, -1)], 0.99) == 99
    assert percentile([1.0], 0.01) == 1.0


def test_a_metric_is_the_sum_of_its_series() -> None:
    samples = {'listed{resource="pods"}': 2.0, 'listed{resource="jobs"}': 3.0, 'listed_total{resource="jobs"}': 5.0, "process": 7.0}

    assert (sum_of(samples, "listed"), sum_of(samples, "process"), sum_of(samples, "other")) == (5.0, 7.0, 0.0)


def test_the_interval_holds_the_ratio_and_is_narrow_when_samples_are_alike() -> None:
    noise = [0.01 * (number % 5) for number in range(20)]
    ratio = ratio_of_medians([1.0 + each for each in noise], [2.0 + each for each in noise])

    assert ratio is not None
    assert 0.5 <= ratio.low <= ratio.value <= ratio.high <= 0.52


SLOW = [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("samples", "base", "low", "value", "high"),
    [
        pytest.param([1.0, 1.0, 1.0, 3.0, 3.0], [1.0] * 5, 1.0, 1.0, 3.0, id="it is wide when samples differ"),
        pytest.param([0.8 * each for each in SLOW], SLOW, 0.8, 0.8, 0.8, id="a machine that gets slow hurts both of a round"),
        pytest.param([1.0, 9.0, 2.0], [4.0, 3.0, 100.0], 0.02, 0.5, 3.0, id="the ratio is that of the medians"),
        pytest.param([3.0], [2.0], 1.5, 1.5, 1.5, id="a single round has none"),
    ],
)
def test_the_interval(samples: list[float], base: list[float], low: float, value: float, high: float) -> None:
    ratio = ratio_of_medians(samples, base)

    assert ratio is not None
    assert [ratio.low, ratio.value, ratio.high] == pytest.approx([low, value, high])


def test_the_same_samples_have_the_same_interval() -> None:
    samples, base = [1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 2.0, 1.0]

    assert ratio_of_medians(samples, base) == ratio_of_medians(samples, base)


def test_nothing_is_divided_by_nothing() -> None:
    assert ratio_of_medians([1.0, 1.0, 1.0], [0.0, 0.0, 5.0]) is None
