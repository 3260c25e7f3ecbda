"""Estimate the noise of nights: what all cells of some hardware share, and how much each varies by itself.

The methods are compared in benchmarks/watch_nights.py; docs/nights.md has the figures.
"""

import numpy as np
from scipy import optimize, special, stats

from collector.nights.series import BoolArray, FloatArray, IntArray

MIN_GROUP_CELLS = 10
"""Fewer cells do not tell what they share from what is their own: the median of 10 has 0.4 times the noise of one."""
TRIMMED_SHARE = 0.1
"""Of the squared differences of neighbouring nights, the largest ones left out, one at the least: a step of the level
makes one, and a step that is looked for must not hide in the noise that it is held against."""
DIFFERENCE_EFFICIENCY = 0.6
"""Degrees of freedom that a difference adds to a variance. Untrimmed it is 2/3 (J. von Neumann, Annals of Mathematical
Statistics 12, 1941, 367-395); trimming takes some of it."""
ASSUMED_DEVIATION = 0.03
"""Standard deviation of the log of a night, for series that say little themselves and have no others to learn from: the
upper end of what identical nights showed, 1 to 3 %."""
PRIOR_FREEDOM = 8.0
"""Degrees of freedom that the assumed noise, or that of the other cells, is worth, at the most: about two weeks of
nights. More would pass off a cell that is noisier than the others as a quiet one."""
MIN_POOLED_SERIES = 20
"""Series that a spread of variances is estimated from, at the least."""


def find_common_effect(logs: FloatArray, levels: FloatArray) -> FloatArray:
    """Return by how much each night moved all cells of a group, as logs, shape (nights,); zeros for a small group.

    `logs`: shape (cells, nights); `levels`: each cell's level in each night, the same shape. The median over the cells
    is shrunk by the share of its variance over the nights that its own uncertainty explains: where cells share nothing,
    nothing is taken from them.
    """
    num_cells, num_nights = logs.shape
    if num_cells < MIN_GROUP_CELLS or num_nights < 3:
        return np.zeros(num_nights)
    rest = logs - levels
    present = ~np.isnan(rest)
    enough = present.sum(axis=0) >= MIN_GROUP_CELLS
    effect = np.zeros(num_nights)
    if enough.sum() < 3:
        return effect
    effect[enough] = np.nanmedian(rest[:, enough], axis=0)
    effect[enough] -= np.median(effect[enough])
    own = stats.median_abs_deviation(rest[:, enough] - effect[enough], axis=None, scale="normal", nan_policy="omit")
    uncertainty = np.pi / 2 * float(own) ** 2 / present[:, enough].sum(axis=0).mean()  # of a median of normal values
    variance = float(effect[enough].var(ddof=1))
    share = max(0.0, 1 - uncertainty / variance) if variance > 0 else 0.0
    return np.asarray(share * effect)


def find_levels(logs: FloatArray, starts: IntArray) -> FloatArray:
    """Return the median of each series before and from its night `starts` on, for every night, shape of `logs`."""
    nights = np.arange(logs.shape[1])
    is_later = nights >= starts[:, np.newaxis]
    later = take_medians(np.where(is_later, logs, np.nan))
    earlier = take_medians(np.where(is_later, np.nan, logs))
    return np.where(is_later, later[:, np.newaxis], earlier[:, np.newaxis])


def estimate_variances(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance of a night of each series, and its degrees of freedom, each of shape (series,).

    From the differences of neighbouring nights, so that steps and drifts of the level count little. Cells learn from
    each other: variances are moderated as limma does (G. K. Smyth, Statistical Applications in Genetics and Molecular
    Biology 3, 2004, article 3), with PRIOR_FREEDOM at the most. Of fewer than MIN_POOLED_SERIES series,
    ASSUMED_DEVIATION takes the place of the others.
    """
    variances, kept = _trim_differences(logs)
    freedom: FloatArray = DIFFERENCE_EFFICIENCY * kept.astype(np.float64)
    prior, prior_freedom = _learn_prior(variances, freedom)
    total = freedom + prior_freedom
    return (prior_freedom * prior + freedom * np.where(kept > 0, variances, 0.0)) / total, total


def take_medians(logs: FloatArray) -> FloatArray:
    """Return the median of each row; NaN for one without values, without numpy's warning."""
    medians = np.full(len(logs), np.nan)
    has_values = ~np.isnan(logs).all(axis=1)
    medians[has_values] = np.nanmedian(logs[has_values], axis=1)
    return medians


def _trim_differences(logs: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return half the mean of each row's smallest squared differences, corrected for trimming, and their number.

    Shape (series,) each. A row of fewer than two differences has none.
    """
    if logs.shape[1] < 2:
        return np.zeros(len(logs)), np.zeros(len(logs), dtype=np.int64)
    missing: BoolArray = np.isnan(logs)
    order = np.argsort(missing, axis=1, kind="stable")  # nights with values first, in their order
    squares = np.sort(np.diff(np.take_along_axis(logs, order, axis=1), axis=1) ** 2 / 2, axis=1)  # NaN last
    counts = np.maximum((~missing).sum(axis=1) - 1, 0)
    kept = np.maximum(np.minimum(np.ceil(counts * (1 - TRIMMED_SHARE)).astype(np.int64), counts - 1), 0)
    sums = np.concatenate([np.zeros((len(logs), 1)), np.nancumsum(squares, axis=1)], axis=1)
    means = np.take_along_axis(sums, kept[:, np.newaxis], axis=1)[:, 0] / np.maximum(kept, 1)
    return means / _correct_trimming(kept / np.maximum(counts, 1)), kept


def _correct_trimming(share: FloatArray) -> FloatArray:
    """Return the mean of the smallest `share` of squares of standard normal values."""
    inside = np.clip(share, 1e-6, 1.0)
    quantile = stats.chi2.ppf(inside, 1)
    return np.asarray(stats.chi2.cdf(quantile, 3) / inside)


def _learn_prior(variances: FloatArray, freedom: FloatArray) -> tuple[float, float]:
    """Return the variance that series have in common, and how many degrees of freedom that is worth."""
    usable = (variances > 0) & (freedom >= 1)
    if usable.sum() < MIN_POOLED_SERIES:
        return ASSUMED_DEVIATION**2, PRIOR_FREEDOM
    half = freedom[usable] / 2
    logs = np.log(variances[usable]) - special.digamma(half) + np.log(half)
    spread = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    prior_freedom = min(PRIOR_FREEDOM, _invert_trigamma(spread))
    half_prior = prior_freedom / 2
    center = float(logs.mean() + special.digamma(half_prior) - np.log(half_prior))
    return float(np.exp(center)), prior_freedom


def _invert_trigamma(value: float) -> float:
    """Return twice the argument at which the trigamma function has `value`; PRIOR_FREEDOM for one that small."""
    if value <= float(special.polygamma(1, PRIOR_FREEDOM / 2)):
        return PRIOR_FREEDOM
    return 2 * float(optimize.brentq(lambda half: float(special.polygamma(1, half)) - value, 1e-3, PRIOR_FREEDOM))
