"""Find what is to be suspected in the newest night, and decide suspicions by their confirmations."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.schema import Outcome, Shift
from collector.nights.cell_nights import CellNights
from collector.nights.detection import (
    DECISION_P_VALUE,
    EFFECT_FLOOR,
    SUSPICION_P_VALUE,
    Looks,
    find_group_effects,
    look_at_cells,
    look_at_groups,
    spread_over_cells,
)
from collector.nights.series import FloatArray, IntArray, Nights, SeriesKey

Group = tuple[str, str]
"""Device and hardware."""


@dataclass(frozen=True, kw_only=True)
class Starts:
    """The first night that is compared, after the last confirmed change; the first of all where none is named."""

    cells: Mapping[SeriesKey, int]
    groups: Mapping[Group, int]

    def of_cells(self, nights: Nights) -> IntArray:
        """Return the start of every series, shape (series,)."""
        return np.array([self.cells.get(key, 0) for key in nights.keys], dtype=np.int64)


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
    cell_starts = starts.of_cells(nights)
    effects = find_group_effects(nights, cell_starts)
    common = spread_over_cells(nights, effects)
    cells = look_at_cells(nights, common, cell_starts)
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
    looks = look_at_groups(np.array([effects[name] for name in names]), own_starts)
    members, p_values = nights.find_groups(), looks.p_values
    for index in _select(looks, p_values, p_value):
        present = [int(row) for row in members[names[index]] if not np.isnan(nights.logs[row, -1])]
        earlier = nights.logs[present, own_starts[index] : looks.firsts[index]]
        levels = tuple(float(level) for level in _take_medians(earlier))
        yield _see(looks, float(p_values[index]), index, tuple(present), names[index], levels, is_of_group=True)


def _take_medians(logs: FloatArray) -> list[float]:
    return [float(np.median(row[~np.isnan(row)])) if (~np.isnan(row)).any() else math.nan for row in logs]


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
