"""Estimate a cell's median step time with its interval, its percentiles, and the ratio of two cells.

The centre is the median over the repeats of each repeat's median. Its uncertainty comes from a two-stage bootstrap:
repeats are resampled, then the steps inside each. Steps of one process follow each other and are not independent, so
it is the spread between repeats that carries the interval; steps alone would make it far too narrow (docs/report.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from bench.schema import MAX_AMOUNT, SMALLEST_POSITIVE

FloatArray = npt.NDArray[np.float64]

NUM_RESAMPLES = 4000
CONFIDENCE = 0.95
SEED = 20260301
# Log of the widest factor of an interval: any ratio of two times that a document can hold lies within it.
MAX_LOG_FACTOR = 2 * math.log(MAX_AMOUNT / SMALLEST_POSITIVE)
# A percentile needs samples beyond it: one in twenty for p95, one in a hundred for p99.
MIN_SAMPLES = {95: 20, 99: 100}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A positive quantity with its uncertainty on the log scale."""

    center: float
    log_standard_error: float | None
    """Standard error of log(center); None where one repeat leaves it unknown."""
    degrees_of_freedom: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval (low, high): center times exp(-/+ t * log_standard_error), finite however wide."""
        if self.log_standard_error is None or self.degrees_of_freedom is None:
            return None
        quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.degrees_of_freedom))
        factor = math.exp(min(quantile * self.log_standard_error, MAX_LOG_FACTOR))
        return self.center / factor, self.center * factor


def estimate_median(repeats: Sequence[FloatArray], *, seed: Sequence[int] = (SEED,)) -> Estimate:
    """Return the median over `repeats` of each repeat's median, with its standard error.

    `repeats`: one array of step times (seconds, > 0) per repeat, at least one. The standard error is the standard
    deviation of the log centre over NUM_RESAMPLES two-stage bootstrap resamples, times sqrt(n / (n - 1)), to be used
    with Student's t at n - 1 degrees of freedom: both correct the narrowness of the bootstrap in small samples
    (T. C. Hesterberg, What Teachers Should Know About the Bootstrap, 2015, arXiv 1411.5279).
    """
    num_repeats = len(repeats)
    center = float(np.median([np.median(steps) for steps in repeats]))
    if num_repeats < 2:
        return Estimate(center=center, log_standard_error=None, degrees_of_freedom=None)
    centers = resample_centers(repeats, np.random.default_rng(seed))
    spread = float(np.log(centers).std(ddof=1))
    return Estimate(
        center=center,
        log_standard_error=spread * math.sqrt(num_repeats / (num_repeats - 1)),
        degrees_of_freedom=num_repeats - 1,
    )


def resample_centers(
    repeats: Sequence[FloatArray], rng: np.random.Generator, num_resamples: int = NUM_RESAMPLES
) -> FloatArray:
    """Return the centre of each two-stage resample, shape (num_resamples,), in seconds."""
    chosen = rng.integers(len(repeats), size=(num_resamples, len(repeats)))
    medians = np.empty(chosen.shape)
    for index, steps in enumerate(repeats):
        mask = chosen == index
        medians[mask] = resample_medians(steps, int(mask.sum()), rng)
    return np.asarray(np.median(medians, axis=1))


def resample_medians(steps: FloatArray, num_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return medians of bootstrap resamples of `steps`, shape (num_resamples,), drawn without making the resamples.

    The k-th smallest of m draws with replacement is the sorted sample at rank ceil(m * u), where u is the k-th
    smallest of m uniforms: Beta(k, m - k + 1). Given it, the next one is u + (1 - u) * Beta(1, m - k)
    (David and Nagaraja, Order Statistics, 3rd ed., 2003, chapter 2). Exact, and O(1) per resample.
    """
    ordered = np.sort(steps)
    num_steps = len(ordered)
    rank = (num_steps + 1) // 2
    uniform = rng.beta(rank, num_steps - rank + 1, num_resamples)
    lower = ordered[_find_ranks(uniform, num_steps)]
    if num_steps % 2:
        return lower
    uniform = uniform + (1 - uniform) * rng.beta(1, num_steps - rank, num_resamples)
    return np.asarray((lower + ordered[_find_ranks(uniform, num_steps)]) / 2)


def estimate_ratio(numerator: Estimate, denominator: Estimate) -> Estimate:
    """Return numerator over denominator of two independent estimates.

    The squared log standard errors add; the degrees of freedom are Welch and Satterthwaite's
    (B. L. Welch, Biometrika 34, 1947, 28-35).
    """
    center = numerator.center / denominator.center
    parts = [
        (estimate.log_standard_error**2, estimate.degrees_of_freedom)
        for estimate in (numerator, denominator)
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    if len(parts) < 2:
        return Estimate(center=center, log_standard_error=None, degrees_of_freedom=None)
    variance = sum(squared for squared, _ in parts)
    if variance == 0:
        return Estimate(center=center, log_standard_error=0.0, degrees_of_freedom=sum(freedom for _, freedom in parts))
    freedom = variance**2 / sum(squared**2 / freedom for squared, freedom in parts)
    return Estimate(center=center, log_standard_error=math.sqrt(variance), degrees_of_freedom=freedom)


def scale_estimate(estimate: Estimate, factor: float) -> Estimate:
    """Return `factor` (a known number, > 0) times the estimate; the relative uncertainty stays."""
    return replace(estimate, center=estimate.center * factor)


def compute_quartiles(repeats: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the first and third quartile of the steps of all repeats pooled, in seconds."""
    low, high = np.quantile(np.concatenate(repeats), [0.25, 0.75])
    return float(low), float(high)


def compute_percentile(repeats: Sequence[FloatArray], percent: int) -> float | None:
    """Return p95 or p99 of the steps of all repeats pooled, in seconds; None below MIN_SAMPLES steps."""
    pooled = np.concatenate(repeats)
    if len(pooled) < MIN_SAMPLES[percent]:
        return None
    return float(np.quantile(pooled, percent / 100))


def _find_ranks(uniform: FloatArray, num_steps: int) -> npt.NDArray[np.intp]:
    # The beta draw can round to 1.0, whose rank would be one past the end.
    return np.minimum((uniform * num_steps).astype(np.intp), num_steps - 1)
