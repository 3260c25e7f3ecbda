"""Find changes that the newest night shows: a level from some night on that differs from the level before it.

For every night that could be the first after a change, the precision-weighted mean from it on is compared with the one
before (a generalised likelihood ratio, evaluated anew each night). The night is the unit: repeats of one night share
its noise, so they make a night's mean more precise and are never counted as nights.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from collector.nights.noise import (
    MIN_GROUP_CELLS,
    estimate_variances,
    find_common_effect,
    find_levels,
)
from collector.nights.series import BoolArray, FloatArray, IntArray, Nights

EFFECT_FLOOR = 0.02
"""Log of the smallest change that is told: smaller ones are within what layouts of memory and machines of one type do,
and nobody acts on them."""
SUSPICION_P_VALUE = 0.01
"""A change is measured again where it is less likely than this in one night of one cell. It costs little: in
simulation two to eight of 200 cells a night."""
DECISION_P_VALUE = 2e-5
"""A change is told where it is less likely than this after it was measured again. 200 cells in 60 nights are 12,000
looks; benchmarks/watch_nights.py finds 0.2 to 0.9 false alarms in such a programme (docs/nights.md)."""
NUM_SURE_NIGHTS = 7
"""Nights before a change that are asked for where there are more nights than that."""
MIN_NIGHTS_BEFORE = 2
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What the newest night shows of each series: the most likely change. Shape of every array: (series,)."""

    firsts: IntArray
    """The first night after the change; -1 where nothing can be said."""
    shifts: FloatArray
    """Log of the step time after the change over the one before; NaN where nothing can be said."""
    errors: FloatArray
    """Standard errors of `shifts`."""
    freedom: FloatArray
    deviations: FloatArray
    """Standard deviation of the log of a night around the series' level."""
    before: FloatArray
    """Level before the change, as a log."""
    num_before: IntArray
    num_after: IntArray

    @property
    def p_values(self) -> FloatArray:
        """One-sided p-values of a change in the direction of `shifts`, Student's t; 1 where nothing can be said."""
        with np.errstate(invalid="ignore"):
            scores = np.abs(self.shifts) / self.errors
        return np.where(np.isnan(scores), 1.0, stats.t.sf(scores, self.freedom))

    def get_interval(self, row: int) -> tuple[float, float]:
        """Return the 95 % interval of a series' shift, as logs."""
        width = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom[row]) * self.errors[row])
        return float(self.shifts[row]) - width, float(self.shifts[row]) + width


def look_at_cells(nights: Nights, common: FloatArray, starts: IntArray) -> Looks:
    """Return what the newest night shows of each series, less what its group shares.

    `common`: the rows of `remove_common`; `starts`: the first night of each series that is compared, after its last
    confirmed change.
    """
    return _look(nights.logs - common, nights.variances, starts)


def look_at_groups(effects: FloatArray, starts: IntArray) -> Looks:
    """Return what the newest night shows of what whole groups share; `effects`: shape (groups, nights)."""
    return _look(effects, np.zeros_like(effects), starts)


def find_group_effects(nights: Nights, starts: IntArray) -> dict[tuple[str, str], FloatArray]:
    """Return what the cells of each group with MIN_GROUP_CELLS share in each night, as logs."""
    levels = find_levels(nights.logs, starts)
    return {
        group: find_common_effect(nights.logs[rows], levels[rows])
        for group, rows in nights.find_groups().items()
        if len(rows) >= MIN_GROUP_CELLS
    }


def spread_over_cells(nights: Nights, effects: dict[tuple[str, str], FloatArray]) -> FloatArray:
    """Return the effect of each series' group, shape (series, nights); zeros where its group has none."""
    common = np.zeros_like(nights.logs)
    for group, rows in nights.find_groups().items():
        if group in effects:
            common[rows] = effects[group]
    return common


def _look(logs: FloatArray, repeat_variances: FloatArray, starts: IntArray) -> Looks:
    num_series, num_nights = logs.shape
    variances, freedom = estimate_variances(logs)
    typical = np.nan_to_num(_take_typical(repeat_variances))
    # What the repeats do not explain; at the least, the standard error with which the variance is known: where repeats
    # make up most of it, as in a cell on two levels, the rest is not 0, only not seen. A confirmation has many repeats
    # and shares the rest with its night.
    own = np.maximum(variances - typical, variances * np.sqrt(np.minimum(1.0, 2 / freedom)))[:, np.newaxis]
    is_used = ~np.isnan(logs) & (np.arange(num_nights) >= starts[:, np.newaxis])
    weights = np.where(is_used, 1 / np.maximum(own + np.nan_to_num(repeat_variances), 1e-12), 0.0)
    values = np.where(is_used, logs, 0.0)
    counts, sums, totals = (_cumulate(part) for part in (is_used.astype(np.float64), weights, weights * values))
    num_all = counts[:, -1]
    best = _Best(num_series)
    for first in range(1, num_nights):
        before, after = counts[:, first], num_all - counts[:, first]
        asked = np.minimum(NUM_SURE_NIGHTS, np.maximum(MIN_NIGHTS_BEFORE, num_all - 1))
        fits = (before >= asked) & (after >= 1) & is_used[:, -1] & is_used[:, first]
        best.compare(first, fits, sums, totals, before, after)
    return Looks(
        firsts=best.firsts,
        shifts=best.shifts,
        errors=best.errors,
        freedom=freedom,
        deviations=np.sqrt(variances),
        before=best.levels,
        num_before=best.num_before,
        num_after=best.num_after,
    )


class _Best:
    """The split of each series whose two sides differ most, of those compared so far."""

    def __init__(self, num_series: int) -> None:
        self.firsts = np.full(num_series, -1)
        self.shifts, self.errors, self.levels = (np.full(num_series, np.nan) for _ in range(3))
        self.num_before, self.num_after = np.zeros(num_series, np.int64), np.zeros(num_series, np.int64)
        self._scores = np.full(num_series, -np.inf)

    def compare(
        self, first: int, fits: BoolArray, sums: FloatArray, totals: FloatArray, before: FloatArray, after: FloatArray
    ) -> None:
        """Take the split at the night `first` where it fits and differs more; the sums are cumulated over nights."""
        with np.errstate(divide="ignore", invalid="ignore"):
            weight_before, weight_after = sums[:, first], sums[:, -1] - sums[:, first]
            level = totals[:, first] / weight_before
            shift = (totals[:, -1] - totals[:, first]) / weight_after - level
            error = np.sqrt(1 / weight_before + 1 / weight_after)
            score = np.abs(shift) / error
        better = fits & (score > self._scores)
        self._scores[better] = score[better]
        self.firsts[better] = first
        pairs = ((self.shifts, shift), (self.errors, error), (self.levels, level))
        for kept, new in (*pairs, (self.num_before, before), (self.num_after, after)):
            kept[better] = new[better]


def _cumulate(values: FloatArray) -> FloatArray:
    """Return cumulated sums with a leading zero, shape (series, nights + 1)."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _take_typical(variances: FloatArray) -> FloatArray:
    typical = np.zeros(len(variances))
    has_values = ~np.isnan(variances).all(axis=1)
    typical[has_values] = np.nanmedian(variances[has_values], axis=1)
    return typical
