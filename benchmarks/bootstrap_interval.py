"""Computes the interval that the collector gave until November 2026, a two-stage bootstrap, for comparison with others.

Only benchmarks/interval_coverage.py uses it: so the table that decided between the intervals can be made again.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from collector.statistics import Estimate

FloatArray = npt.NDArray[np.float64]

NUM_RESAMPLES = 4000


def estimate_by_bootstrap(repeats: Sequence[FloatArray], rng: np.random.Generator) -> Estimate:
    """Return the median over `repeats` (one array of step times each, at least two) of each repeat's median.

    The standard error is the standard deviation of the log centre over NUM_RESAMPLES two-stage bootstrap resamples,
    times sqrt(n / (n - 1)), to be used with Student's t at n - 1 degrees of freedom: both correct the narrowness of the
    bootstrap in small samples (T. C. Hesterberg, What Teachers Should Know About the Bootstrap, 2015, arXiv 1411.5279).
    """
    num_repeats = len(repeats)
    spread = float(np.log(resample_centers(repeats, rng)).std(ddof=1))
    return Estimate(
        center=float(np.median([np.median(steps) for steps in repeats])),
        log_standard_error=spread * math.sqrt(num_repeats / (num_repeats - 1)),
        degrees_of_freedom=num_repeats - 1,
    )


def resample_centers(repeats: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Return the centre of each two-stage resample, shape (NUM_RESAMPLES,), in seconds."""
    chosen = rng.integers(len(repeats), size=(NUM_RESAMPLES, len(repeats)))
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


def _find_ranks(uniform: FloatArray, num_steps: int) -> npt.NDArray[np.intp]:
    # The beta draw can round to 1.0, whose rank would be one past the end.
    return np.minimum((uniform * num_steps).astype(np.intp), num_steps - 1)
