"""Decide what two sides of a cell show: B worse, B better, the same within the floor, or undecided.

Two questions have two measures. Whether there is a difference is tested with all that makes identical runs differ, the
repeats and the runs, and with Holm's adjustment over the cells. Whether a difference can be ruled out that matters is
read from the interval of the ratio: only if it lies within the floor are the two called the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from bench.schema import SMALLEST_POSITIVE
from collector.statistics import CONFIDENCE, Estimate, adjust_p_values
from collector.versus.noise import Component

Decision = Literal["worse", "better", "same", "undecided"]

MAX_REPEATS = 50
"""More repeats than this are not proposed: from here on each further digit costs a hundred times as many."""

STANDS_OUT = 4.0
"""A cell's own variance over that of all cells from which on it counts as the cell's own, with the few degrees of
freedom of its own history; below, it may be chance (one difference is as large in one of 20 cells that vary alike)."""

MAX_FLOOR = 0.30
"""Within a wider floor nothing is called the same: a bound of 30 % is what a benchmark suite had to accept to stop
false alarms (https://github.com/pytorch/benchmark/pull/1681), and no reader takes more for "the same"."""


@dataclass(frozen=True, kw_only=True)
class RatioTest:
    """The ratio of one cell, and what identical runs would show in its place."""

    ratio: Estimate
    """B over A, as the repeats of both know it."""
    noise: Component
    runs_share: float
    """How much of the noise between two runs is not in the spread that `ratio` rests on: 1 where each side is one run,
    half where one of them is several, 0 where both are."""
    own: Component | None = None
    """The cell's own noise between runs, where it is known."""
    least_floor: float = 0.0
    """The relative difference that the user takes for none: 0.05 is 5 %."""

    @property
    def log_floor(self) -> float:
        """The log ratio below which a difference means nothing: the floor of the noise, or the user's."""
        return max(self.noise.log_floor, math.log1p(self.least_floor))

    @property
    def excess(self) -> float:
        """The variance that the runs add to that of the ratio: the cell's own where it varies more than all cells do.

        Without it, identical runs in which one cell of 20 varies four times as much as the others would be called
        slower in one of eight cases (docs/decisions/0052-cells-of-their-own-noise.md).
        """
        own = 0.0 if self.own is None else self.own.excess
        return self.runs_share * max(self.noise.excess, own)

    @property
    def excess_error(self) -> float:
        """Half the variance of `excess`: that of the cell's own noise where the cell stands out."""
        stands_out = (
            self.own is not None
            and self.own.excess > self.noise.excess
            and self.own.log_variance > STANDS_OUT * self.noise.log_variance
        )
        noise = self.own if self.own is not None and stands_out else self.noise
        return self.runs_share**2 * noise.excess_error

    @property
    def with_noise(self) -> Estimate:
        """The ratio with the variance of repeats and runs, and Satterthwaite's degrees of freedom."""
        error, freedom = self.ratio.log_standard_error, self.ratio.degrees_of_freedom
        if error is None or freedom is None:
            return self.ratio
        return _add_noise(self.ratio.center, error**2, freedom, self)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is decided of one cell."""

    decision: Decision
    p_value: float
    p_adjusted: float


def judge(tests: Sequence[RatioTest]) -> list[Verdict]:
    """Return the verdict on each of a family of ratios, all with an interval."""
    p_values = [_require(test.with_noise.p_value) for test in tests]
    return [
        Verdict(decision=_decide(test, adjusted), p_value=p_value, p_adjusted=adjusted)
        for test, p_value, adjusted in zip(tests, p_values, adjust_p_values(p_values), strict=True)
    ]


def _decide(test: RatioTest, p_adjusted: float) -> Decision:
    distance, floor = math.log(test.ratio.center), test.log_floor
    if p_adjusted < 1 - CONFIDENCE and abs(distance) > floor:
        return "worse" if distance > 0 else "better"
    if floor > math.log1p(max(MAX_FLOOR, test.least_floor)):
        return "undecided"
    low, high = (math.log(limit) for limit in test.ratio.interval or (SMALLEST_POSITIVE, math.inf))
    return "same" if -floor <= low and high <= floor else "undecided"


def advise(test: RatioTest, num_tests: int) -> str:
    """Return what would decide a ratio, if it and its spread stay: so many repeats a side, or more runs."""
    if test.log_floor > math.log1p(max(MAX_FLOOR, test.least_floor)):
        return "identical runs differ too much for any answer: a machine that is left alone would"
    if test.runs_share < 1 or test.ratio.degrees_of_freedom is None:
        return "more runs of each side would"
    number = count_repeats(test, num_tests)
    if number is not None:
        return f"about {number} repeats a side would, if the ratio stays"
    if abs(math.log(test.ratio.center)) > test.log_floor:
        return "more repeats would not: identical runs vary too much; several runs of each side would"
    return f"even {MAX_REPEATS} repeats a side would not, so near is the ratio to the floor"


def count_repeats(test: RatioTest, num_tests: int) -> int | None:
    """Return how many repeats a side would decide the ratio if it and its spread stayed; None above MAX_REPEATS.

    Both sides get the same number, and each repeat the mean spread of those there are. Of `num_tests` tests, this one
    is held against the smallest of Holm's bounds.
    """
    distance, floor = abs(math.log(test.ratio.center)), test.log_floor
    error, freedom = _require(test.ratio.log_standard_error), _require(test.ratio.degrees_of_freedom)
    # Of n repeats a side with the variance s^2 each, the ratio has 2 s^2 / n and 2 n - 2 degrees of freedom.
    per_repeat = error**2 * (freedom + 2) / 4
    for number in range(2, MAX_REPEATS + 1):
        variance, degrees = 2 * per_repeat / number, 2.0 * number - 2
        if distance < floor:
            half_width = float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) * math.sqrt(variance)
            is_decided = distance + half_width <= floor
        else:
            p_value = _require(_add_noise(test.ratio.center, variance, degrees, test).p_value)
            is_decided = p_value * num_tests < 1 - CONFIDENCE
        if is_decided:
            return number
    return None


def _add_noise(center: float, variance: float, freedom: float, test: RatioTest) -> Estimate:
    total = variance + test.excess
    uncertain = variance**2 / freedom + test.excess_error
    return Estimate(center=center, log_standard_error=math.sqrt(total), degrees_of_freedom=total**2 / uncertain)


def _require(value: float | None) -> float:
    assert value is not None, "a ratio that is judged has an interval"
    return value
