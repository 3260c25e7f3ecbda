"""Estimate the centre of a cell's repeats with its interval, its percentiles, and the ratio of two cells.

Everything is computed on logs, where a ratio is a difference. Steps of one process follow each other and are not
independent, so an interval rests on the repeats alone: one number per repeat, Student's t over them. Repeats on one
machine share it, so where a cell ran on several machines the interval rests on the machines (docs/statistics.md).
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from bench.schema import MAX_AMOUNT, SMALLEST_POSITIVE

FloatArray = npt.NDArray[np.float64]
Item = TypeVar("Item")
Variance = tuple[float, float]
"""A variance of logs with its degrees of freedom."""

CONFIDENCE = 0.95
# Log of the widest factor of an interval: any ratio of two times that a document can hold lies within it.
MAX_LOG_FACTOR = 2 * math.log(MAX_AMOUNT / SMALLEST_POSITIVE)
# Times are read in whole nanoseconds (time.perf_counter on Linux), so equal times may differ by a rounding error, which
# is uniform over a nanosecond: its standard deviation is a nanosecond over the square root of 12.
ROUNDING_SECONDS = 1e-9 / math.sqrt(12)
# A percentile needs samples beyond it: one in twenty for p95, one in a hundred for p99.
MIN_SAMPLES = {95: 20, 99: 100}
POWER = 0.8
"""The chance that so many repeats show the difference, if the true ratio and spread are those measured. Where the
p-value is just small enough at what was measured, as many repeats would show it in half of the cases only: the ratio of
the next ones lies above or below. The spread is known from few repeats: with four a side and more, a number that is
chosen by it shows a true difference of that size in 0.7 to 0.84 of the cases, with two or three in 0.55 to 0.83."""
MAX_REPEATS = 50
"""More repeats than this are not proposed: from here on each further digit costs a hundred times as many."""
MIN_REPEATS = 2
"""One repeat has no spread."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A positive quantity with its uncertainty on the log scale."""

    center: float
    log_standard_error: float | None
    """Standard error of log(center), above 0; None where one repeat leaves it unknown."""
    degrees_of_freedom: float | None
    is_staged: bool = False
    """Whether its spread decided how many values there are, or that of a part of it did."""

    # scipy.special's functions of Student's t are those that scipy.stats.t calls, without its 0.1 ms of checks.

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval (low, high): center times exp(-/+ t * log_standard_error), finite however wide."""
        return self.find_joint_interval(1)

    def find_joint_interval(self, num_intervals: int) -> tuple[float, float] | None:
        """Return this interval of `num_intervals` joint ones: in 95 % of cases all of them hold the truth.

        By Bonferroni's inequality, each may miss in 5 % / `num_intervals` of cases, however they depend on each other.
        So an interval may be quoted even if it was chosen among them by its value; and if all ratios are 1, the chance
        that any of the intervals excludes 1 is 5 % at most. None without a standard error.
        """
        if self.log_standard_error is None or self.degrees_of_freedom is None:
            return None
        miss = (1 - CONFIDENCE) / 2 / num_intervals
        quantile = float(special.stdtrit(self.degrees_of_freedom, 1 - miss))
        factor = math.exp(min(quantile * self.log_standard_error, MAX_LOG_FACTOR))
        return self.center / factor, self.center * factor

    @property
    def p_value(self) -> float | None:
        """The two-sided p-value of Student's t for a true value of 1; below 0.05 where the interval excludes 1."""
        if self.log_standard_error is None or self.degrees_of_freedom is None:
            return None
        distance = abs(math.log(self.center)) / self.log_standard_error
        return float(2 * special.stdtr(self.degrees_of_freedom, -distance))


def estimate_center(values: Sequence[float], num_first: int = 0) -> Estimate:
    """Return the geometric mean of independent `values` (seconds, > 0, at least one) with its standard error.

    Student's t on the logs, n - 1 degrees of freedom. Equal values have no spread, but are known no better than the
    clock reads: the standard deviation is at least ROUNDING_SECONDS over the centre.

    `num_first`: how many of them decided by their spread how many there are; 0: that was fixed. The spread is then that
    of these alone (C. Stein, Annals of Mathematical Statistics 16, 1945, 243-258): of all, it would be too small.
    """
    logs = np.log(np.asarray(values) / values[0])
    center = values[0] * math.exp(float(logs.mean()))
    is_staged = num_first >= MIN_REPEATS
    known = logs[:num_first] if is_staged else logs
    if len(known) < MIN_REPEATS:
        return Estimate(center=center, log_standard_error=None, degrees_of_freedom=None)
    deviation = max(float(known.std(ddof=1)), ROUNDING_SECONDS / center)
    return Estimate(
        center=center,
        log_standard_error=deviation / math.sqrt(len(logs)),
        degrees_of_freedom=len(known) - 1,
        is_staged=is_staged,
    )


def compute_geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of `values` (> 0, at least one); of equal values exactly their value."""
    if len(values) == 1:
        return float(values[0])
    return values[0] * math.exp(float(np.log(np.asarray(values) / values[0]).mean()))


def average_by_machine(values: Sequence[float], machines: Sequence[str]) -> dict[str, float]:
    """Return the geometric mean of the `values` (seconds) of each machine, in the order in which they first occur."""
    found: dict[str, list[float]] = {}
    for value, machine in zip(values, machines, strict=True):
        found.setdefault(machine, []).append(value)
    return {machine: compute_geometric_mean(own) for machine, own in found.items()}


class Measured(NamedTuple):
    """What repeats measured of one thing."""

    estimate: Estimate
    means: Mapping[str, float]
    """The geometric mean of the repeats on each machine, or in each run where those are the observations."""


def measure(values: Sequence[float], machines: Sequence[str], is_first: Sequence[bool] = ()) -> Measured:
    """Return the centre of a cell's repeats (seconds), of which each ran on the machine beside it.

    `is_first`: of each whether it is one of those that decided how many there are; they come first.

    On one machine the repeats are independent. On several, the machine is a random effect: the centre is the geometric
    mean of the machines' geometric means, with as many degrees of freedom as there are machines, less one. That is the
    exact analysis of a design with as many repeats on every machine, and a sound one of others.
    """
    if len(set(machines)) == 1:
        estimate = estimate_center(values, sum(is_first))
        return Measured(estimate, {machines[0]: estimate.center})
    means = average_by_machine(values, machines)
    first = {machine for machine, is_own in zip(machines, is_first, strict=False) if is_own}  # they come first
    return Measured(estimate_center(list(means.values()), len(first)), means)


def divide(numerator: Measured, denominator: Measured) -> Estimate:
    """Return numerator over denominator: on each machine where both ran on the same several ones, else by Welch."""
    if len(numerator.means) > 1 and numerator.means.keys() == denominator.means.keys():
        return estimate_paired_ratio(numerator.means, denominator.means)
    return estimate_ratio(numerator.estimate, denominator.estimate)


def estimate_ratio(numerator: Estimate, denominator: Estimate) -> Estimate:
    """Return numerator over denominator of two independent estimates.

    The squared log standard errors add; the degrees of freedom are Welch and Satterthwaite's
    (B. L. Welch, Biometrika 34, 1947, 28-35). Where the sides have different numbers of values, the standard error is
    at least that of Student's test of two sides that vary alike: two values that happen to be near each other would
    otherwise make a ratio over ten values look sure, and call one in ten ratios of equal sides different
    (docs/decisions/0012-intervals-and-differences.md).
    """
    center = numerator.center / denominator.center
    ratio = combine_estimates(center, [(numerator, 1.0), (denominator, 1.0)])
    if ratio.log_standard_error is None:
        return ratio
    least = _pool_variances([numerator, denominator])
    return replace(ratio, log_standard_error=math.sqrt(max(ratio.log_standard_error**2, least)))


def combine_estimates(center: float, parts: Sequence[tuple[Estimate, float]]) -> Estimate:
    """Return `center`, whose log is the sum of the logs of independent estimates, each times its weight.

    The squared log standard errors add; the degrees of freedom are Welch and Satterthwaite's. Without the error of one
    of them there is none. Where the spreads decided how many repeats there are, the standard errors are alike however
    badly the spreads are known, and Welch's freedom is too much: of such parts the least freedom counts, which makes
    the interval at least as wide as that of S. K. Banerjee (Sankhya 22, 1960, 357-358), which always holds.
    """
    known = [
        ((weight * estimate.log_standard_error) ** 2, estimate.degrees_of_freedom)
        for estimate, weight in parts
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    if len(known) < len(parts):
        return Estimate(center=center, log_standard_error=None, degrees_of_freedom=None)
    variance, freedom = add_variances(*known)
    staged = [estimate.degrees_of_freedom or 0.0 for estimate, _ in parts if estimate.is_staged]
    return Estimate(
        center=center,
        log_standard_error=math.sqrt(variance),
        degrees_of_freedom=min([freedom, *staged]),
        is_staged=bool(staged),
    )


def add_variances(*parts: Variance) -> Variance:
    """Return the sum of independent variances, with Welch and Satterthwaite's degrees of freedom."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return 0.0, sum(freedom for _, freedom in parts)
    # As shares of the sum, which cannot overflow or vanish when they are squared.
    return total, 1 / sum((variance / total) ** 2 / freedom for variance, freedom in parts if freedom)


def _pool_variances(estimates: Sequence[Estimate]) -> float:
    """Return the squared standard error of a difference of two means of values that vary alike; 0 without the values.

    An estimate from n values has n - 1 degrees of freedom; one that was put together from several has a fraction or as
    many as all others, and is not pooled.
    """
    parts = [((one.log_standard_error or 0.0) ** 2, one.degrees_of_freedom or 0.0) for one in estimates]
    freedoms = [freedom for _, freedom in parts]
    if freedoms[0] == freedoms[1] or not all(freedom.is_integer() for freedom in map(float, freedoms)):
        return 0.0
    if any(one.is_staged for one in estimates):
        return 0.0
    single = sum(squared * (freedom + 1) * freedom for squared, freedom in parts) / sum(freedoms)
    return single * sum(1 / (freedom + 1) for freedom in freedoms)


def estimate_paired_ratio(numerators: Mapping[str, float], denominators: Mapping[str, float]) -> Estimate:
    """Return the ratio of two cells from a ratio per machine, so that what a machine does to both cancels.

    Student's t on the log ratios, one per machine, so a machine may also favour one of the cells.
    """
    ratios = [numerators[machine] / denominators[machine] for machine in numerators]
    estimate = estimate_center(ratios)
    # A ratio is no time: its rounding error is that of its two times.
    least = max(
        math.hypot(ROUNDING_SECONDS / numerators[machine], ROUNDING_SECONDS / denominators[machine])
        for machine in numerators
    ) / math.sqrt(len(ratios))
    return replace(estimate, log_standard_error=max(estimate.log_standard_error or 0.0, least))


def scale_estimate(estimate: Estimate, factor: float) -> Estimate:
    """Return the estimate times `factor` (> 0), which is known exactly; the relative uncertainty stays."""
    return replace(estimate, center=estimate.center * factor)


def invert_estimate(estimate: Estimate) -> Estimate:
    return replace(estimate, center=1 / estimate.center)


Direction = Literal["above", "below", "same", "undecided"]


class Floor(NamedTuple):
    """What a difference has to exceed to mean anything."""

    log_ratio: float = 0.0
    alone: Estimate | None = None
    """The ratio by its repeats: `same` where this interval lies within the floor. None: nothing is called the same."""


class Judged(NamedTuple):
    """What is known of one ratio of several."""

    verdict: Direction
    """Whether the ratio is shown to differ from 1, and to which side, or to lie within the floor."""
    joint_low: float
    """The interval that holds together with those of the others."""
    joint_high: float
    p_value: float
    """Of this ratio alone."""
    p_adjusted: float
    """By Bonferroni, 1 at most: below 0.05 where the joint interval excludes 1."""

    @property
    def is_different(self) -> bool:
        return self.verdict in ("above", "below")


def judge_together(ratios: Sequence[Estimate], floors: Sequence[Floor] = ()) -> list[Judged]:
    """Return what is known of each of a family of ratios, all with a standard error; `floors`: of each, if any has one.

    Tables, the grid and `compare` have their verdicts from here: a difference is stated where the joint interval
    excludes 1, and nowhere else (docs/decisions/0012-intervals-and-differences.md).
    """
    judged, number = [], len(ratios)
    for ratio, floor in zip(ratios, floors or [Floor()] * number, strict=True):
        interval, p_value = ratio.find_joint_interval(number), ratio.p_value
        assert interval is not None
        assert p_value is not None
        distance, within = math.log(ratio.center), floor.alone and floor.alone.interval
        verdict: Direction = "undecided"
        if not interval[0] <= 1 <= interval[1] and abs(distance) > floor.log_ratio:
            verdict = "above" if distance > 0 else "below"
        elif within and all(abs(math.log(end)) <= floor.log_ratio for end in within):
            verdict = "same"
        judged.append(Judged(verdict, *interval, p_value, min(1.0, number * p_value)))
    return judged


def compute_quantiles(repeats: Sequence[FloatArray]) -> tuple[float, float, float | None, float | None]:
    """Return the first and third quartile, p95 and p99 of the steps of all repeats pooled, in seconds.

    A percentile is None below MIN_SAMPLES steps.
    """
    pooled = np.concatenate(repeats)
    first, third, p95, p99 = map(float, np.quantile(pooled, [0.25, 0.75, 0.95, 0.99]))
    number = len(pooled)
    return first, third, p95 if number >= MIN_SAMPLES[95] else None, p99 if number >= MIN_SAMPLES[99] else None


def estimate_machine_effects(
    values: Sequence[float], cells: Sequence[Hashable], machines: Sequence[str]
) -> dict[str, Estimate]:
    """Return each machine's factor on the `values` (> 0); 1 is the geometric mean of those that it is held against.

    Of each value, its cell and its machine stand at its place. The model is log(value) = cell + machine + error, fitted
    by least squares with one variance for all errors, so a machine may be known from other cells than its neighbour.
    Machines are held against those that are connected with them by cells on both; one that shares no cell is left out.
    Where a machine favours some cells, that is in the errors and widens the intervals.
    """
    rows = pd.DataFrame({"log": np.log(np.asarray(values, dtype=np.float64)), "cell": cells, "machine": machines})
    rows = rows[rows.groupby("cell")["machine"].transform("nunique") > 1]
    found: dict[str, Estimate] = {}
    for group in join_overlapping(map(frozenset, (own for _, own in rows.groupby("cell")["machine"]))):
        found |= zip(sorted(group), _fit(rows[rows["machine"].isin(group)], sorted(group)), strict=True)
    return found


def join_overlapping(sets: Iterable[frozenset[Item]]) -> list[frozenset[Item]]:
    """Return the unions of those that share an item, by whatever chain."""
    groups: list[frozenset[Item]] = []
    for one in sets:
        joined = one.union(*(group for group in groups if group & one))
        groups = [*(group for group in groups if not group & one), joined]
    return groups


def _fit(rows: pd.DataFrame, names: Sequence[str]) -> list[Estimate]:
    """Return the factor of each machine of one connected group.

    The cells' effects are removed by taking the mean of each cell from both sides (Frisch, Waugh and Lovell).
    """
    dummies = pd.DataFrame({name: rows["machine"] == name for name in names}, dtype="float64")
    design = (dummies - dummies.groupby(rows["cell"]).transform("mean")).to_numpy()
    centered = (rows["log"] - rows["log"].groupby(rows["cell"]).transform("mean")).to_numpy()
    inverse = np.linalg.pinv(design.T @ design)
    effects = inverse @ design.T @ centered
    contrasts = np.eye(len(names)) - 1 / len(names)
    freedom = len(rows) - rows["cell"].nunique() - (len(names) - 1)
    residuals = centered - design @ effects
    floor = ROUNDING_SECONDS / math.exp(rows["log"].mean())
    deviation = None if freedom < 1 else max(float(np.sqrt(residuals @ residuals / freedom)), floor)
    errors = np.sqrt(np.diag(contrasts @ inverse @ contrasts.T))
    return [
        Estimate(
            center=float(np.exp(effect)),
            log_standard_error=None if deviation is None else deviation * float(error),
            degrees_of_freedom=None if deviation is None else freedom,
        )
        for effect, error in zip(contrasts @ effects, errors, strict=True)
    ]


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
