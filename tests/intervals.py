"""Reads intervals of estimates, and counts how many of them hold the truth."""

from collections.abc import Iterable

from collector.statistics import Estimate


def read_interval(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    return estimate.interval


def measure_coverage(estimates: Iterable[Estimate], truth: float = 1.0) -> float:
    """Return the share of intervals that hold the truth."""
    held = [low <= truth <= high for low, high in map(read_interval, estimates)]
    return sum(held) / len(held)
