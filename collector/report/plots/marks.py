"""Marks that mean the same in every plot: a cross for unsound conditions, lines that break where a cell is missing."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import pandas as pd

from bench.registry import FRAMEWORKS, Framework

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


# Okabe and Ito's colours, which stay apart for colour-blind readers (jfly.uni-koeln.de/color).
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#ececec"
COLOURS_BY_FRAMEWORK: dict[Framework, str] = {"pytorch": VERMILLION, "tensorflow": BLUE, "jax": GREEN}
COLOURS_BY_LABEL = {FRAMEWORKS[name].label: colour for name, colour in COLOURS_BY_FRAMEWORK.items()}
FRAMEWORK_COLOURS = alt.Scale(domain=list(COLOURS_BY_LABEL), range=list(COLOURS_BY_LABEL.values()))

# In a plot of rows, from the middle of a row downwards in pixels: its name, what it shows, what lies below that.
NAME_OFFSET, MARK_OFFSET, BELOW_OFFSET = -10, 5, 14
MAX_NAME_PIXELS = 330

AnyChart = alt.Chart | alt.LayerChart | alt.ConcatChart


def to_spec(chart: AnyChart) -> dict[str, Any]:
    """Return `chart` as a Vega-Lite document in the house style. It names no URL, its schema's neither."""
    axis = {"labelColor": INK, "titleColor": INK, "gridColor": PALE, "domainColor": GREY, "tickColor": GREY}
    styled = chart.configure(font="system-ui, sans-serif", background="transparent", padding=4)
    styled = styled.configure_view(stroke=None).configure_axis(labelFontSize=11, titleFontWeight="normal", **axis)
    styled = styled.configure_legend(labelColor=INK, labelFontSize=11, symbolSize=90, symbolOpacity=1, offset=8)
    styled = styled.configure_text(align="left", baseline="middle", fontSize=11, limit=MAX_NAME_PIXELS)
    spec: dict[str, Any] = styled.to_dict()
    del spec["$schema"]
    return spec


def stack_rows(rows: pd.DataFrame, layers: list[alt.Chart], *, row_pixels: int) -> alt.LayerChart:
    """Return `layers` over the same rows, with the name of each row above it and not in a margin.

    `rows`: name, panel, row (from 0 in each panel), what the layers show, and the columns that the page filters by. The
    chart is as high as its largest panel.
    """
    base = alt.Chart().encode(x=alt.value(0), y=row_position(), text="name:N", tooltip="name:N")
    halo = base.mark_text(yOffset=NAME_OFFSET, stroke="white", strokeWidth=4)  # keeps the name readable across lines
    named = [*layers, halo, base.mark_text(yOffset=NAME_OFFSET, color=INK)]
    height = row_pixels * int(rows["row"].max() + 1)
    return alt.LayerChart(data=rows, layer=named, width="container", height=height)


def make_scale(names: list[str], values: Mapping[str, str] | Mapping[str, list[int]]) -> alt.Scale:
    """Return the scale that draws each of `names` as its colour, shape or dashes in `values`, in this order."""
    return alt.Scale(domain=names, range=[values[name] for name in names])


def row_position() -> alt.Y:
    """Return the vertical place of a row by its number."""
    return alt.Y("row:O", axis=None)
