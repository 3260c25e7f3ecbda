"""Finds out whether a series of step times jumps between two levels for runs of steps.

TensorFlow's steps on a CPU did so by 10 to 20 % every few seconds. The median of such a series is that of whichever
level had more steps: it tells one repeat from another by chance. benchmarks/verdict_power.py has the rates of false
alarm and of detection; docs/measurement.md has its table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

# Fewer steps cannot show runs that chance does not explain.
MIN_STEPS = 20
# The smaller level holds this share of the steps at the least: less is a few outliers, which no median follows.
MIN_SHARE = 0.10
# As the bounds of drift (bench.verdicts.checks.MAX_DRIFT): below it no difference is worth reporting.
MIN_JUMP = 0.05
# How many deviations of the steps within the levels these are apart. Any series can be cut in two: the halves of
# normally distributed steps are 2.4 of such deviations apart, those of evenly distributed ones 2.7.
MIN_SEPARATION = 4.0
# Steps that belong to their level independently of each other make more runs than this many standard errors below what
# chance gives, 999 of 1,000 times (A. Wald, J. Wolfowitz, Annals of Mathematical Statistics 11, 1940, 147-162).
MAX_RUNS_SCORE = -3.0
# Steps beyond the slowest twentieth are taken to be as slow as it: a single step of ten times the length would decide
# where the best cut is.
CLIPPED_SHARE = 0.05
# From the median absolute deviation to the standard deviation of a normal distribution.
MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Two levels of a series, in seconds per step."""

    low_seconds: float
    """Median of the steps on the lower level."""
    high_seconds: float
    high_share: float
    """Share of the steps that are on the upper level."""


def find_levels(step_seconds: Sequence[float]) -> Levels | None:
    """Return the two levels that the steps jump between; None where they do not, or are too few to tell."""
    num_steps = len(step_seconds)
    if num_steps < MIN_STEPS:
        return None
    ordered = sorted(step_seconds)
    cut = _find_best_cut(ordered)
    low, high = median(ordered[:cut]), median(ordered[cut:])
    within = MAD_TO_DEVIATION * median(
        [*(abs(step - low) for step in ordered[:cut]), *(abs(step - high) for step in ordered[cut:])]
    )
    if high - low < max(MIN_JUMP * low, MIN_SEPARATION * within):
        return None
    are_high = [step > ordered[cut - 1] for step in step_seconds]
    high_share = sum(are_high) / num_steps  # less than the cut's where steps at the cut are equal
    if not MIN_SHARE <= high_share <= 1 - MIN_SHARE or score_runs(are_high) > MAX_RUNS_SCORE:
        return None
    return Levels(low_seconds=low, high_seconds=high, high_share=high_share)


def score_runs(are_high: Sequence[bool]) -> float:
    """Return how many standard errors more runs of equal values there are than in a random order (Wald, Wolfowitz)."""
    num_high = sum(are_high)
    num_low = len(are_high) - num_high
    num_runs = 1 + sum(one != other for one, other in pairwise(are_high))
    product = 2 * num_high * num_low
    expected = 1 + product / len(are_high)
    variance = product * (product - len(are_high)) / (len(are_high) ** 2 * (len(are_high) - 1))
    return (num_runs - expected) / math.sqrt(variance) if variance > 0 else 0.0


def _find_best_cut(ordered: Sequence[float]) -> int:
    """Return how many of the sorted steps are on the lower level if the squares within the levels are least."""
    num_steps = len(ordered)
    most = ordered[math.ceil((1 - CLIPPED_SHARE) * num_steps) - 1]
    center = median(ordered)  # taken off first: squares of times that hardly differ would cancel
    sums = [0.0, *accumulate(min(step, most) - center for step in ordered)]
    least = math.ceil(MIN_SHARE * num_steps)

    def explain(cut: int) -> float:
        return sums[cut] ** 2 / cut + (sums[-1] - sums[cut]) ** 2 / (num_steps - cut)

    return max(range(least, num_steps - least + 1), key=explain)
