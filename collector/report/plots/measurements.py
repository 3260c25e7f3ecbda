"""Plot what was measured, in charts as wide as their container, readable at 360 px.

Rows keep the order of the tables. `summary` has the columns of `summarize_cells` and `add_labels`.
"""

import json

import altair as alt
import numpy as np
import pandas as pd

from collector.labels import FRAMEWORK_NAMES
from collector.report.plots.style import (
    BELOW_OFFSET,
    BLUE,
    FRAMEWORK_COLOURS,
    GREEN,
    GREY,
    INK,
    MARK_OFFSET,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILLION,
    row_position,
    stack_rows,
)
from collector.tables.durations import DURATION_TITLES
from collector.units import MILLISECOND

MAX_CIRCLES = 100
"""Repeats of a row that are drawn: more cannot be told apart on a screen."""
SERIES_PIXELS = 130
STEP_TIME_PIXELS, RATIO_PIXELS, DURATION_PIXELS, DISTRIBUTION_PIXELS = 46, 40, 40, 28
REPEAT_COLOURS = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY]
NOT_SOUND = " (no repeat under sound conditions)"
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


def plot_step_times(rows: pd.DataFrame, repeats: pd.DataFrame, *, max_circles: int = MAX_CIRCLES) -> alt.LayerChart:
    """Draw the step time and its interval of each row, and below it the step time of each repeat; a panel per workload.

    `rows`: rows of `summary`; `repeats`: cell_id, workload, variant, framework, repeat, center_step_seconds. Of each
    row at most `max_circles` repeats are drawn, evenly from the fastest to the slowest.
    """
    times = _scale_times(
        rows, {"median": "center_step_seconds", "low": "interval_low_seconds", "high": "interval_high_seconds"}
    )
    unsound = rows["num_sound"] == 0
    times = times.assign(
        row=times.groupby("panel").cumcount(),
        name=times["variant"].where(~unsound, times["variant"] + NOT_SOUND),
    )
    points = _scale_times(repeats, {"median": "center_step_seconds"}).assign(repeat=repeats["repeat"])
    points = points.merge(times[["panel", "variant", "row"]], on=["panel", "variant"])
    points = spread_groups(points, ["panel", "row"], "median", max_circles)
    x = alt.X("median:Q", title="ms per step", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4))
    colour = alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=None)
    tooltip = ["variant:N", *(alt.Tooltip(f"{name}:Q", format=",.4r") for name in ("median", "low", "high"))]
    medians, circles = (chart.encode(x=x, y=row_position(), color=colour) for chart in (alt.Chart(), alt.Chart(points)))
    layers = [
        medians.mark_point(filled=True, size=80, opacity=1, yOffset=MARK_OFFSET).encode(tooltip=tooltip),
        circles.mark_point(size=28, opacity=0.9, yOffset=BELOW_OFFSET).encode(tooltip=["repeat:Q", tooltip[1]]),
    ]
    if times["low"].notna().any():
        known = alt.Chart().transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, yOffset=MARK_OFFSET)
        low = alt.X("low:Q", title="ms per step")
        layers.insert(0, known.encode(x=low, x2="high:Q", y=row_position(), color=colour))
    return stack_rows(times, layers, row_pixels=STEP_TIME_PIXELS)


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
    """Return a layer that says of each pair without a ratio that it was not compared."""
    if rows["ratio"].notna().all():
        return []
    missing = alt.Chart().transform_filter("!isValid(datum.ratio)")
    texts = missing.mark_text(yOffset=MARK_OFFSET, color=GREY, dx=12)
    return [texts.encode(x=alt.value(0), y=row_position(), text=alt.value("not compared"))]


def plot_durations(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw how long each part of a repeat took, one stacked bar per row, in seconds.

    `rows`: of `summary`, with `panel` and `rest`, its name in the panel.
    """
    titles = list(DURATION_TITLES.values())
    parts = rows[["cell_id", "panel", "rest", *DURATION_TITLES]].rename(columns={**DURATION_TITLES, "rest": "name"})
    parts = parts.assign(row=rows.groupby("panel").cumcount())
    colours = alt.Scale(domain=titles, range=[PURPLE, ORANGE, VERMILLION, SKY, GREEN])
    bars = (
        alt.Chart()
        .transform_fold([*titles], as_=["part", "seconds"])
        .transform_calculate(order=f"indexof({json.dumps(titles)}, datum.part)")
        .mark_bar(size=12, yOffset=MARK_OFFSET)
        .encode(
            x=alt.X("seconds:Q", title="seconds", stack=True, axis=alt.Axis(tickCount=5)),
            y=row_position(),
            color=alt.Color("part:N", scale=colours, legend=alt.Legend(title=None, orient="top", columns=3)),
            order="order:Q",
            tooltip=["name:N", "part:N", alt.Tooltip("seconds:Q", format=",.3r")],
        )
    )
    return stack_rows(parts, [bars], row_pixels=DURATION_PIXELS)


def plot_step_series(points: pd.DataFrame) -> alt.LayerChart:
    """Draw every step of each repeat in its order, a panel per cell; the warm-up lies left of the cut, on grey.

    `points`: cell_id, panel, repeat, step, and in milliseconds median, low and high of the steps that a point stands
    for. `step` counts from 0 at the first timed one. The axis does not start at zero.
    """
    scale = alt.Scale(zero=False)
    title = "step, 0: the first timed one"
    x = alt.X("step:Q", title=title, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=5))
    legend = alt.Legend(title="repeat", orient="top", titleOrient="left")
    colour = alt.Color("repeat:O", legend=legend, scale=alt.Scale(range=REPEAT_COLOURS))
    starts = points.groupby(["panel", "cell_id"], sort=False)["step"].min().reset_index(name="start")
    warmup = starts.assign(start=starts["start"] - 0.5, cut=-0.5)
    base = alt.Chart(points).encode(x=x, color=colour)
    tooltip = ["repeat:O", "step:Q", alt.Tooltip("median:Q", title="ms", format=",.4r")]
    layers = [
        alt.Chart(warmup).mark_rect(color=PALE).encode(x=alt.X("start:Q", title=title), x2="cut:Q"),
        alt.Chart(warmup).mark_rule(color=GREY).encode(x=alt.X("cut:Q", title=title)),
        base.mark_rule(opacity=0.35).encode(y=alt.Y("low:Q", scale=scale, title="ms"), y2="high:Q"),
        base.mark_point(filled=True, size=16, opacity=0.8).encode(
            y=alt.Y("median:Q", title="ms", scale=scale, axis=alt.Axis(tickCount=4)), tooltip=tooltip
        ),
    ]
    return alt.LayerChart(layer=layers, width="container", height=SERIES_PIXELS)


def plot_distributions(quantiles: pd.DataFrame) -> alt.LayerChart:
    """Draw the distribution of the timed steps of each repeat: a line from least to greatest, bars, and the median.

    `quantiles`: repeat and, in milliseconds, least, p5, q1, median, q3, p95 and greatest. The axis does not start at
    zero.
    """
    y = alt.Y("repeat:O", title="repeat")
    base = alt.Chart(quantiles).encode(y=y)
    x, axis, names = (
        alt.Scale(zero=False),
        alt.Axis(tickCount=5),
        ("least", "p5", "q1", "median", "q3", "p95", "greatest"),
    )
    tooltip = [alt.Tooltip("repeat:O"), *(alt.Tooltip(f"{name}:Q", format=",.4r") for name in names)]
    layers = [
        base.mark_rule(color=GREY).encode(x=alt.X("least:Q", title="ms per step", scale=x, axis=axis), x2="greatest:Q"),
        base.mark_bar(size=6, color=SKY).encode(x=alt.X("p5:Q", title="ms per step"), x2="p95:Q"),
        base.mark_bar(size=12, color=BLUE).encode(x=alt.X("q1:Q", title="ms per step"), x2="q3:Q", tooltip=tooltip),
        base.mark_tick(size=18, thickness=3, color=INK).encode(x=alt.X("median:Q", title="ms per step")),
    ]
    return alt.LayerChart(layer=layers, width="container", height=DISTRIBUTION_PIXELS)


def spread_groups(rows: pd.DataFrame, keys: list[str], column: str, num_most: int) -> pd.DataFrame:
    """Return at most `num_most` rows of each group of `keys`, evenly by their rank in `column`, with both ends.

    `num_most` is at least 2. There can be ten thousand groups, so all of them are ranked at once.
    """
    groups = rows.groupby(keys)[column]
    ranks = groups.rank(method="first").to_numpy() - 1
    step = (groups.transform("size").to_numpy() - 1) / (num_most - 1)
    # A rank is drawn if it is the nearest to one of 0, step, 2 step, ...; where step is 1 or less, all are.
    places = np.round(ranks / np.maximum(step, 1))
    drawn: pd.DataFrame = rows[np.round(places * np.maximum(step, 1)) == ranks]
    return drawn


def _scale_times(frame: pd.DataFrame, columns: dict[str, str]) -> pd.DataFrame:
    """Return each of `columns` (new name to old) in milliseconds, framework (its name for people), panel and names."""
    times = {name: frame[column] / MILLISECOND.size for name, column in columns.items()}
    names = {"cell_id": frame["cell_id"], "panel": frame["workload"], "variant": frame["variant"]}
    return pd.DataFrame({**names, "framework": frame["framework"].map(FRAMEWORK_NAMES), **times})
