"""Group the repeats of a run by cell and environment, and compute the figures of each group that its repeats give."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from collector.results.frames import (
    CELL_COLUMNS,
    CONDITION_COLUMNS,
    DURATION_COLUMNS,
    ENVIRONMENT_COLUMNS,
    MEMORY_COLUMNS,
    PACE_COLUMNS,
    RESULT_COLUMNS,
    WITHOUT_RECORD,
    Row,
)
from collector.statistics import Estimate, FloatArray, average_by_machine, compute_geometric_mean, estimate_machines
from collector.units import MILLISECOND, format_interval, format_number

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


SEPARATOR = "; "
# A number that stands alone, with its sign and unit: not the digits of a GPU's UUID.
LEVELS = re.compile(r"steps on two levels, (?P<shares>.*): the mean of the steps counts")
"""What a measuring process says of its own steps (`bench.verdicts.series`), which knows no other repeat."""
NUMBER = re.compile(r"(?<![\w-])[+-]?\d+(\.\d+)?(?=[\s%,;)]|$)")


def merge_notes(notes: Iterable[str], num_repeats: int, num_by_mean: int = 0) -> str | None:
    """Return the notes, each once, with `; ` between them and how many of the repeats have it; None without any.

    `notes`: of the repeats that have some, one or more each, joined so. Notes that differ in their numbers only are
    one, with the numbers of the first; every repeat's own numbers are in its row. A note that all have alike stands
    as it is. `num_by_mean`: the repeats that the mean of their steps stands for, which the note on levels says.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for joined in notes:
        in_repeat: dict[str, str] = {}
        for note in joined.split(SEPARATOR):
            in_repeat.setdefault(NUMBER.sub("#", note), note)
        for pattern, note in in_repeat.items():
            found[pattern].append(note)
    return SEPARATOR.join(_count_note(alike, num_repeats, num_by_mean) for alike in found.values()) or None


def _count_note(alike: list[str], num_repeats: int, num_by_mean: int) -> str:
    levels = LEVELS.fullmatch(alike[0])
    if levels and num_repeats > 1:
        return _describe_levels(levels["shares"], len(alike), num_repeats, max(num_by_mean, len(alike)))
    differs = len(set(alike)) > 1
    if len(alike) == num_repeats and not differs:
        return alike[0]
    return f"{alike[0]} ({len(alike)} of {num_repeats} repeats{', figures of the first' if differs else ''})"


def _describe_levels(shares: str, number: int, num_repeats: int, num_by_mean: int) -> str:
    """Return in how many repeats the steps jump, and that the mean stands for these and for the others alike."""
    whom = f"all {num_repeats}" if num_by_mean == num_repeats else f"{num_by_mean}"
    return (
        f"steps on two levels in {number} of {num_repeats} repeats, {shares}{' in the first of them' * (number > 1)}: "
        f"the mean of the steps stands for {whom}"
    )


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


INTERVAL_COLUMNS = {
    "center_step_seconds": "float64",
    "interval_low_seconds": "float64",
    "interval_high_seconds": "float64",
    "log_standard_error": "float64",
    "degrees_of_freedom": "float64",
    "interval_method": "str",
    "interval_reason": "str",
    "num_machines": "int64",
    "machines": "str",
    "hostnames": "str",
    "instance_types": "str",
    "machine_step_seconds": "str",
}
"""`center_step_seconds`: the geometric mean of the repeats' `center_step_seconds`, or of the machines' where
there are several.
`interval_method`: what the interval was computed from; `interval_reason`: why there is none.
`hostnames`: the hosts, by name and what tells those of one name apart.
`instance_types`: the machine types of a cluster's nodes; missing where no placement says them.
`machine_step_seconds`: a JSON object, the geometric mean of the repeats' centres on each machine."""
NO_INTERVAL = "one repeat says nothing about the spread between repeats"


def describe_center(
    values: Sequence[float], machines: Sequence[str], hosts: Sequence[str], instance_types: Sequence[str | None]
) -> Row:
    """Return INTERVAL_COLUMNS of the repeats that a cell's figures come from: their centres, and where they ran."""
    estimate, means = estimate_machines(values, machines)
    unit = f"{len(means)} machines" if len(means) > 1 else f"{len(values)} repeats"
    row = _describe_estimate(estimate, f"Student's t, {unit}")
    return row | {
        "num_machines": len(means),
        "machines": "; ".join(sorted(means)),
        "hostnames": "; ".join(sorted(set(hosts))),
        "instance_types": _list_types(instance_types),
        "machine_step_seconds": json.dumps(means),
    }


def read_estimate(row: Row, suffix: str = "", *, center: str = "center_step_seconds") -> Estimate:
    """Return the estimate in a row, whose columns may carry `suffix`.

    `center`: the column of its centre: in a row of `summarize_cells` the seconds of a step, in one of `compare_cells`
    the `ratio`.
    """
    error, freedom = row[f"log_standard_error{suffix}"], row[f"degrees_of_freedom{suffix}"]
    return Estimate(
        center=float(row[f"{center}{suffix}"]),
        log_standard_error=None if pd.isna(error) else float(error),
        degrees_of_freedom=None if pd.isna(freedom) else float(freedom),
    )


def read_machine_means(row: Row, suffix: str = "") -> dict[str, float]:
    """Return the geometric mean of the repeats' centres (seconds) on each machine of a row of `summarize_cells`."""
    means: dict[str, float] = json.loads(row[f"machine_step_seconds{suffix}"])
    return means


def _list_types(types: Sequence[str | None]) -> str | None:
    """Return the machine types, `unknown` for repeats that do not say theirs; None where none does."""
    known = set(types) - {None}
    return "; ".join(sorted(kind or "unknown" for kind in set(types))) if known else None


def _describe_estimate(estimate: Estimate, method: str) -> Row:
    interval = estimate.interval
    low, high = interval or (None, None)
    return {
        "center_step_seconds": estimate.center,
        "interval_low_seconds": low,
        "interval_high_seconds": high,
        "log_standard_error": estimate.log_standard_error,
        "degrees_of_freedom": estimate.degrees_of_freedom,
        "interval_method": method if interval else None,
        "interval_reason": None if interval else NO_INTERVAL,
    }
