"""Decide what two sides of a cell show: B worse, B better, the same within the floor, or undecided.

Two questions have two intervals. A difference is stated where one excludes 1 that rests on all that makes the two sides
differ if nothing else does (of two runs the repeats and the runs, of two sides of the same runs what these show), and
that holds together with those of its family. Whether a difference can be ruled out that matters is read from the
interval of the ratio alone, by its repeats: only if it lies within the floor are the two called the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from scipy import special

from bench.schema import SMALLEST_POSITIVE
from collector.repeats_needed import MAX_REPEATS, POWER, RepeatVariances, find_least, find_power
from collector.statistics import CONFIDENCE, Estimate, adjust_p_value
from collector.versus.noise import Component

Decision = Literal["worse", "better", "same", "undecided"]
Known = TypeVar("Known")

ADVISES_REPEATS = "repeats a side would decide it"
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
    variances: RepeatVariances | None = None
    """How much single repeats of B and A scatter; None where more of them would not make the interval narrower."""
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
        if error is None or freedom is None or not (self.excess or self.excess_error):
            return self.ratio
        return _add_noise(self.ratio.center, error**2, freedom, self)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is decided of one cell."""

    decision: Decision
    joint_interval: tuple[float, float]
    """Of `with_noise`, together with those of the family: a difference is stated where it excludes 1."""
    p_value: float
    p_adjusted: float


def judge(tests: Sequence[RatioTest]) -> list[Verdict]:
    """Return the verdict on each of a family of ratios, all with an interval."""
    return [_judge(test, len(tests)) for test in tests]


def _judge(test: RatioTest, num_tests: int) -> Verdict:
    tested = test.with_noise
    p_value = _require(tested.p_value)
    return Verdict(
        decision=_decide(test, is_different=tested.excludes_one(num_tests)),
        joint_interval=_require(tested.find_joint_interval(num_tests)),
        p_value=p_value,
        p_adjusted=adjust_p_value(p_value, num_tests),
    )


def _decide(test: RatioTest, *, is_different: bool) -> Decision:
    distance, floor = math.log(test.ratio.center), test.log_floor
    if is_different and abs(distance) > floor:
        return "worse" if distance > 0 else "better"
    if floor > math.log1p(max(MAX_FLOOR, test.least_floor)):
        return "undecided"
    low, high = (math.log(limit) for limit in test.ratio.interval or (SMALLEST_POSITIVE, math.inf))
    return "same" if -floor <= low and high <= floor else "undecided"


def advise(test: RatioTest, num_tests: int) -> str:
    """Return what would decide a ratio, if it and its spread stay: so many repeats a side, or more runs."""
    if test.log_floor > math.log1p(max(MAX_FLOOR, test.least_floor)):
        return "identical runs differ too much for any answer: a machine that is left alone would decide it"
    if test.runs_share < 1:
        return "more runs of each side would decide it"
    if test.variances is None:
        return "more machines of each side would decide it"
    number = count_repeats(test, num_tests)
    if number is not None:
        return f"about {number} {ADVISES_REPEATS}"
    if test.excess and abs(math.log(test.ratio.center)) > test.log_floor:
        return (
            f"even {MAX_REPEATS} repeats a side would not decide it, as identical runs vary too much; several runs of "
            "each side would"
        )
    bound = "the floor" if test.log_floor else "1"
    return f"even {MAX_REPEATS} repeats a side would not decide it, so near is the ratio to {bound}"


def count_repeats(test: RatioTest, num_tests: int) -> int | None:
    """Return how many repeats a side decide the ratio in POWER of the cases if it and its spread are the true ones.

    They are not: benchmarks/repeats_advice.py has how often a number that is chosen by few repeats decides.

    None above MAX_REPEATS. Both sides get the same number. The interval of this ratio holds together with those of
    `num_tests` - 1 others, as the one that the verdict rests on.
    """
    variances, distance, floor = test.variances, abs(math.log(test.ratio.center)), test.log_floor
    assert variances is not None, "asked only where more repeats make the interval narrower"

    def is_enough(number: int) -> bool:
        variance, freedom = variances.expect_variance(number)
        if distance < floor:
            return _find_chance_within(distance, floor, variance, freedom) >= POWER
        expected = _add_noise(test.ratio.center, variance, freedom, test)
        error, freedom = _require(expected.log_standard_error), _require(expected.degrees_of_freedom)
        return find_power(distance, error**2, freedom, num_tests) >= POWER

    return find_least(is_enough)


def _find_chance_within(distance: float, floor: float, variance: float, freedom: float) -> float:
    """Return the chance that the whole interval of a log ratio of `distance` lies within the floor."""
    error = math.sqrt(variance)
    room = floor - float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    chances = [float(special.ndtr((end - distance) / error)) for end in (-room, room)]
    return chances[1] - chances[0]


def _add_noise(center: float, variance: float, freedom: float, test: RatioTest) -> Estimate:
    total = variance + test.excess
    uncertain = variance**2 / freedom + test.excess_error
    return Estimate(center=center, log_standard_error=math.sqrt(total), degrees_of_freedom=total**2 / uncertain)


def _require(value: Known | None) -> Known:
    assert value is not None, "a ratio that is judged has an interval"
    return value
