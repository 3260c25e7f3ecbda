"""Marks that mean the same in every plot, and the plot of ratios with their intervals, readable at 360 px."""

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


def encode_frameworks(rows: pd.DataFrame) -> alt.Color:
    """Return the colour of each framework, with a legend of those that occur."""
    legend = alt.Legend(title=None, orient="top", values=sorted(set(rows["framework"])))
    return alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=legend)


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


RATIO_PIXELS = 40
NO_DIFFERENCE, NO_INTERVAL = "no difference shown", "one repeat: no interval"
RATIO_COLUMNS = (
    *("panel", "row", "name", "ratio", "ratio_low", "ratio_high", "is_sound", "scope"),
    *("cell_id", "cell_id_subject", "cell_id_reference"),
)
"""The columns of pairs that a plot of ratios has, as far as the pairs have them."""
EQUALITY_PIXELS = 16
"""The stroke at 1 of a row: not so long that it reaches the row's name."""
LEAST_SPAN = [0.95, 1.05]
"""What the axis of ratios shows at least: otherwise ratios that are all alike would fill it with their rounding."""


def plot_ratios(pairs: pd.DataFrame, *, better: str, worse: str, above_is_better: bool, of: str) -> alt.LayerChart:
    """Draw ratio and interval of each pair around 1, on a log axis where twice and half are equally far from 1.

    `of`: what over what the ratio is, for the axis: the file of a plot is read without the report's words.

    `pairs`: panel, row (from 0 in each panel), name, ratio, ratio_low, ratio_high; `is_sound` where some are not, which
    get a cross. A pair is called `better` or `worse` where its interval excludes 1. Below the name of one without a
    ratio stands that it has none.
    """
    above, below = (better, worse) if above_is_better else (worse, better)
    finding = pd.Series(NO_DIFFERENCE, index=pairs.index)
    finding = finding.mask(pairs["ratio_low"].isna(), NO_INTERVAL)
    finding = finding.mask(pairs["ratio_low"] > 1, above).mask(pairs["ratio_high"] < 1, below)
    rows = pairs[[name for name in RATIO_COLUMNS if name in pairs]].assign(finding=finding)
    colours = dict(zip([better, worse, NO_DIFFERENCE, NO_INTERVAL], [BLUE, VERMILLION, GREY, PURPLE], strict=True))
    names = [name for name in colours if (finding == name).any()]
    legend, found = alt.Legend(title=None, orient="top", columns=1), make_scale(names, colours)
    x = _ratio_axis("ratio:Q")
    tooltip = ["name:N", *(alt.Tooltip(f"{name}:Q", format=",.3r") for name in ("ratio", "ratio_low", "ratio_high"))]
    base = alt.Chart().transform_filter("isValid(datum.ratio)")
    base = base.encode(y=row_position(), color=alt.Color("finding:N", scale=found, legend=legend))
    layers = [
        *_draw_equality(),
        *_draw_intervals(base, rows),
        base.mark_point(filled=True, size=80, opacity=1, yOffset=MARK_OFFSET).encode(x=x, tooltip=tooltip),
        *_cross_out_rows(rows, x),
        *_name_missing(rows),
    ]
    return stack_rows(rows, [_name_axis(layer, of) for layer in layers], row_pixels=RATIO_PIXELS)


def _name_axis(layer: alt.Chart, of: str) -> alt.Chart:
    """Return the layer with what its ratios are of on their axis: layers have to agree in it."""
    x = layer.encoding.x
    named: alt.Chart = layer.encode(x=x.title(f"{of}, log scale")) if isinstance(x, alt.X) else layer
    return named


def _draw_equality() -> list[alt.Chart]:
    """Return two layers: one marks 1 in each row with a ratio, the other makes the axis reach over LEAST_SPAN.

    The marks are short strokes, since a line through all rows would cross their names. The other layer cannot be seen;
    without it each layer would have to repeat a domain of the axis.
    """
    low, high = LEAST_SPAN
    base = alt.Chart().transform_calculate(one="1", least=str(low), most=str(high)).encode(y=row_position())
    strokes = base.transform_filter("isValid(datum.ratio)").mark_tick(
        color=INK, thickness=1, size=EQUALITY_PIXELS, yOffset=MARK_OFFSET
    )
    span = base.mark_rule(opacity=0)
    return [
        strokes.encode(x=_ratio_axis("one:Q")),
        span.encode(x=_ratio_axis("least:Q"), x2="most:Q", tooltip=alt.value(None)),
    ]


def _draw_intervals(base: alt.Chart, rows: pd.DataFrame) -> list[alt.Chart]:
    if rows["ratio_low"].isna().all():
        return []
    chart: alt.Chart = base.transform_filter("isValid(datum.ratio_low)").mark_rule(strokeWidth=2, yOffset=MARK_OFFSET)
    return [chart.encode(x=_ratio_axis("ratio_low:Q"), x2="ratio_high:Q")]


def _ratio_axis(column: str) -> alt.X:
    """Return the axis of ratios for a layer; it goes as far as the rows that are drawn, with all their intervals."""
    # A log scale's own format leaves most labels out where the axis is short; an expression does not.
    return alt.X(
        column,
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=alt.Axis(tickCount=6, labelExpr="format(datum.value, '~r')", labelOverlap="greedy", labelSeparation=6),
    )


def _cross_out_rows(rows: pd.DataFrame, x: alt.X) -> list[alt.Chart]:
    """Return a layer with a cross over the ratios with a side that has no repeat under sound conditions."""
    if "is_sound" not in rows or rows["is_sound"].astype(bool).all():
        return []
    unsound = alt.Chart().transform_filter("isValid(datum.ratio) && !datum.is_sound")
    crosses = unsound.mark_point(shape="cross", angle=45, size=170, color=INK, yOffset=MARK_OFFSET)
    return [crosses.encode(x=x, y=row_position())]


def _name_missing(rows: pd.DataFrame) -> list[alt.Chart]:
    if rows["ratio"].notna().all():
        return []
    missing = alt.Chart().transform_filter("!isValid(datum.ratio)")
    texts = missing.mark_text(yOffset=MARK_OFFSET, color=GREY, dx=12)
    return [texts.encode(x=alt.value(0), y=row_position(), text=alt.value("not compared"))]
