"""Plot what tenants of one device get, against their number: together, and each of them against itself alone."""

from collections.abc import Callable
from functools import partial

import altair as alt
import pandas as pd

from collector.labels import SHARING_NAMES
from collector.report.plots.marks import BLUE, GREEN, INK, VERMILLION, Tooltips, cross_out, make_scale, number_segments

HEIGHT_PIXELS = 220
# Each way of sharing has a shape besides its colour, and stands a little beside the others: intervals do not hide each
# other.
COLOURS = dict(zip(SHARING_NAMES.values(), (BLUE, VERMILLION, GREEN), strict=True))
SHAPES = dict(zip(SHARING_NAMES.values(), ("circle", "square", "triangle-up"), strict=True))
OFFSETS = dict(zip(SHARING_NAMES.values(), (0.96, 1.04, 1.0), strict=True))
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
    found = [name for name in COLOURS if name in set(points["by"])]
    legend = alt.Legend(title=None, orient="top")
    colour = alt.Color("by:N", legend=legend, scale=make_scale(found, COLOURS))
    shape = alt.Shape("by:N", legend=legend, scale=make_scale(found, SHAPES))
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
    return alt.LayerChart(data=drawn, layer=layers, width="container", height=HEIGHT_PIXELS)


def _place(rows: pd.DataFrame) -> pd.DataFrame:
    """Add to the points how the GPU was shared (`by`), their `place` on the axis, and their line (`segment`)."""
    by = rows["sharing"].map(SHARING_NAMES)
    names = ["panel", "tenants", "ratio", "ratio_low", "ratio_high", "is_sound", "cell_id"]
    columns = rows[names].reset_index(drop=True)
    placed = columns.assign(by=by.to_numpy(), place=(rows["tenants"] * by.map(OFFSETS)).to_numpy())
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
