"""Plot lines of points along the batch, the tenants or the GPUs, and costs over times."""

from collections.abc import Callable, Sequence

import altair as alt
import pandas as pd

from collector.report.plots.marks import (
    BLUE,
    COLOURS_BY_LABEL,
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
    encode_frameworks,
    make_scale,
    make_shape_legend,
    number_segments,
    spread_sideways,
)

HEIGHT_PIXELS = 240
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "triangle-left")
"""Those that are told apart at a point's size; a cross is for unsound conditions."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3])
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GAP_PIXELS, MOST_PIXELS = 7, 30
"""How far apart the series of a panel stand at each place, and how wide all of them are at most."""
X_TITLES = {"batch_size": "batch", "tenants": "tenants", "num_gpus": "GPUs"}
MakeY = Callable[[str], alt.Y]
"""Makes the vertical place of a column: layers have to agree in their axis."""
LOG_SCALE = alt.Scale(type="log", nice=False, padding=12)
# Where an axis has one place alone, its label is the value there, with all of its digits.
LOG_AXIS = alt.Axis(labelExpr="format(datum.value, '.4~r')", tickCount=8, labelOverlap="greedy", labelSeparation=6)


def plot_lines(
    rows: pd.DataFrame, *, x: str, value: str, make_y: MakeY, beneath: Sequence[alt.Chart] = ()
) -> alt.LayerChart:
    """Draw a line for each series along `x`, on a log axis to the base 2, with its intervals, over `beneath`.

    `rows`: panel, series, x (of X_TITLES), value, low, high (an interval, may be missing), is_sound, and framework (for
    people) where that says the colour. A line breaks at a row without `value` and at an unsound one, which is crossed.
    """
    series = rows["series"].astype("category")
    names = list(series.cat.categories)  # of all panels
    ordered = rows.assign(series=series.astype("str")).sort_values(["series", x], kind="stable", ignore_index=True)
    points = ordered.assign(segment=number_segments(ordered, "series", value))
    points = points[points[value].notna()]
    points = points.assign(shift=spread_sideways(points, ["panel"], "series", gap=GAP_PIXELS, most=MOST_PIXELS))
    scale = alt.Scale(type="log", base=2, nice=False, padding=MOST_PIXELS / 2 + 4)
    # With more ticks wanted, some would stand between powers of 2.
    axis = alt.Axis(format="~r", labelOverlap="greedy", tickCount=4)
    place, y = alt.X(f"{x}:Q", title=f"{X_TITLES[x]}, log scale", scale=scale, axis=axis), make_y(f"{value}:Q")
    colour, shape, dash = _encode_series(points, names)
    tooltip: Tooltips = [
        "series:N",
        f"{x}:Q",
        *(alt.Tooltip(f"{name}:Q", format=",.4r") for name in (value, "low", "high")),
    ]
    base = alt.Chart().encode(x=place, color=colour)
    layers = [
        *beneath,
        *(
            [
                base.transform_filter("isValid(datum.low)")
                .mark_rule(strokeWidth=2, xOffset=SHIFT)
                .encode(y=make_y("low:Q"), y2="high:Q")
            ]
            if points["low"].notna().any()
            else []
        ),
        base.transform_filter("datum.is_sound")
        .mark_line(strokeWidth=1.5, opacity=0.7, xOffset=SHIFT)
        .encode(y=y, detail="segment:N", strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1, xOffset=SHIFT).encode(y=y, shape=shape, tooltip=tooltip),
        *cross_out(points, place, y, tooltip),
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


def _encode_series(points: pd.DataFrame, names: list[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """Return the colour of each series, that of its framework if it has one, its shape and its dashes."""
    frameworks = dict(zip(points["series"], points["framework"], strict=True)) if "framework" in points else {}
    colours, shapes, dashes = {}, {}, {}
    for number, name in enumerate(names):
        own = SERIES_COLOURS[number % len(SERIES_COLOURS)]
        colours[name] = COLOURS_BY_LABEL.get(frameworks.get(name, ""), own)
        shapes[name], dashes[name] = SHAPES[number % len(SHAPES)], DASHES[number % len(DASHES)]
    present = sorted(set(points["series"]))
    legend = alt.Legend(
        title=None, orient="top", columns=1, labelLimit=LABEL_PIXELS, symbolStrokeWidth=0, values=present
    )
    return (
        alt.Color("series:N", scale=make_scale(names, colours), legend=legend),
        alt.Shape("series:N", scale=make_scale(names, shapes), legend=legend),
        alt.StrokeDash("series:N", scale=make_scale(names, dashes), legend=legend),
    )


def draw_level(value: str, level: float, make_y: MakeY) -> alt.Chart:
    """Return a dashed line across the plot."""
    line: alt.Chart = alt.Chart(pd.DataFrame({value: [level]})).mark_rule(color=INK, strokeDash=[3, 3])
    return line.encode(y=make_y(f"{value}:Q"))


def draw_cards(cards: pd.DataFrame, make_y: MakeY) -> list[alt.Chart]:
    """Return a dashed line for each of `cards` (card, gib), with its name."""
    base = alt.Chart(cards).encode(y=make_y("gib:Q"))
    names = base.mark_text(color=INK, fontSize=9, dy=-5, dx=2).encode(x=alt.value(0), text="card:N")
    return [base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(tooltip=["card:N"]), names]


def plot_costs(rows: pd.DataFrame, currency: str) -> alt.LayerChart:
    """Draw the cost of 1,000 samples over their time, on log axes, with the intervals of both.

    `rows`: panel, name, framework (for people), machine, seconds, seconds_low, seconds_high, cost, cost_low, cost_high.
    """
    x_title, y_title = "s for 1,000 samples, log scale", f"{currency} for 1,000 samples, log scale"
    x = alt.X("seconds:Q", title=x_title, scale=LOG_SCALE, axis=LOG_AXIS)
    y = alt.Y("cost:Q", title=y_title, scale=LOG_SCALE, axis=LOG_AXIS)
    colour = encode_frameworks(rows)
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
