"""Plot ratios with their intervals, readable at 360 px."""

import altair as alt
import pandas as pd

from collector.report.plots.marks import (
    BLUE,
    GREY,
    INK,
    MARK_OFFSET,
    PURPLE,
    VERMILLION,
    row_position,
    stack_rows,
)

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
    legend = alt.Legend(title=None, orient="top", columns=1)
    names = [better, worse, NO_DIFFERENCE, *([NO_INTERVAL] if (finding == NO_INTERVAL).any() else [])]
    found = alt.Scale(domain=names, range=[BLUE, VERMILLION, GREY, PURPLE][: len(names)])
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
