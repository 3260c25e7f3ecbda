"""Find changes that the newest night shows, and decide those that are suspected by their confirmations.

A change is a level from some night on that differs from the level before it. For every night that could be the first
after a change, the precision-weighted mean from it on is compared with the one before (a generalised likelihood ratio,
evaluated anew each night). The night is the unit: repeats of one night share its noise, so they make a night's mean
more precise and are never counted as nights.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bench.schema import Outcome, Shift
from collector.nights.noise import MIN_GROUP_CELLS, estimate_variances, find_common_effect, find_levels, take_medians
from collector.nights.series import BoolArray, CellNights, FloatArray, IntArray, Nights, SeriesKey

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


def _look_at_series(logs: FloatArray, repeat_variances: FloatArray, starts: IntArray) -> Looks:
    num_series, num_nights = logs.shape
    variances, freedom = estimate_variances(logs)
    typical = np.nan_to_num(take_medians(repeat_variances))
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


Group = tuple[str, str]
"""Device and hardware."""


@dataclass(frozen=True, kw_only=True)
class Starts:
    """The first night that is compared, after the last confirmed change; the first of all where none is named."""

    cells: Mapping[SeriesKey, int]
    groups: Mapping[Group, int]


NO_STARTS = Starts(cells={}, groups={})


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A change that the newest night shows in a series, or in all cells of a group."""

    rows: tuple[int, ...]
    """The series that it is of, by their rows in the nights."""
    group: Group
    is_of_group: bool
    first: int
    """The first night after the change, by its column."""
    shift: float
    """Log of the step time after the change over the one before."""
    log_interval: tuple[float, float]
    p_value: float
    num_before: int
    num_after: int
    deviation: float
    levels: tuple[float, ...]
    """What each of `rows` would be in the newest night without the change, as logs."""

    def describe(self) -> Shift:
        """Return the shift as a document has it."""
        return Shift(
            ratio=math.exp(self.shift),
            low=math.exp(self.log_interval[0]),
            high=math.exp(self.log_interval[1]),
            p_value=self.p_value,
            num_nights_before=self.num_before,
            num_nights_after=self.num_after,
        )


def look_for_changes(nights: Nights, starts: Starts = NO_STARTS, *, p_value: float = SUSPICION_P_VALUE) -> list[Seen]:
    """Return the changes of at least EFFECT_FLOOR that the newest night shows, the least likely by chance first."""
    return [seen for seen in look(nights, starts, p_value=p_value) if abs(seen.shift) >= EFFECT_FLOOR]


def look(nights: Nights, starts: Starts = NO_STARTS, *, p_value: float = 1.0) -> list[Seen]:
    """Return what the newest night shows of each series and group, the least likely by chance first.

    Those whose p-value is not below `p_value` are left out; 1: those of which nothing can be said.
    """
    if not nights.keys or len(nights.runs) < 2:
        return []
    cell_starts = np.array([starts.cells.get(key, 0) for key in nights.keys], dtype=np.int64)
    effects = find_group_effects(nights, cell_starts)
    common = spread_over_cells(nights, effects)
    cells = _look_at_series(nights.logs - common, nights.variances, cell_starts)
    p_values = cells.p_values
    found = [
        _see(cells, float(p_values[row]), row, (row,), nights.keys[row].group, (cells.before[row] + common[row, -1],))
        for row in _select(cells, p_values, p_value)
    ]
    return sorted([*found, *_look_at_groups(nights, effects, starts, p_value)], key=lambda seen: seen.p_value)


def _select(looks: Looks, p_values: FloatArray, p_value: float) -> list[int]:
    return [int(row) for row in np.flatnonzero((looks.firsts >= 0) & (p_values < p_value))]


def _look_at_groups(
    nights: Nights, effects: Mapping[Group, FloatArray], starts: Starts, p_value: float
) -> Iterable[Seen]:
    if not effects:
        return
    names = list(effects)
    own_starts = np.array([starts.groups.get(name, 0) for name in names], dtype=np.int64)
    logs = np.array([effects[name] for name in names])
    looks = _look_at_series(logs, np.zeros_like(logs), own_starts)
    members, p_values = nights.find_groups(), looks.p_values
    for index in _select(looks, p_values, p_value):
        present = [int(row) for row in members[names[index]] if not np.isnan(nights.logs[row, -1])]
        earlier = nights.logs[present, own_starts[index] : looks.firsts[index]]
        levels = tuple(take_medians(earlier))
        yield _see(looks, float(p_values[index]), index, tuple(present), names[index], levels, is_of_group=True)


def _see(
    looks: Looks,
    p_value: float,
    index: int,
    rows: tuple[int, ...],
    group: Group,
    levels: tuple[float, ...],
    *,
    is_of_group: bool = False,
) -> Seen:
    return Seen(
        rows=rows,
        group=group,
        is_of_group=is_of_group,
        first=int(looks.firsts[index]),
        shift=float(looks.shifts[index]),
        log_interval=looks.get_interval(index),
        p_value=p_value,
        num_before=int(looks.num_before[index]),
        num_after=int(looks.num_after[index]),
        deviation=float(looks.deviations[index]),
        levels=tuple(float(level) for level in levels),
    )


def measure_alone(seen: Seen, nights: Nights, confirmation: CellNights, cell_ids: Sequence[str]) -> float | None:
    """Return by how much the confirmation's own repeats differ from the level before the change, as a log.

    Of several cells the median. None where no repeat of the confirmation ran on the series' hardware.
    """
    differences = [
        float(np.mean(confirmation[key].logs)) - level
        for row, level in zip(seen.rows, seen.levels, strict=True)
        if (key := nights.keys[row]) in confirmation and key.cell.cell_id in cell_ids and not math.isnan(level)
    ]
    return float(np.median(differences)) if differences else None


def judge(seen: Seen, alone: float) -> tuple[Outcome, str]:
    """Return what becomes of a suspected slowdown, and why, in one line.

    `seen`: what the night shows with the repeats of the confirmation in it; `alone`: these repeats by themselves.
    """
    if alone < EFFECT_FLOOR:
        return "dismissed", f"measured again, it differs by {_percent(alone)}: less than {_percent(EFFECT_FLOOR)}"
    if seen.shift < EFFECT_FLOOR or seen.p_value >= SUSPICION_P_VALUE:
        return "dismissed", f"with the repeats of the confirmation, the night is {_percent(seen.shift)} off: its noise"
    if seen.p_value < DECISION_P_VALUE:
        return "confirmed", f"measured again, it is slower by {_percent(alone)}"
    return "undecided", (
        f"measured again, it is slower by {_percent(alone)}, but nights of it vary by {_percent(seen.deviation)}: "
        "a later night can decide"
    )


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.1f} %"
