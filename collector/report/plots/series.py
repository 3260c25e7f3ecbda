"""Plot series of points: along the batch, the tenants or the GPUs, and what is weighed against each other."""

from collections.abc import Callable
from functools import partial

import altair as alt
import pandas as pd

from collector.labels import SHARING_NAMES
from collector.report.plots.marks import (
    BLUE,
    COLOURS_BY_LABEL,
    FRAMEWORK_COLOURS,
    GREEN,
    GREY,
    INK,
    LABEL_PIXELS,
    ORANGE,
    PURPLE,
    SHIFT,
    SKY,
    VERMILLION,
    Tooltips,
    cross_out,
    make_scale,
    make_shape_legend,
    number_segments,
    spread_sideways,
)
from collector.units import GIB, MILLISECOND

HEIGHT_PIXELS = 240
MILLISECONDS_TITLE = "ms per step, log scale"
GIB_NAMES = ("gib", "in_use")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "triangle-left")
"""Those that are told apart at a point's size; a cross is for unsound conditions."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3])
GAP_PIXELS, MOST_PIXELS = 7, 30
"""How far apart the series of a panel stand at each batch, and how wide all of them are at most."""
BATCH_AXIS = alt.Axis(format="~r", labelOverlap="greedy", tickCount=4)
"""Of a log scale to the base 2: with more ticks wanted, some would stand between powers of 2."""


def plot_latencies(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the time of a step along the batch, on log axes, one line for each series, with its intervals.

    `rows`: panel, series, framework (for people), batch_size, seconds, low, high, is_sound; rows without `seconds`
    break their line.
    """
    ordered = rows.sort_values(["panel", "series", "batch_size"], kind="stable", ignore_index=True)
    times = {name: ordered[name] / MILLISECOND.size for name in ("seconds", "low", "high")}
    points = ordered.drop(columns=list(times)).assign(**{"ms": times["seconds"]}, low=times["low"], high=times["high"])
    points = points.assign(segment=number_segments(points, "series", "ms"))
    points = _spread_series(points[points["ms"].notna()])
    y = alt.Y("ms:Q", title=MILLISECONDS_TITLE, scale=alt.Scale(type="log"), axis=alt.Axis(format="~g"))
    tooltip: Tooltips = [
        "series:N",
        "batch_size:Q",
        *(alt.Tooltip(f"{name}:Q", format=",.4r") for name in ("ms", "low", "high")),
    ]
    layers = _draw_lines(points, y, "low", tooltip)
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


def plot_memory(rows: pd.DataFrame, cards: pd.DataFrame) -> alt.LayerChart:
    """Draw the memory that a cell's tensors take along the batch, on log axes, and what cards leave for tensors.

    `rows`: panel, series, framework (for people), batch_size, bytes, in_use (bytes, all of the device; may be missing),
    is_sound. `cards`: card (its name), bytes. A bar goes from the memory of tensors to what was in use.
    """
    ordered = rows.sort_values(["panel", "series", "batch_size"], kind="stable", ignore_index=True)
    points = ordered.drop(columns=["bytes", "in_use"]).assign(
        gib=ordered["bytes"] / GIB.size, in_use=(ordered["in_use"] / GIB.size).clip(lower=ordered["bytes"] / GIB.size)
    )
    points = points.assign(segment=number_segments(points, "series", "gib"))
    points = _spread_series(points[points["gib"].notna()])
    scale = alt.Scale(type="log", nice=False, padding=12)  # a nice one would leave less room between the cards
    y = alt.Y(
        "gib:Q",
        title="GiB, log scale",
        scale=scale,
        axis=alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=4),
    )
    tooltip: Tooltips = ["series:N", "batch_size:Q", *(alt.Tooltip(f"{name}:Q", format=",.4r") for name in GIB_NAMES)]
    limits = cards.drop(columns="bytes").assign(gib=cards["bytes"] / GIB.size)
    base = alt.Chart(limits).encode(y=y)
    lines = [*_draw_use(points, y), *_draw_lines(points, y, None, tooltip)]
    rules = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(tooltip=["card:N"])
    names = base.mark_text(color=INK, fontSize=9, dy=-5, dx=2).encode(x=alt.value(0), text="card:N")
    return alt.LayerChart(data=points, layer=[rules, *lines, names], width="container", height=HEIGHT_PIXELS)


def _spread_series(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points with their `shift` beside the batch: series with the same figures would cover each other."""
    return points.assign(shift=spread_sideways(points, ["panel"], "series", gap=GAP_PIXELS, most=MOST_PIXELS))


def _draw_use(points: pd.DataFrame, y: alt.Y) -> list[alt.Chart]:
    if points["in_use"].isna().all():
        return []
    bars = alt.Chart().transform_filter("isValid(datum.in_use)").mark_rule(strokeWidth=5, opacity=0.4, xOffset=SHIFT)
    chart: alt.Chart = bars.encode(x=_batch_position(), y=y, y2="in_use:Q", color=_encode_series(points)[0])
    return [chart]


def _batch_position() -> alt.X:
    return alt.X(
        "batch_size:Q",
        title="batch, log scale",
        scale=alt.Scale(type="log", base=2, nice=False, padding=MOST_PIXELS / 2 + 4),
        axis=BATCH_AXIS,
    )


def _encode_series(points: pd.DataFrame) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """Return the colour of each series, that of its framework, its shape and its dashes: the same in all panels."""
    frameworks = dict(sorted(zip(points["series"], points["framework"], strict=True)))
    names = list(frameworks)
    colours = {name: COLOURS_BY_LABEL[framework] for name, framework in frameworks.items()}
    shapes = {name: SHAPES[number % len(SHAPES)] for number, name in enumerate(names)}
    dashes = {name: DASHES[number % len(DASHES)] for number, name in enumerate(names)}
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=LABEL_PIXELS, symbolStrokeWidth=0)
    return (
        alt.Color("series:N", scale=make_scale(names, colours), legend=legend),
        alt.Shape("series:N", scale=make_scale(names, shapes), legend=legend),
        alt.StrokeDash("series:N", scale=make_scale(names, dashes), legend=legend),
    )


def _draw_lines(points: pd.DataFrame, y: alt.Y, low: str | None, tooltip: Tooltips) -> list[alt.Chart]:
    """Return the layers of the points with their lines, and of their intervals where `low` names their lower end.

    They have no data of their own: they draw the rows of the chart that they become a part of.
    """
    x = _batch_position()
    colour, shape, dash = _encode_series(points)
    base = alt.Chart().encode(x=x, y=y, color=colour)
    layers = [
        base.transform_filter("datum.is_sound")
        .mark_line(strokeWidth=1.5, opacity=0.7, xOffset=SHIFT)
        .encode(detail="segment:N", strokeDash=dash),
        base.mark_point(filled=True, size=55, opacity=1, xOffset=SHIFT).encode(shape=shape, tooltip=list(tooltip)),
        *cross_out(points, x, y, ["series:N", "batch_size:Q"]),
    ]
    if low is not None and points[low].notna().any():
        known = alt.Chart().transform_filter(f"isValid(datum.{low})").mark_rule(strokeWidth=2, xOffset=SHIFT)
        layers.insert(0, known.encode(x=x, y=alt.Y(f"{low}:Q", title=MILLISECONDS_TITLE), y2="high:Q", color=colour))
    return layers


TRADE_OFF_PIXELS = 260
SPEEDUP_PIXELS = 44
"""The height of a model and phase, in which its frameworks stand below each other."""
SERIES_COLOURS = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY]
LOG_SCALE = alt.Scale(type="log", nice=False, padding=12)
# Where an axis has one place alone, its label is the value there, with all of its digits.
LOG_AXIS = alt.Axis(labelExpr="format(datum.value, '.4~r')", tickCount=8, labelOverlap="greedy", labelSeparation=6)
FRAMEWORK_SHAPES = make_scale(list(COLOURS_BY_LABEL), dict(zip(COLOURS_BY_LABEL, SHAPES, strict=False)))
LINEAR_TITLE, SPEEDUP_TITLE = "% of linear", "times faster, log scale"


def plot_costs(rows: pd.DataFrame, currency: str) -> alt.LayerChart:
    """Draw the cost of 1,000 samples over their time, on log axes, with the intervals of both.

    `rows`: panel, name, framework (for people), machine, seconds, seconds_low, seconds_high, cost, cost_low, cost_high.
    """
    x_title, y_title = "s for 1,000 samples, log scale", f"{currency} for 1,000 samples, log scale"
    x = alt.X("seconds:Q", title=x_title, scale=LOG_SCALE, axis=LOG_AXIS)
    y = alt.Y("cost:Q", title=y_title, scale=LOG_SCALE, axis=LOG_AXIS)
    colour = alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=alt.Legend(title=None, orient="top"))
    shape = alt.Shape("machine:N", legend=make_shape_legend("bottom"))
    tooltip = ["name:N", "machine:N", alt.Tooltip("seconds:Q", format=",.3r"), alt.Tooltip("cost:Q", format=",.3r")]
    layers = [alt.Chart().mark_point(filled=True, size=80, opacity=0.9).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=tooltip
    )]  # fmt: skip
    known = alt.Chart().transform_filter("isValid(datum.cost_low)").mark_rule(strokeWidth=1.5)
    if rows["cost_low"].notna().any():
        layers.insert(0, known.encode(x=x, y=alt.Y("cost_low:Q", title=y_title), y2="cost_high:Q", color=colour))
        layers.insert(0, known.encode(x=alt.X("seconds_low:Q", title=x_title), x2="seconds_high:Q", y=y, color=colour))
    return alt.LayerChart(data=rows, layer=layers, width="container", height=TRADE_OFF_PIXELS)


def plot_scaling(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the share of n single GPUs' throughput along n, with its interval; the dashed line is all of it.

    `rows`: panel, series, num_gpus, ratio, ratio_low, ratio_high (1 is linear), is_sound; rows without `ratio` break a
    line.
    """
    ordered = rows.sort_values(["panel", "series", "num_gpus"], kind="stable", ignore_index=True)
    points = ordered.assign(**{name: 100 * ordered[name] for name in ("ratio", "ratio_low", "ratio_high")})
    points = points.assign(segment=number_segments(points, "series", "ratio"))
    points = points[points["ratio"].notna()]
    points = points.assign(shift=spread_sideways(points, ["panel"], "series", gap=GAP_PIXELS, most=MOST_PIXELS))
    scale = alt.Scale(type="log", base=2, nice=False, padding=MOST_PIXELS / 2 + 4)
    x = alt.X("num_gpus:Q", title="GPUs, log scale", scale=scale, axis=BATCH_AXIS)
    y = alt.Y("ratio:Q", title=LINEAR_TITLE, scale=alt.Scale(zero=True))
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=LABEL_PIXELS)
    # Both scales name all series, so that one legend has the colour and the shape.
    names = sorted(set(points["series"]))
    looks = {name: number for number, name in enumerate(names)}
    colours = {name: SERIES_COLOURS[number % len(SERIES_COLOURS)] for name, number in looks.items()}
    colour = alt.Color("series:N", legend=legend, scale=make_scale(names, colours))
    base = alt.Chart().encode(x=x, color=colour)
    linear = alt.Chart(pd.DataFrame({"ratio": [100.0]})).mark_rule(color=INK, strokeDash=[3, 3]).encode(y=y)
    shapes = {name: SHAPES[number % len(SHAPES)] for name, number in looks.items()}
    shape = alt.Shape("series:N", legend=legend, scale=make_scale(names, shapes))
    layers = [
        linear,
        base.transform_filter("datum.is_sound")
        .mark_line(strokeWidth=1.5, opacity=0.7, xOffset=SHIFT)
        .encode(y=y, detail="segment:N"),
        base.mark_point(filled=True, size=60, opacity=1, xOffset=SHIFT).encode(
            y=y, shape=shape, tooltip=["series:N", "ratio:Q"]
        ),
        *cross_out(points, x, y, ["series:N"]),
    ]
    if points["ratio_low"].notna().any():
        rules = alt.Chart().transform_filter("isValid(datum.ratio_low)").mark_rule(strokeWidth=2, xOffset=SHIFT)
        ends = alt.Y("ratio_low:Q", title=LINEAR_TITLE)
        layers.insert(1, rules.encode(x=x, y=ends, y2="ratio_high:Q", color=colour))
    return alt.LayerChart(data=points, layer=layers, width="container", height=TRADE_OFF_PIXELS)


def plot_speedups(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw speedups, a line of the plot for each model and phase, on a log axis around 1.

    `rows`: panel, row (the number of the work in it), name, work (model and phase), framework (for people), ratio,
    ratio_low, ratio_high, is_sound.
    """
    works = list(dict.fromkeys(rows["work"]))
    x = alt.X("ratio:Q", title=SPEEDUP_TITLE, scale=LOG_SCALE, axis=LOG_AXIS)
    y = alt.Y("work:N", title=None, sort=works)
    colour = alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=alt.Legend(title=None, orient="top"))
    shape = alt.Shape("framework:N", scale=FRAMEWORK_SHAPES, legend=alt.Legend(title=None, orient="top"))
    offset = alt.YOffset("framework:N")
    tooltip = ["name:N", *(alt.Tooltip(f"{name}:Q", format=",.3r") for name in ("ratio", "ratio_low", "ratio_high"))]
    base = alt.Chart().encode(y=y, yOffset=offset, color=colour)
    even = alt.Chart(pd.DataFrame({"ratio": [1.0]})).mark_rule(color=INK, strokeDash=[3, 3]).encode(x=x)
    layers = [
        even,
        base.mark_rule(strokeWidth=2).encode(x=alt.X("ratio_low:Q", title=SPEEDUP_TITLE), x2="ratio_high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, shape=shape, tooltip=tooltip),
        *(chart.encode(yOffset=offset) for chart in cross_out(rows, x, y, ["name:N"])),
    ]
    return alt.LayerChart(data=rows, layer=layers, width="container", height=SPEEDUP_PIXELS * len(works))


SHARING_PIXELS = 220
# Each way of sharing has a shape besides its colour, and stands a little beside the others: intervals do not hide each
# other.
SHARING_COLOURS = dict(zip(SHARING_NAMES.values(), (BLUE, VERMILLION, GREEN), strict=True))
SHARING_SHAPES = dict(zip(SHARING_NAMES.values(), ("circle", "square", "triangle-up"), strict=True))
SHARING_OFFSETS = dict(zip(SHARING_NAMES.values(), (0.96, 1.04, 1.0), strict=True))
TENANTS_TITLE = "tenants, log scale"


def plot_aggregate(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw what all tenants get together over one alone, with its interval; the dashed line is one alone.

    `rows`: panel, tenants, sharing (a value of the cell's field), is_sound, ratio, ratio_low, ratio_high, cell_id;
    those without an interval have none drawn, and a line breaks at one without a ratio. The axis begins at zero.
    """
    points = _place(rows)
    alone = pd.DataFrame({"ratio": [1.0]})
    make_y = partial(alt.Y, title="together, over one alone", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4))
    reference = alt.Chart(alone).mark_rule(color=INK, strokeDash=[3, 3]).encode(y=make_y("ratio:Q"))
    return _stack(reference, points, make_y, "together")


def plot_slowdown(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw how many times slower each tenant is than alone, with its interval.

    The dashed line is as many times as there are tenants: below it sharing is a gain. `rows`: as of `plot_aggregate`,
    the ratio being the slowdown.
    """
    points = _place(rows)
    most = int(points["tenants"].max())
    even = pd.DataFrame({"place": [1, most], "ratio": [1, most]})
    values = _list_powers(max(*points["ratio"].dropna(), *points["ratio_high"].dropna(), most))
    low = min(1.0, *points["ratio"].dropna(), *points["ratio_low"].dropna())
    scale = alt.Scale(type="log", base=2, domain=[low / 1.1, values[-1] * 1.1], nice=False)
    make_y = partial(alt.Y, title="times slower, log scale", scale=scale, axis=alt.Axis(values=values, format="~r"))
    line = alt.Chart(even).mark_line(color=INK, strokeDash=[3, 3], strokeWidth=1)
    return _stack(line.encode(x=_place_axis(points), y=make_y("ratio:Q")), points, make_y, "times slower")


def _stack(reference: alt.Chart, points: pd.DataFrame, make_y: Callable[[str], alt.Y], title: str) -> alt.LayerChart:
    x, y = _place_axis(points), make_y("ratio:Q")
    found = [name for name in SHARING_COLOURS if name in set(points["by"])]
    legend = alt.Legend(title=None, orient="top")
    colour = alt.Color("by:N", legend=legend, scale=make_scale(found, SHARING_COLOURS))
    shape = alt.Shape("by:N", legend=legend, scale=make_scale(found, SHARING_SHAPES))
    labels = {"tenants": "tenants", "ratio": title, "ratio_low": "95 % from", "ratio_high": "95 % to"}
    tooltip: Tooltips = [
        "by:N",
        *(alt.Tooltip(f"{name}:Q", title=words, format=",.3r") for name, words in labels.items()),
    ]
    drawn = points[points["ratio"].notna()]
    base = alt.Chart().encode(x=x, color=colour)
    layers = [
        reference,
        base.transform_filter("datum.is_sound").mark_line(strokeWidth=1.5, opacity=0.6).encode(y=y, detail="segment:N"),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, shape=shape, tooltip=list(tooltip)),
        *cross_out(drawn, x, y, tooltip),
    ]
    if drawn["ratio_low"].notna().any():
        known = alt.Chart().transform_filter("isValid(datum.ratio_low)")
        intervals = known.mark_rule(strokeWidth=2).encode(x=x, color=colour)
        layers.insert(1, intervals.encode(y=make_y("ratio_low:Q"), y2="ratio_high:Q"))
    return alt.LayerChart(data=drawn, layer=layers, width="container", height=SHARING_PIXELS)


def _place(rows: pd.DataFrame) -> pd.DataFrame:
    """Add to the points how the GPU was shared (`by`), their `place` on the axis, and their line (`segment`)."""
    by = rows["sharing"].map(SHARING_NAMES)
    names = ["panel", "tenants", "ratio", "ratio_low", "ratio_high", "is_sound", "cell_id"]
    columns = rows[names].reset_index(drop=True)
    placed = columns.assign(by=by.to_numpy(), place=(rows["tenants"] * by.map(SHARING_OFFSETS)).to_numpy())
    placed = placed.sort_values(["panel", "by", "tenants"], ignore_index=True)
    return placed.assign(segment=number_segments(placed, "by", "ratio"))


def _place_axis(points: pd.DataFrame) -> alt.X:
    numbers = sorted(int(number) for number in {1, *points["tenants"]})
    scale = alt.Scale(type="log", base=2, domain=[0.85, numbers[-1] * 1.18], nice=False)
    return alt.X("place:Q", title=TENANTS_TITLE, scale=scale, axis=alt.Axis(values=numbers, format="d"))


def _list_powers(most: float) -> list[float]:
    """Return the powers of 2 from 0.5 to the first that is `most` or more."""
    values = [0.5]
    while values[-1] < most:
        values.append(2 * values[-1])
    return values
