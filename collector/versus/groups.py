"""Average the ratios of many cells: what all of them share shows in their mean long before it shows in one of them.

Cells of one run are not independent, since the run shifts all of them. So a side of several runs is averaged over its
cells in each run, and the runs are the observations; of a side of one run the shift is part of the noise.
"""

import math
from collections.abc import Mapping, Sequence

from collector.statistics import (
    Estimate,
    compute_geometric_mean,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
)
from collector.versus.sides import CellSide


def estimate_group_ratio(a: Sequence[CellSide], b: Sequence[CellSide]) -> Estimate:
    """Return the geometric mean of the ratios of the cells, B over A; all cells of a side are from the same runs."""
    runs = [[side.average("run_id") for side in sides] for sides in (b, a)]
    if len(runs[0][0]) > 1 and runs[0][0].keys() == runs[1][0].keys():
        return estimate_paired_ratio(average_over_cells(runs[0]), average_over_cells(runs[1]))
    return estimate_ratio(*(_estimate_group(sides, means) for sides, means in zip((b, a), runs, strict=True)))


def average_over_cells(cells: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return of each run the geometric mean over the cells; all cells have the same runs."""
    return {run: compute_geometric_mean([means[run] for means in cells]) for run in cells[0]}


def average_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """Return the geometric mean of independent estimates, all with an interval."""
    parts = [
        (estimate.log_standard_error**2, estimate.degrees_of_freedom)
        for estimate in estimates
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    assert len(parts) == len(estimates), "each of the estimates has an interval"
    variance = sum(part for part, _ in parts)
    return Estimate(
        center=compute_geometric_mean([estimate.center for estimate in estimates]),
        log_standard_error=math.sqrt(variance) / len(estimates),
        degrees_of_freedom=1 / sum((part / variance) ** 2 / freedom for part, freedom in parts),
    )


def _estimate_group(sides: Sequence[CellSide], means: Sequence[Mapping[str, float]]) -> Estimate:
    if len(means[0]) > 1:
        return estimate_center(list(average_over_cells(means).values()))
    return average_estimates([side.estimate() for side in sides])
