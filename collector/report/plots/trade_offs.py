"""Plot what is weighed against each other: cost against time, GPUs against efficiency, and what GPUs gain by model."""

import altair as alt
import pandas as pd

from collector.report.plots.batches import BATCH_AXIS, GAP_PIXELS, MOST_PIXELS, SHAPES
from collector.report.plots.marks import (
    BLUE,
    COLOURS_BY_LABEL,
    FRAMEWORK_COLOURS,
    GREEN,
    INK,
    LABEL_PIXELS,
    ORANGE,
    PURPLE,
    SHIFT,
    SKY,
    VERMILLION,
    cross_out,
    make_scale,
    make_shape_legend,
    number_segments,
    spread_sideways,
)

HEIGHT_PIXELS = 260
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
    return alt.LayerChart(data=rows, layer=layers, width="container", height=HEIGHT_PIXELS)


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
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


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
