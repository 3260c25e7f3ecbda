"""Columns of ratios and their intervals, with as many digits as it takes to tell them from each other and from 1."""

import pandas as pd

from collector.ratio_words import format_ratio, format_ratios
from collector.tables.columns import interval_column, number_column
from collector.tables.table import Column
from collector.units import NOT_THERE, RATIO, Unit, format_number

LEAST_WIDTH = 1e-6
"""Of an interval, as a share: below it is what rounding leaves of one without any width."""


def ratio_column(title: str, name: str, unit: Unit) -> Column:
    """Return the column of a ratio `name`, with the digits of the interval `name_low` to `name_high` beside it."""
    if unit is not RATIO:
        return number_column(title, name, unit)
    return Column(title=title, sources=(name, f"{name}_low", f"{name}_high"), format=_format_center, align="right")


def ratio_interval_column(title: str, name: str, unit: Unit) -> Column:
    """Return the column of an interval of ratios, with as many digits as tell its ends from each other and from 1."""
    if unit is not RATIO:
        return interval_column(title, f"{name}_low", f"{name}_high", unit)
    return Column(title=title, sources=(f"{name}_low", f"{name}_high"), format=_format_ends, align="right")


def _format_center(ratio: float, low: float, high: float) -> str:
    if pd.isna(ratio):
        return NOT_THERE
    has_interval = not pd.isna(low) and not pd.isna(high)
    has_width = has_interval and high > low * (1 + LEAST_WIDTH)
    return format_ratio(ratio, low, high) if has_width else format_number(ratio, RATIO)


def _format_ends(low: float, high: float) -> str:
    return NOT_THERE if pd.isna(low) or pd.isna(high) else " to ".join(format_ratios(low, high))
