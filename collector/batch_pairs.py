"""Pair each batch with the next smaller one of cells that are otherwise equal.

The answers, the table of batches, the overview of the report and `compare` all have these pairs from here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from collector.machines import SIDES, are_comparable
from collector.results.cells import PROTOCOL_FIELDS, select_alone
from collector.results.frames import CELL_COLUMNS, Row, list_rows

SERIES_COLUMNS = (
    *(name for name in CELL_COLUMNS if name not in ("batch_size", *PROTOCOL_FIELDS)),
    *("hardware_id", "framework_version"),
)
"""What is equal in the cells of a series: all but the batch and how long was measured."""
READ_COLUMNS = (
    *SERIES_COLUMNS,
    *("batch_size", "gpu_name", "cpu_model", "num_counted", "instance_types", "hostnames"),
    *("center_step_seconds", "log_standard_error", "degrees_of_freedom", "cell_id", "environment_id"),
    *("num_machines", "machines", "machine_step_seconds"),
)


@dataclass(frozen=True, kw_only=True)
class BatchSeries:
    """The cells that are equal but for their batch."""

    rows: tuple[Row, ...]
    """With READ_COLUMNS, each batch once, the smallest first; two or more."""
    pairs: tuple[Row, ...]
    """The columns of both sides: each batch as subject over the next smaller one as reference; one or more."""


def list_batch_pairs(summary: pd.DataFrame) -> list[Row]:
    """Return the pairs of all series: they are judged together."""
    return [pair for series in list_batch_series(summary) for pair in series.pairs]


def list_batch_series(summary: pd.DataFrame) -> list[BatchSeries]:
    """Return each series that has a pair, in the order of the plan.

    A pair is chosen by its batches and not by their speed. A batch counts where it has an interval and a repeat under
    sound conditions; its reference is the next smaller one that it can be compared with: they ran on the same machines
    or each on several.
    """
    known = select_alone(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    rows = known[list(READ_COLUMNS)].sort_values("batch_size", kind="stable")
    order = known.groupby(list(SERIES_COLUMNS), dropna=False, sort=False).ngroup()
    found = [
        tuple(list_rows(own.drop_duplicates("batch_size"))) for _, own in rows.groupby(order.loc[rows.index], sort=True)
    ]
    series = [BatchSeries(rows=own, pairs=tuple(_pair_neighbours(own))) for own in found]
    return [one for one in series if one.pairs]


def _pair_neighbours(rows: tuple[Row, ...]) -> Iterator[Row]:
    for place, subject in enumerate(rows):
        reference = next((row for row in reversed(rows[:place]) if are_comparable(row, subject)), None)
        if reference is not None:
            yield _join_sides(subject, reference)


def _join_sides(subject: Row, reference: Row) -> Row:
    shared = {name: subject[name] for name in ("device", "num_gpus")}
    sides = zip(SIDES, (subject, reference), strict=True)
    return shared | {
        f"{name}_{side}": value for side, row in sides for name, value in row.items() if name not in shared
    }
