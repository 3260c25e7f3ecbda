"""Estimate from independent weeks: ratios of sums, percentiles and Jain's index, with intervals over the weeks.

A week is the unit: jobs of one week wait for each other, so they are no independent observations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, nan, sqrt

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95
NUM_RESAMPLES = 999
"""Of the bootstrap: with 999, the 2.5 % and 97.5 % quantiles are the 25th and 975th value
(A. C. Davison, D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 5.2.3)."""
BOOTSTRAP_SEED = 20_011


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with its 95 % interval over simulated weeks; NaN where the weeks do not give one."""

    center: float
    low: float = nan
    high: float = nan


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio of sums over weeks, such as samples over money: one numerator and denominator a week."""

    numerators: FloatArray
    denominators: FloatArray

    @property
    def center(self) -> float:
        """The sum of the numerators over that of the denominators; NaN where that is 0."""
        total = float(self.denominators.sum())
        return float(self.numerators.sum()) / total if total else nan

    @property
    def influences(self) -> FloatArray:
        """By how much each week moves the ratio: the residuals of the delta method, whose mean is 0."""
        residuals = self.numerators - self.center * self.denominators
        influences: FloatArray = residuals / self.denominators.mean()
        return influences


def make_mean(values: FloatArray) -> Ratio:
    """Return the mean of a value per week as a ratio."""
    return Ratio(numerators=values, denominators=np.ones(len(values)))


def estimate_ratio(ratio: Ratio) -> Figure:
    """Return the ratio with the interval of the delta method: Student's t over the weeks, not below 0.

    W. G. Cochran, Sampling Techniques, 3rd edition, 1977, section 6.4; A. M. Law, Simulation Modeling and Analysis,
    independent replications.
    """
    center, num_weeks = ratio.center, len(ratio.numerators)
    if np.isnan(center) or num_weeks < 2:
        return Figure(center=center)
    half = _find_quantile(num_weeks) * float(ratio.influences.std(ddof=1)) / sqrt(num_weeks)
    return Figure(center=center, low=max(0.0, center - half), high=center + half)


def compare_ratios(ratio: Ratio, other: Ratio) -> Figure:
    """Return how many times `other` the ratio is, both of the same weeks, both above 0.

    Weeks are paired: what a week does to both cancels. Student's t on the log scale.
    """
    center, num_weeks = ratio.center / other.center, len(ratio.numerators)
    influences = ratio.influences / ratio.center - other.influences / other.center
    half = _find_quantile(num_weeks) * float(influences.std(ddof=1)) / sqrt(num_weeks)
    return Figure(center=center, low=exp(log(center) - half), high=exp(log(center) + half))


def _find_quantile(num_weeks: int) -> float:
    return float(special.stdtrit(num_weeks - 1, (1 + CONFIDENCE) / 2))


def estimate_percentile(weeks: Sequence[FloatArray], share: float) -> Figure:
    """Return a percentile of the values of all weeks together, with the percentile interval of a bootstrap over weeks.

    `share`: 0.95 for p95. NaN where no week has a value.
    """
    values = np.concatenate(weeks)
    if not len(values):
        return Figure(center=nan)
    of_week = np.repeat(np.arange(len(weeks)), [len(week) for week in weeks])
    order = np.argsort(values, kind="stable")
    values, of_week = values[order], of_week[order]

    def find_percentile(counts: FloatArray) -> float:
        passed = np.cumsum(counts[of_week])
        return float(values[np.searchsorted(passed, share * passed[-1])]) if passed[-1] else nan

    return _bootstrap(find_percentile, len(weeks))


def estimate_jain(amounts: FloatArray, over: FloatArray | None = None) -> Figure:
    """Return Jain's index over users of what each got in all weeks together, with its interval by the bootstrap.

    Both arrays are weeks times users. `over`: what the amounts are divided by, once both are summed over the weeks;
    users without any of it are left out.
    """

    def compute(counts: FloatArray) -> float:
        totals: FloatArray = counts @ amounts
        if over is None:
            return compute_jain(totals)
        divisors: FloatArray = counts @ over
        return compute_jain(totals[divisors > 0] / divisors[divisors > 0])

    return _bootstrap(compute, len(amounts))


def compute_jain(amounts: FloatArray) -> float:
    """Return (sum x)^2 / (n sum x^2): 1 where all have the same, 1/n where one has all; NaN where nobody has any.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984.
    """
    squares = float((amounts**2).sum())
    return float(amounts.sum()) ** 2 / (len(amounts) * squares) if squares else nan


def _bootstrap(compute: Callable[[FloatArray], float], num_weeks: int) -> Figure:
    """Return a statistic of how often each week counts, with its percentile interval; NaN where it has no value."""
    center = compute(np.ones(num_weeks))
    if np.isnan(center):
        return Figure(center=center)
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    counts = generator.multinomial(num_weeks, [1 / num_weeks] * num_weeks, NUM_RESAMPLES).astype(np.float64)
    resampled = [compute(drawn) for drawn in counts]
    low, high = np.nanquantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Figure(center=center, low=float(low), high=float(high))
