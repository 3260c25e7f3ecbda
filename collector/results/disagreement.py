"""Find cells whose repeats do not agree: a gap between them that the spread of their own steps does not explain."""

import math
from collections.abc import Sequence

import numpy as np

from collector.statistics import FloatArray, compute_geometric_mean
from collector.units import MILLISECOND, format_interval, format_number

MIN_GAP = 0.05
"""As the bound of drift (bench.verdicts.series.MAX_DRIFT): below it no difference is worth reporting."""
SHARE_BEYOND = 0.1
"""The share of a repeat's steps that may lie across the gap: single slow steps say nothing of a repeat."""
MAX_LISTED = 5
"""Repeats whose times are named one by one; of more, the least and the most."""


def describe_disagreement(centers: Sequence[float], series: Sequence[FloatArray]) -> str:
    """Return `1 of 3 takes 13 % longer: 61.3, 61.4 and 69.6 ms`; empty where the repeats of a cell agree.

    `centers`: the step time of each repeat; `series`: its timed steps, both in seconds. Repeats are cut where the
    widest gap between neighbours is. They disagree if nine tenths of the steps of each slower repeat take longer, by
    more than MIN_GAP, than nine tenths of the steps of each faster one.
    """
    order = sorted(range(len(centers)), key=centers.__getitem__)
    gaps = [centers[order[place + 1]] / centers[order[place]] for place in range(len(order) - 1)]
    if max(gaps, default=0.0) <= 1 + MIN_GAP:  # as of most cells, whose steps need not be sorted
        return ""
    cut = gaps.index(max(gaps)) + 1
    faster, slower = order[:cut], order[cut:]
    latest = max(_find_rank(series[index], 1 - SHARE_BEYOND) for index in faster)
    earliest = min(_find_rank(series[index], SHARE_BEYOND) for index in slower)
    if earliest <= latest * (1 + MIN_GAP):
        return ""
    factor = compute_geometric_mean([centers[index] for index in slower]) / compute_geometric_mean(
        [centers[index] for index in faster]
    )
    takes = "takes" if len(slower) == 1 else "take"
    return f"{len(slower)} of {len(order)} {takes} {100 * (factor - 1):.0f} % longer: {_list_times(sorted(centers))} ms"


def _list_times(centers: Sequence[float]) -> str:
    """Return `61.3, 61.4 and 69.6`: the step time of the cell is one that no repeat had. `centers`: the least first."""
    if len(centers) > MAX_LISTED:
        return format_interval(centers[0], centers[-1], MILLISECOND)
    *others, last = (format_number(center, MILLISECOND) for center in centers)
    return f"{', '.join(others)} and {last}"


def _find_rank(steps: FloatArray, share: float) -> float:
    """Return the step below which `share` of the steps lie, the nearest rank."""
    place = min(len(steps) - 1, max(0, math.ceil(share * len(steps)) - 1))
    return float(np.partition(steps, place)[place])
