"""Group the repeats of a run by cell and environment, and compute the figures of each group that its repeats give."""

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from collector.results.conditions import CONDITION_COLUMNS
from collector.results.frames import (
    CELL_COLUMNS,
    DURATION_COLUMNS,
    ENVIRONMENT_COLUMNS,
    MEMORY_COLUMNS,
    PACE_COLUMNS,
    RESULT_COLUMNS,
    Row,
)
from collector.results.intervals import describe_center
from collector.results.notes import merge_notes
from collector.results.statuses import WITHOUT_RECORD
from collector.statistics import average_by_machine, compute_geometric_mean

# Of the repeats that count, the largest; of the other numbers, the median.
LARGEST = (*MEMORY_COLUMNS, "gpu_memory_before_bytes", "gpu_memory_peak_bytes", "gpu_max_temperature_celsius")
# Inversely proportional to a step time, so they are summarised as it is: beside a cell's step time stands what that
# time achieves, and of two cells of the same work the slower one has the lower share.
CENTER_RATES = ("achieved_flops_per_second", "share_of_peak", "share_of_roofline")
"""Computed from the step time that stands for a repeat."""
RATES = (*CENTER_RATES, "window_samples_per_s")
"""The last is of the whole window: a mean already, whatever stands for the repeat."""
MEDIANS = (
    *DURATION_COLUMNS,
    *(name for name in PACE_COLUMNS if name != "flat_after_seconds"),
    *(name for name, dtype in CONDITION_COLUMNS.items() if dtype == "float64" and name not in (*LARGEST, *RATES)),
)
# Verdicts on how the steps came out, under conditions that were not at fault: they say how well the repeat is known.
# Leaving such repeats out would keep those in which the same cell happened to come out evenly.
OUTCOME_VERDICTS = ("not-steady", "noisy")
SOUND_VERDICTS = ("valid", *OUTCOME_VERDICTS)


@dataclass(kw_only=True)
class CellRepeats:
    """The rows of one cell."""

    first: int
    num_planned: int = 0
    by_environment: dict[str, list[int]] = field(default_factory=dict)
    """The rows that ended ok, by environment in the order in which they first occur."""

    @property
    def ok(self) -> list[list[int]]:
        """The rows that ended ok, a list for each environment."""
        return list(self.by_environment.values())


class Repeats:
    """The repeats of a run, by column: rows of RESULT_COLUMNS, numbered from 0."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._results = results
        self.values = cache(self._list_values)
        """The values of a column; None where one is missing."""

    def group_by_cell(self) -> list[CellRepeats]:
        """Return the cells in the order of the rows."""
        cells: dict[str, CellRepeats] = {}
        columns = (self.values(name) for name in ("cell_id", "status", "environment_id"))
        for index, (cell_id, status, environment_id) in enumerate(zip(*columns, strict=True)):
            cell = cells.setdefault(cell_id, CellRepeats(first=index))
            cell.num_planned += 1
            if status == "ok":
                cell.by_environment.setdefault(environment_id, []).append(index)
        return list(cells.values())

    def find_places(self, rows: Iterable[int]) -> list[int]:
        """Return for each of the rows its number, from 0, among the repeats that have a result."""
        return [self._places[row] for row in rows]

    def describe_groups(self, groups: Iterable[Sequence[int]]) -> Iterator[Row]:
        """Yield the figures of each group of rows that count, less those of `summarize_columns`."""
        return map(self._describe_group, groups)

    def summarize_columns(self, groups: Sequence[Sequence[int]]) -> pd.DataFrame:
        """Return the medians and maxima of each group of rows that count, a row for each; missing where unknown."""
        rows = self._results.iloc[[row for group in groups for row in group]]
        owners = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        # Never flat is longer than any time: where half of the repeats or more were not, the cell was not.
        is_never = rows["sustained_seconds"].notna() & rows["flat_after_seconds"].isna()
        times = rows[[*MEDIANS, "flat_after_seconds"]].assign(
            flat_after_seconds=rows["flat_after_seconds"].mask(is_never, math.inf)
        )
        medians = times.groupby(owners).median().replace(math.inf, math.nan)
        return medians.join(rows[list(LARGEST)].groupby(owners).max()).reindex(range(len(groups)))

    def take_columns(self, cells: Sequence[int], firsts: Sequence[int], computed: Container[str]) -> dict[str, Any]:
        """Return the columns of a summary that single repeats say, one value for each of its rows.

        `cells`: of each row a repeat of its cell. `firsts`: of each row the first repeat that counts, -1 without one;
        it says every column of environment and conditions that is not `computed` from all repeats.
        """
        taken = {name: self._results[name].take(cells).array for name in ("run_id", "cell_id", *CELL_COLUMNS)}
        chosen = [first if first >= 0 else len(self._results) for first in firsts]
        for name in (*ENVIRONMENT_COLUMNS, *CONDITION_COLUMNS):
            if name not in computed:
                taken[name] = pd.Series(self._results[name].reindex(chosen), dtype=RESULT_COLUMNS[name]).array
        return taken

    def _describe_group(self, group: Sequence[int]) -> Row:
        names = ("center_step_seconds", "machine", "host", "instance_type")
        clocks = self._select_known("gpu_sm_clock_mhz", group)
        num_by_mean = self._select_known("summarized_by", group).count("mean")
        return {
            "num_counted": len(group),
            **{
                name: merge_notes(self._select_known(name, group), len(group), num_by_mean)
                for name in ("unchecked", "notes")
            },
            # By how much the slowest repeat's median SM clock lies below the fastest one's, as a share of it.
            "gpu_sm_clock_spread": float(1 - min(clocks) / max(clocks)) if clocks else None,
            "num_steady": sum(self._select_known("reached_steady", group)),
            "num_steps_taken": sum(self._select_known("num_steps_taken", group)),
            **describe_center(*([self.values(name)[index] for index in group] for name in names)),
            **{name: self._average_rate(name, group) for name in RATES},
        }

    def _average_rate(self, name: str, group: Sequence[int]) -> float | None:
        """Return the geometric mean of a rate, of the machines' where there are several, as a step time's centre is."""
        values, machines = self.values(name), self.values("machine")
        known = [index for index in group if values[index] is not None]
        rates = [values[index] for index in known]
        if not rates:
            return None
        if min(rates) <= 0:  # a model without counted operations
            return float(np.median(rates))
        means = average_by_machine(rates, [machines[index] for index in known])
        return compute_geometric_mean(list(means.values()))

    def _select_known(self, name: str, group: Sequence[int]) -> list[Any]:
        values = self.values(name)
        return [values[index] for index in group if values[index] is not None]

    def _list_values(self, name: str) -> list[Any]:
        column = self._results[name]
        return [value if known else None for value, known in zip(column.to_list(), column.notna(), strict=True)]

    @cached_property
    def _places(self) -> list[int]:
        has_result = [status not in WITHOUT_RECORD for status in self.values("status")]
        places: list[int] = (np.cumsum(has_result) - 1).tolist()
        return places


def choose_counted(repeats: Repeats, ok: Sequence[int]) -> Sequence[int]:
    """Return the rows that figures come from: those with sound conditions, or all where there are none such."""
    verdicts = repeats.values("verdict")
    sound = [index for index in ok if verdicts[index] in SOUND_VERDICTS]
    return sound or ok
