"""Reduce the raw steps of a run to what a page can hold: a few points for each repeat, and exact quantiles."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from collector.report.packing import NUM_STEP_DIGITS, Packed, Pools, pack_column, round_number
from collector.results.collection import Collection
from collector.units import MILLISECOND

FloatArray = npt.NDArray[np.float64]

MAX_NUMBERS = 600_000
"""Numbers that a page holds of all steps together: about 2 MB, a fifth of what a report of 10,000 cells may have."""
MAX_POINTS = 150
"""Points of one repeat: more than these cannot be told apart on a screen."""
MIN_POINTS = 3
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Of all timed steps of a repeat: what its distribution is drawn from."""


def pack_steps(collection: Collection, pools: Pools) -> Packed:
    """Return the steps of each counted repeat, in milliseconds, in the order of the plan; the first tenant's.

    `warmup` and `timed`: the steps in their order or, where these are too many, `points` triples at most, the median,
    lowest and highest of neighbours (`width` is how many). `quantiles`: QUANTILES of all timed steps.
    """
    series = list(_list_series(collection))
    points = choose_points(len(series))
    reduced = [reduce_steps([steps[kind] for *_, steps in series], points) for kind in (0, 1)]
    quantiles = _map_alike([timed for *_, (_, timed) in series], lambda steps: np.quantile(steps, QUANTILES, axis=1).T)
    columns: dict[str, Packed] = {
        "cell_id": pack_column([cell_id for cell_id, _, _ in series], pools=pools),
        "repeat": pack_column([repeat for _, repeat, _ in series]),
        "warmup": {"values": [values for values, _ in reduced[0]]},
        "warmup_width": pack_column([width for _, width in reduced[0]]),
        "num_warmup": pack_column([len(warmup) for *_, (warmup, _) in series]),
        "timed": {"values": [values for values, _ in reduced[1]]},
        "timed_width": pack_column([width for _, width in reduced[1]]),
        "num_timed": pack_column([len(timed) for *_, (_, timed) in series]),
        "quantiles": {"values": [_round(own) for own in quantiles]},
    }
    return {"size": len(series), "columns": columns, "points": points}


def choose_points(num_repeats: int) -> int:
    """Return how many points are kept of the warm-up and of the timed steps of each of so many repeats."""
    # A point is three numbers, and a repeat has two kinds of steps.
    return max(MIN_POINTS, min(MAX_POINTS, MAX_NUMBERS // (6 * max(1, num_repeats))))


def _list_series(collection: Collection) -> Iterator[tuple[str, int, tuple[FloatArray, FloatArray]]]:
    """Yield cell, repeat and the steps (warm-up, timed; seconds) of each counted repeat that has any."""
    for piece in collection.steps.tabulate():
        if piece.empty:
            continue
        own = piece[piece["tenant"] == 0]
        for _, rows in own.groupby(["cell_id", "repeat"], sort=False):
            is_timed = (rows["kind"] == "timed").to_numpy()
            seconds = rows["seconds"].to_numpy()
            if is_timed.any():
                yield str(rows["cell_id"].iloc[0]), int(rows["repeat"].iloc[0]), (seconds[~is_timed], seconds[is_timed])


def reduce_steps(series: Sequence[FloatArray], points: int) -> list[tuple[list[float] | list[list[float]], int]]:
    """Return for each series its steps in milliseconds and 1, or triples of neighbours and how many make one."""
    reduced = _map_alike(series, lambda steps: _reduce_alike(steps, points))
    # A triple for each point: two dimensions; steps as they are: one.
    return [
        (_round(own), 1) if own.ndim == 1 else ([_round(point) for point in own], -(-len(steps) // points))
        for steps, own in zip(series, reduced, strict=True)
    ]


def _reduce_alike(steps: FloatArray, points: int) -> FloatArray:
    """Return the steps of series of one length, a series a row, or median, lowest and highest of neighbours."""
    length = steps.shape[1]
    # A point is three numbers: so many steps take no more room as they are.
    if length <= min(3 * points, MAX_POINTS):
        return steps
    width = -(-length // points)
    bins = [steps[:, start : start + width] for start in range(0, length, width)]
    ends = [np.stack([np.median(own, axis=1), own.min(axis=1), own.max(axis=1)], axis=1) for own in bins]
    return np.stack(ends, axis=1)


def _map_alike(series: Sequence[FloatArray], change: Callable[[FloatArray], FloatArray]) -> list[FloatArray]:
    """Return what `change` makes of each series: it gets all of one length at once, one a row, which is far faster."""
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for place, steps in enumerate(series):
        by_length[len(steps)].append(place)
    changed: dict[int, FloatArray] = {}
    for places in by_length.values():
        changed |= zip(places, change(np.stack([series[place] for place in places])), strict=True)
    return [changed[place] for place in range(len(series))]


def _round(seconds: FloatArray) -> list[float]:
    return [round_number(value, NUM_STEP_DIGITS) for value in (seconds / MILLISECOND.size).tolist()]
