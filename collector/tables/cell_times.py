"""Columns of the step times of cells: where the repeats of a cell disagree, with the times that they had."""

from functools import partial

import pandas as pd

from collector.tables.table import Column
from collector.units import MILLISECOND, NUM_TIME_DIGITS, format_interval, format_number

TIME_SOURCES = ("center_step_seconds", "least_repeat_seconds", "most_repeat_seconds", "disagreement")


def cell_time_column(title: str, *, num_digits: int = NUM_TIME_DIGITS) -> Column:
    return Column(
        title=title,
        sources=TIME_SOURCES,
        format=partial(format_cell_time, num_digits=num_digits),
        unit=MILLISECOND,
        align="right",
    )


def format_cell_time(
    seconds: float, least: float, most: float, disagreement: object, *, num_digits: int = NUM_TIME_DIGITS
) -> str:
    """Return `24.34`, or `63.98 (61.3 to 69.6 ms, repeats disagree)` of a mean that no repeat had."""
    text = format_number(None if pd.isna(seconds) else float(seconds), MILLISECOND, num_digits)
    repeats = quote_repeats(least, most, disagreement)
    return f"{text} ({repeats})" if repeats else text


def quote_repeats(least: float, most: float, disagreement: object) -> str:
    """Return `61.3 to 69.6 ms, repeats disagree`; empty where they agree."""
    if not isinstance(disagreement, str) or not disagreement:
        return ""
    return f"{format_interval(least, most, MILLISECOND)} ms, repeats disagree"
