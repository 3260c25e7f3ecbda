"""The table of sustained speed: that of the first seconds, and that which the steps settled at."""

import pandas as pd

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column
from collector.tables.table import Column, Table, make_table, select_known
from collector.units import MILLISECOND, RATIO, SECOND, format_number


def describe_settling(flat_after_seconds: float, sustained_seconds: float) -> str:
    """Return from when on the speed was flat, in seconds, or that it was not."""
    seconds = format_number(sustained_seconds, SECOND)
    if pd.isna(flat_after_seconds):
        return f"not within {seconds} s"
    return f"{format_number(flat_after_seconds, SECOND)} s, of {seconds} s"


COLUMNS = [
    number_column("step at first", "first_sustained_step_seconds", MILLISECOND),
    number_column("step at last", "settled_step_seconds", MILLISECOND),
    number_column("last / first", "sustained_ratio", RATIO),
    Column(title="flat after", sources=("flat_after_seconds", "sustained_seconds"), format=describe_settling),
]


def make_sustained_table(analysis: Analysis) -> Table | None:
    """Return the speed of each cell whose steps ran on until it was flat; None where none did."""
    summary = analysis.summary
    ratio = summary["settled_step_seconds"] / summary["first_sustained_step_seconds"]
    rows = select_known(summary.assign(sustained_ratio=ratio), COLUMNS[:2])
    if rows.empty:
        return None
    caption = "Sustained speed: the first and the last seconds of steps that ran on, medians of the repeats that count"
    return make_table(caption, [CELL, *COLUMNS], rows)
