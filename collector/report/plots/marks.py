"""Marks that mean the same in every plot: a cross for unsound conditions, lines that break where a cell is missing."""

from collections.abc import Sequence
from typing import Literal

import altair as alt
import pandas as pd

from collector.report.plots.style import INK

Tooltips = Sequence[str | alt.Tooltip]

LABEL_PIXELS = 270
"""Longest name of a legend: in one column of a paper there is no room for more."""
CROSS_CAPTION = (
    "A cross marks a cell without a repeat under sound conditions; a line breaks there, and at a cell without a figure."
)


SHIFT = alt.ExprRef("datum.shift")
"""The `xOffset` of marks that stand beside each other, by the column that `spread_sideways` makes."""


def spread_sideways(
    rows: pd.DataFrame, groups: list[str], order: str, *, gap: float, most: float
) -> "pd.Series[float]":
    """Return how many pixels each row stands beside its place, so that those at one place do not cover each other.

    Rows with the same values of `groups` stand beside each other by `order`, `gap` pixels apart, and closer where there
    are so many that they would be more than `most` wide.
    """
    own = rows.groupby(groups, sort=False)[order]
    ranks, counts = own.rank(method="dense") - 1, own.transform("nunique")
    gaps = (most / (counts - 1).clip(lower=1)).clip(upper=gap)
    return ((ranks - (counts - 1) / 2) * gaps).astype(float).round(1)


def make_shape_legend(orient: Literal["top", "bottom"]) -> alt.Legend:
    """Return a legend of shapes whose symbols are in ink, which the report swaps for dark pages."""
    return alt.Legend(
        title=None,
        orient=orient,
        columns=1,
        labelLimit=LABEL_PIXELS,
        symbolFillColor=INK,
        symbolStrokeColor=INK,
    )


def cross_out(rows: pd.DataFrame, x: alt.X, y: alt.Y, tooltip: Tooltips) -> list[alt.Chart]:
    """Return a layer with a cross over each row that is not sound (column `is_sound`); none where all of `rows` are.

    The layer has no data of its own: it draws the rows of the chart that it becomes a part of, beside their place where
    they have a `shift`.
    """
    if rows["is_sound"].astype(bool).all():
        return []
    chart: alt.Chart = alt.Chart().transform_filter("!datum.is_sound")
    crosses = chart.mark_point(shape="cross", angle=45, size=150, color=INK, strokeWidth=1.5)
    if "shift" in rows:
        crosses.mark.xOffset = SHIFT
    return [crosses.encode(x=x, y=y, tooltip=list(tooltip))]


def number_segments(rows: pd.DataFrame, series: str, value: str) -> "pd.Series[str]":
    """Return a name for each stretch of a line: the rows of a `series` between two without a sound `value`.

    The rows of a series are in the order in which the line goes. `is_sound` may be absent: then all values are.
    """
    is_gap = rows[value].isna() | ~rows.get("is_sound", pd.Series(True, index=rows.index)).astype(bool)
    breaks = is_gap.groupby(rows[series]).cumsum()
    return rows[series].astype(str) + " / " + breaks.astype(str)
