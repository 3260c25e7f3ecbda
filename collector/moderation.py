"""Moderate the standard errors of a run's cells: shrink the variance of each towards what the cells have in common.

With two or three repeats a cell's own variance is known badly. If the variances of the cells are taken as draws from
one distribution (a scaled inverse chi-squared one), that distribution can be estimated from all cells of the run and
adds degrees of freedom to each: G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
expression in microarray experiments, Statistical Applications in Genetics and Molecular Biology 3(1), 2004, article 3,
sections 3 and 6.2, as limma's `fitFDist` and `squeezeVar` compute it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, polygamma

from collector.statistics import Estimate

FloatArray = npt.NDArray[np.float64]

# The distribution has two parameters, so two variances would fit it exactly, whatever they are.
MIN_CELLS = 3
# limma's bound: a variance that is zero by chance would otherwise rule the fit by its logarithm.
SMALLEST_SHARE_OF_MEDIAN = 1e-5
NUM_NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-8


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What the variances of the cells have in common."""

    variance: float
    degrees_of_freedom: float
    """How many observations it is worth; infinite where the variances differ no more than chance makes them."""


def moderate_estimates(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the estimates with moderated standard errors and more degrees of freedom, in their order.

    Each must come from n = degrees of freedom + 1 independent values. One without a standard error stays as it is, and
    all do where fewer than MIN_CELLS have one. The degrees of freedom are at most those of all estimates together.
    """
    known = [
        (index, estimate.log_standard_error**2 * (estimate.degrees_of_freedom + 1), estimate.degrees_of_freedom)
        for index, estimate in enumerate(estimates)
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    moderated = list(estimates)
    if len(known) < MIN_CELLS:
        return moderated
    prior = fit_prior(np.array([variance for _, variance, _ in known]), np.array([freedom for *_, freedom in known]))
    total = sum(freedom for *_, freedom in known)
    for index, variance, freedom in known:
        squeezed = squeeze_variance(variance, freedom, prior)
        moderated[index] = replace(
            estimates[index],
            log_standard_error=math.sqrt(squeezed / (freedom + 1)),
            degrees_of_freedom=min(freedom + prior.degrees_of_freedom, total),
        )
    return moderated


def fit_prior(variances: FloatArray, freedoms: FloatArray) -> Prior:
    """Return the distribution of the cells' true variances, from the mean and the variance of the logs of `variances`.

    `freedoms`: the degrees of freedom of each. Smyth (2004), section 6.2.
    """
    median = float(np.median(variances))
    bounded = np.maximum(variances, SMALLEST_SHARE_OF_MEDIAN * median)
    halves = freedoms / 2
    centered = np.log(bounded) - digamma(halves) + np.log(halves)
    excess = float(centered.var(ddof=1) - polygamma(1, halves).mean())
    if excess <= 0:  # the variances differ no more than samples of one variance do: they are pooled
        return Prior(variance=float(np.average(bounded, weights=freedoms)), degrees_of_freedom=math.inf)
    half = invert_trigamma(excess)
    log_variance = float(centered.mean()) + float(digamma(half)) - math.log(half)
    return Prior(variance=math.exp(log_variance), degrees_of_freedom=2 * half)


def squeeze_variance(variance: float, freedom: float, prior: Prior) -> float:
    """Return the mean of a cell's variance and the prior's, weighted by their degrees of freedom."""
    if math.isinf(prior.degrees_of_freedom):
        return prior.variance
    total = freedom + prior.degrees_of_freedom
    return (freedom * variance + prior.degrees_of_freedom * prior.variance) / total


def invert_trigamma(value: float) -> float:
    """Return the y > 0 at which trigamma(y) is `value` (> 0), by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:  # trigamma(y) is 1 / y^2 near 0, and 1 / y far from it, to more digits than Newton's tolerance
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    y = 0.5 + 1 / value
    for _ in range(NUM_NEWTON_STEPS):
        trigamma = float(polygamma(1, y))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, y))
        y += step
        if -step / y < NEWTON_TOLERANCE:
            break
    return y
