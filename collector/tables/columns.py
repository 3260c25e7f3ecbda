"""The kinds of columns that tables are made of: words, counts, amounts in a unit, ratios, intervals."""

import pandas as pd

from collector.ratio_words import format_ratio, format_ratios
from collector.tables.table import ESSENTIAL, Column
from collector.units import NOT_THERE, Unit, format_interval, format_number


def text_column(title: str, source: str, *, priority: int = ESSENTIAL, is_optional: bool = False) -> Column:
    """Return a column of words; a missing value is shown as nothing."""
    return Column(title=title, sources=(source,), format=_format_text, priority=priority, is_optional=is_optional)


def count_column(title: str, source: str) -> Column:
    """Return a column of whole numbers, thousands grouped."""
    return Column(title=title, sources=(source,), format="{:,}".format, align="right")


def number_column(
    title: str,
    source: str,
    unit: Unit,
    *,
    priority: int = ESSENTIAL,
    is_optional: bool = False,
    num_digits: int | None = None,
) -> Column:
    """Return a column of amounts, held in base units and shown in `unit`; a missing value is shown as a dash."""
    return Column(
        title=title,
        sources=(source,),
        format=lambda value: format_number(_to_float(value), unit, num_digits),
        unit=unit,
        align="right",
        priority=priority,
        is_optional=is_optional,
    )


def interval_column(
    title: str, low: str, high: str, unit: Unit, *, priority: int = ESSENTIAL, num_digits: int | None = None
) -> Column:
    """Return a column of `low to high`, held in base units and shown in `unit`; no interval is shown as a dash."""
    return Column(
        title=title,
        sources=(low, high),
        format=lambda low, high: format_interval(_to_float(low), _to_float(high), unit, num_digits),
        unit=unit,
        align="right",
        priority=priority,
    )


def ratio_column(title: str, name: str) -> Column:
    """Return the column of a ratio, written as everywhere."""
    return Column(title=title, sources=(name,), format=_format_ratio, align="right")


def ratio_interval_column(title: str, name: str) -> Column:
    """Return the column of the interval `name_low` to `name_high` of ratios."""
    return Column(title=title, sources=(f"{name}_low", f"{name}_high"), format=_format_ends, align="right")


def _format_ratio(ratio: float) -> str:
    return NOT_THERE if pd.isna(ratio) else format_ratio(ratio)


def _format_ends(low: float, high: float) -> str:
    return NOT_THERE if pd.isna(low) or pd.isna(high) else " to ".join(format_ratios(low, high))


def _format_text(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def _to_float(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[call-overload,arg-type]


CELL = text_column("cell", "label")
"""The first column of most tables: the name of the cell, of `add_labels`."""
