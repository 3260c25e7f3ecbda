"""Checks the rate of steps that take turns with other processes: noisy, not-steady.

A time-sliced step is short where the process has its turn and long where it waits for one: the steps may spread widely
around their median and the rate over a second be the same all the time. So means of blocks of steps are compared.
"""

from itertools import pairwise
from statistics import fmean

from bench.verdicts.inputs import Found, ValidityInputs

# The series is cut into so many blocks of equal numbers of steps (batch means, A. M. Law, W. D. Kelton, "Simulation
# Modeling and Analysis", 9.5.3: few long blocks, since short ones depend on one another).
NUM_BLOCKS = 9
# noisy. The rate is known to this standard error or better; twice as much, its 95 % interval, is what identical runs
# differ by (bench.verdicts.series.MAX_SPREAD).
MAX_RATE_ERROR = 0.05
# not-steady. As for the steps of a cell that is alone (bench.verdicts.series.MAX_DRIFT): from three standard errors of
# the difference of two thirds on, each the mean of three blocks.
MAX_DRIFT = 0.05
DRIFT_STANDARD_ERRORS = 3 * (2 / 3) ** 0.5


def check_rate(inputs: ValidityInputs) -> Found:
    """Yield noisy where the rate over the window is not known well enough, not-steady where it drifts."""
    steps = inputs.samples.step_seconds
    if len(steps) < NUM_BLOCKS:
        return  # too few to tell: check_length says so
    ends = [number * len(steps) // NUM_BLOCKS for number in range(NUM_BLOCKS + 1)]
    blocks = [fmean(steps[start:end]) for start, end in pairwise(ends)]
    # From differences of blocks that follow each other, which a drift hardly raises (von Neumann's estimate).
    deviation = (fmean((later - block) ** 2 for block, later in pairwise(blocks)) / 2) ** 0.5 / fmean(blocks)
    error = deviation / NUM_BLOCKS**0.5
    if error > MAX_RATE_ERROR:
        yield (
            "noisy",
            f"the rate over the window has a standard error of {error:.0%}, more than {MAX_RATE_ERROR:.0%}",
        )
    third = NUM_BLOCKS // 3
    drift = fmean(blocks[-third:]) / fmean(blocks[:third]) - 1
    bound = max(MAX_DRIFT, DRIFT_STANDARD_ERRORS * deviation)
    if abs(drift) > bound:
        yield (
            "not-steady",
            f"steps of the last third of the window take {drift:+.1%} longer than those of the first, more than "
            f"{bound:.1%}",
        )
