"""Plot figures along the batch size: the time of a step, and the memory that it takes under the sizes of cards."""

import altair as alt
import pandas as pd

from collector.report.plots.marks import (
    COLOURS_BY_LABEL,
    GREY,
    INK,
    LABEL_PIXELS,
    SHIFT,
    Tooltips,
    cross_out,
    make_scale,
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
