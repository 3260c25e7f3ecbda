"""Estimate how many repeats a side would show a ratio as a difference, if the ratio and the spread of repeats stay."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

from collector.statistics import CONFIDENCE, Estimate

POWER = 0.8
"""The chance that so many repeats show the difference, if the true ratio and spread are those measured. Where the
p-value is just small enough at what was measured, as many repeats would show it in half of the cases only: the ratio of
the next ones lies above or below."""
POWER_WORDS = "most cases"
"""What is said of that chance. The spread is known from few repeats: with four a side and more, a number that is chosen
by it shows a true difference of that size in 0.7 to 0.84 of the cases, with two or three in 0.55 to 0.83."""
FEW_REPEATS = 3
"""Of no more repeats than this a side, the spread is so uncertain that no share of cases is named."""
FEW_FREEDOM = 2 * (FEW_REPEATS - 1)
"""The degrees of freedom that two sides of so few repeats have."""
MAX_REPEATS = 50
"""More repeats than this are not proposed: from here on each further digit costs a hundred times as many."""
MIN_REPEATS = 2
"""One repeat has no spread."""
MAX_LOG_RATIO = math.log(10)
"""A difference of ten times shows without any planning."""
LOG_RATIO_STEP = 1e-4


@dataclass(frozen=True, kw_only=True)
class RepeatVariances:
    """How much single repeats of two sides scatter: variances of the log of one repeat."""

    one: float
    other: float

    def expect_variance(self, number: int) -> tuple[float, float]:
        """Return the variance of the log ratio of `number` repeats a side, and Welch's degrees of freedom."""
        total = self.one + self.other
        shares = (self.one / total, self.other / total)
        return total / number, (number - 1) / sum(share**2 for share in shares)


def measure_variance(estimate: Estimate, num_repeats: int) -> float | None:
    """Return the variance of the log of one repeat; None where the estimate does not rest on single repeats.

    Of several machines or runs, each is one observation: more repeats on them do not make it narrower.
    """
    error, freedom = estimate.log_standard_error, estimate.degrees_of_freedom
    if error is None or freedom is None or round(freedom) != num_repeats - 1:
        return None
    return error**2 * num_repeats


def find_power(distance: float, variance: float, freedom: float, num_tests: int) -> float:
    """Return the chance that a log ratio of `distance` is shown to differ from 0: that its interval excludes 0.

    `variance`, `freedom`: of its estimate. The interval holds together with those of `num_tests` - 1 others, as the one
    that a verdict rests on.
    """
    critical = float(special.stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2 / num_tests))
    shift = distance / math.sqrt(variance)
    if shift > 2 * critical + 10:
        return 1.0  # where the non-central t is beyond what is computed of it
    return 1 - float(special.nctdtr(freedom, shift, critical))


def count_repeats_to_show(log_ratio: float, variances: RepeatVariances, num_tests: int) -> int | None:
    """Return how many repeats a side show a log ratio as a difference in POWER of the cases; None above MAX_REPEATS."""
    return find_least(lambda number: find_power(abs(log_ratio), *variances.expect_variance(number), num_tests) >= POWER)


def find_least(is_enough: Callable[[int], bool]) -> int | None:
    """Return the least number of repeats that is enough, if every larger one is; None above MAX_REPEATS."""
    if not is_enough(MAX_REPEATS):
        return None
    low, high = MIN_REPEATS, MAX_REPEATS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


def find_shown_difference(variances: RepeatVariances, number: int, num_tests: int) -> float | None:
    """Return the log ratio that `number` repeats a side show in POWER of the cases; None beyond MAX_LOG_RATIO."""
    variance, freedom = variances.expect_variance(number)

    def is_shown(log_ratio: float) -> bool:
        return find_power(log_ratio, variance, freedom, num_tests) >= POWER

    if not is_shown(MAX_LOG_RATIO):
        return None
    low, high = 0.0, MAX_LOG_RATIO
    while high - low > LOG_RATIO_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high
