"""Columns of ratios and their intervals, written as everywhere (collector.ratio_words)."""

import pandas as pd

from collector.ratio_words import format_ratio, format_ratios
from collector.tables.columns import interval_column, number_column
from collector.tables.table import Column
from collector.units import NOT_THERE, RATIO, Unit


def ratio_column(title: str, name: str, unit: Unit) -> Column:
    """Return the column of a ratio `name`, or of an amount in another unit."""
    if unit is not RATIO:
        return number_column(title, name, unit)
    return Column(title=title, sources=(name,), format=_format_center, align="right")


def ratio_interval_column(title: str, name: str, unit: Unit) -> Column:
    """Return the column of the interval `name_low` to `name_high` of ratios, or of amounts in another unit."""
    if unit is not RATIO:
        return interval_column(title, f"{name}_low", f"{name}_high", unit)
    return Column(title=title, sources=(f"{name}_low", f"{name}_high"), format=_format_ends, align="right")


def _format_center(ratio: float) -> str:
    return NOT_THERE if pd.isna(ratio) else format_ratio(ratio)


def _format_ends(low: float, high: float) -> str:
    return NOT_THERE if pd.isna(low) or pd.isna(high) else " to ".join(format_ratios(low, high))
