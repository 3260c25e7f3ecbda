"""Estimate figures of tenants, and their ratios to the same work alone, over the repeats that count.

As everywhere in the collector, intervals are Student's t on logs over the repeats, or over the machines where there are
several (collector.statistics).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.statistics import (
    Estimate,
    average_by_machine,
    estimate_cell,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One figure (> 0) of each repeat that counts, and the machine that the repeat ran on; at least one."""

    values: tuple[float, ...]
    machines: tuple[str, ...]

    def estimate(self) -> Estimate:
        """Return the geometric mean with its interval."""
        return estimate_cell(self.values, self.machines)

    def average(self) -> dict[str, float]:
        """Return the geometric mean of each machine."""
        return average_by_machine(self.values, self.machines)


def estimate_quotient(numerator: Series, denominator: Series) -> Estimate:
    """Return numerator over denominator: on each machine where both ran on the same several, else by Welch."""
    if _is_paired([numerator, denominator]):
        return estimate_paired_ratio(numerator.average(), denominator.average())
    return estimate_ratio(numerator.estimate(), denominator.estimate())


def estimate_total(numerators: Sequence[Series], denominators: Sequence[Series]) -> Estimate:
    """Return the sum of the quotients, one for each kind of tenant; of one kind it is `estimate_quotient`.

    The numerators are of the same repeats, place by place, and are added repeat by repeat, so what a repeat does to all
    of them is in the spread of the sums. The denominators are independent of them and of each other: each adds the
    square of its log standard error, weighted by the square of its share of the sum (the delta method), with Welch and
    Satterthwaite's degrees of freedom.
    """
    machines = numerators[0].machines
    if _is_paired([*numerators, *denominators]):
        means = [denominator.average() for denominator in denominators]
        totals = _add(numerators, [[mean[machine] for machine in machines] for mean in means])
        return estimate_center(list(average_by_machine(totals, machines).values()))
    known = [denominator.estimate() for denominator in denominators]
    totals = _add(numerators, [[estimate.center] * len(machines) for estimate in known])
    weights = [
        sum(value / estimate.center / total for value, total in zip(numerator.values, totals, strict=True))
        / len(totals)
        for numerator, estimate in zip(numerators, known, strict=True)
    ]
    return estimate_ratio(estimate_cell(totals, machines), _combine(known, weights))


def compute_jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index (sum x)^2 / (n sum x^2) of normalised shares: 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems, DEC Research Report TR-301, 1984.
    """
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def _is_paired(series: Sequence[Series]) -> bool:
    """Return whether all ran on the same machines, and on several."""
    machines = [set(one.machines) for one in series]
    return len(machines[0]) > 1 and all(found == machines[0] for found in machines)


def _add(numerators: Sequence[Series], denominators: Sequence[Sequence[float]]) -> list[float]:
    """Return for each repeat the sum over the kinds of its quotients."""
    quotients = (
        [value / by for value, by in zip(numerator.values, divisors, strict=True)]
        for numerator, divisors in zip(numerators, denominators, strict=True)
    )
    return [sum(parts) for parts in zip(*quotients, strict=True)]


def _combine(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """Return an estimate of 1 that is as uncertain as the sum of these, each as its share `weights` of the sum."""
    parts = [
        ((weight * estimate.log_standard_error) ** 2, estimate.degrees_of_freedom)
        for estimate, weight in zip(estimates, weights, strict=True)
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    if len(parts) < len(estimates):
        return Estimate(center=1.0, log_standard_error=None, degrees_of_freedom=None)
    variance = sum(squared for squared, _ in parts)
    freedom = 1 / sum((squared / variance) ** 2 / freedom for squared, freedom in parts)
    return Estimate(center=1.0, log_standard_error=math.sqrt(variance), degrees_of_freedom=freedom)


def spread(name: str, estimate: Estimate | None) -> Mapping[str, float | None]:
    """Return the columns `name`, `name_low` and `name_high` of an estimate; missing where it, or its interval, is."""
    low, high = (estimate.interval if estimate else None) or (None, None)
    return {name: estimate.center if estimate else None, f"{name}_low": low, f"{name}_high": high}
