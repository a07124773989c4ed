"""What is computed of samples that were taken by turns: medians, their ratio, and how sure that is."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two medians.

    Attributes:
        low: Lower end of its interval; a single pair of samples has none, and both ends are the value.
        high: Upper end.
    """

    value: float
    low: float
    high: float


def percentile(samples: Sequence[float], share: float) -> float:
    """Return the least sample that is not below that share of all of them, which is above 0 and at most 1."""
    return sorted(samples)[math.ceil(share * len(samples)) - 1]


def sum_of(samples: Mapping[str, float], name: str) -> float:
    """Return the sum of all series of a metric, by series as `samples_of` returns them."""
    return sum(value for series, value in samples.items() if series.partition("{")[0] == name)


def ratio_of_medians(samples: Sequence[float], base: Sequence[float]) -> Ratio | None:
    """Return the median of `samples` by that of `base`, with a bootstrap interval; None where a median of the base is 0.

    Rounds are drawn as a whole: the two samples of a round were taken minutes apart, on a machine that was equally fast.
    """
    pairs = list(zip(samples, base, strict=True))
    if (value := _ratio(pairs)) is None:
        return None
    chance = random.Random(len(pairs))  # noqa: S311 - the same samples have the same interval
    drawn = (_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    ordered = sorted(each for each in drawn if each is not None)
    tail = (1 - CONFIDENCE) / 2
    return Ratio(value, ordered[int(tail * len(ordered))], ordered[int((1 - tail) * len(ordered))])


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    base = median(of_base for _, of_base in pairs)
    return median(sample for sample, _ in pairs) / base if base else None
