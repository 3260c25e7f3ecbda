"""Draw the report's figures as Altair charts, as wide as their place and readable at 360 px, and write their files."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from bench.errors import UserError
from bench.registry import FRAMEWORKS, Framework
from bench.schema import Precision
from collector.files import replace_file, replace_text
from collector.forecast.fit import CANDIDATES, Forecast
from collector.results.frames import list_rows
from collector.units import TFLOPS

# Altair refuses charts of more than 5,000 rows wherever one is turned into a document, picture or page. How much is
# drawn is decided by the figures themselves, so that no amount of data can take a report down.
alt.data_transformers.disable_max_rows()

# Okabe and Ito's colours, which stay apart for colour-blind readers (jfly.uni-koeln.de/color).
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#ececec"
COLOURS_BY_FRAMEWORK: dict[Framework, str] = {"pytorch": VERMILLION, "tensorflow": BLUE, "jax": GREEN}
COLOURS_BY_LABEL = {framework.label: COLOURS_BY_FRAMEWORK.get(name, GREY) for name, framework in FRAMEWORKS.items()}
FRAMEWORK_COLOURS = alt.Scale(domain=list(COLOURS_BY_LABEL), range=list(COLOURS_BY_LABEL.values()))
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
SERIES_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right", "triangle-left")
"""Those that are told apart at a point's size; a cross is for unsound conditions."""
SERIES_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2], [1, 3])
CROSS_CAPTION = (
    "A cross marks a cell without a repeat under sound conditions; a line breaks there, and at a cell without a figure."
)
LABEL_PIXELS = 270
"""Longest name of a legend: in one column of a paper there is no room for more."""
MAX_NAME_PIXELS = 330
HEIGHT_PIXELS = 240
SHIFT = alt.ExprRef("datum.shift")
"""The `xOffset` of marks that stand beside each other, by the column that `spread_sideways` makes."""
MakeAxis = Callable[[str], Any]
"""Makes the place of a column: layers have to agree in their axis."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One panel of a plot."""

    title: str
    spec: dict[str, Any]
    """Its Vega-Lite document."""
    description: str
    """Its content in words, for who cannot see it."""
    note: str = ""
    """How many of how many things it draws; empty where it draws all."""


def to_spec(chart: alt.LayerChart | alt.ConcatChart | alt.Chart) -> dict[str, Any]:
    """Return `chart` as a Vega-Lite document in the house style. It names no URL, its schema's neither."""
    axis = {"labelColor": INK, "titleColor": INK, "gridColor": PALE, "domainColor": GREY, "tickColor": GREY}
    styled = chart.configure(font="system-ui, sans-serif", background="transparent", padding=4)
    styled = styled.configure_view(stroke=None).configure_axis(labelFontSize=11, titleFontWeight="normal", **axis)
    styled = styled.configure_legend(labelColor=INK, labelFontSize=11, symbolSize=90, symbolOpacity=1, offset=8)
    styled = styled.configure_text(align="left", baseline="middle", fontSize=11, limit=MAX_NAME_PIXELS)
    spec: dict[str, Any] = styled.to_dict()
    del spec["$schema"]
    return spec


def spread_sideways(rows: pd.DataFrame, group: str, order: str, *, gap: float, most: float) -> "pd.Series[float]":
    """Return how many pixels each row stands beside its place, so that those at one place do not cover each other.

    Rows of one `group` stand beside each other by `order`, `gap` pixels apart, and closer where there are so many that
    they would be more than `most` wide.
    """
    own = rows.groupby(group, sort=False)[order]
    ranks, counts = own.rank(method="dense") - 1, own.transform("nunique")
    gaps = (most / (counts - 1).clip(lower=1)).clip(upper=gap)
    return ((ranks - (counts - 1) / 2) * gaps).astype(float).round(1)


def cross_out(x: alt.X, y: alt.Y, **offsets: Any) -> alt.Chart:
    """Return a layer with a cross over each row of its chart that is not sound (column `is_sound`)."""
    chart: alt.Chart = alt.Chart().transform_filter("datum.is_sound === false")
    crosses: alt.Chart = chart.mark_point(shape="cross", angle=45, size=150, color=INK, strokeWidth=1.5, **offsets)
    return crosses.encode(x=x, y=y)


def make_scale(names: list[str], values: Mapping[str, Any]) -> alt.Scale:
    """Return the scale that draws each of `names` as its colour, shape or dashes in `values`, in this order."""
    return alt.Scale(domain=names, range=[values[name] for name in names])


# In a plot of rows, from the middle of a row downwards in pixels: its name, and what it shows.
NAME_OFFSET, MARK_OFFSET = -10, 5
RATIO_PIXELS = 40
NO_DIFFERENCE, NO_INTERVAL = "no difference shown", "one repeat: no interval"
RATIO_COLUMNS = ("row", "name", "ratio", "ratio_low", "ratio_high", "is_sound")
LEAST_SPAN = (0.95, 1.05)
"""What the axis of ratios shows at least: otherwise ratios that are all alike would fill it with their rounding."""


def plot_ratios(pairs: pd.DataFrame, *, better: str, worse: str, above_is_better: bool, of: str) -> alt.LayerChart:
    """Draw ratio and interval of each pair on a log axis, where twice and half are equally far from 1.

    `of`: what over what the ratio is, for the axis: the file of a plot is read without the report's words.

    `pairs`: row (from 0), name, ratio, ratio_low, ratio_high; `is_sound` where some are not. A pair is called `better`
    or `worse` where its interval excludes 1. The name of a row stands above it and not in a margin.
    """
    above, below = (better, worse) if above_is_better else (worse, better)
    finding = pd.Series(NO_DIFFERENCE, index=pairs.index)
    finding = finding.mask(pairs["ratio_low"].isna(), NO_INTERVAL)
    finding = finding.mask(pairs["ratio_low"] > 1, above).mask(pairs["ratio_high"] < 1, below)
    rows = pairs[[name for name in RATIO_COLUMNS if name in pairs]].assign(finding=finding)
    colours = dict(zip([better, worse, NO_DIFFERENCE, NO_INTERVAL], [BLUE, VERMILLION, GREY, PURPLE], strict=True))
    shown = [name for name in colours if (finding == name).any()]
    legend = alt.Legend(title=None, orient="top", columns=1)
    colour = alt.Color("finding:N", scale=make_scale(shown, colours), legend=legend)
    ends = rows[["ratio", "ratio_low", "ratio_high"]].to_numpy(dtype=float)
    spanned = [*ends[np.isfinite(ends)], *LEAST_SPAN]
    scale = alt.Scale(type="log", nice=False, padding=8, domain=[min(spanned), max(spanned)])
    # A log scale's own format leaves most labels out where the axis is short; an expression does not.
    axis = alt.Axis(tickCount=6, labelExpr="format(datum.value, '~r')", labelOverlap="greedy", labelSeparation=6)
    make_x, y = partial(alt.X, title=f"{of}, log scale", scale=scale, axis=axis), alt.Y("row:O", axis=None)
    x, base = make_x("ratio:Q"), alt.Chart().encode(y=y)
    names = base.encode(x=alt.value(0), text="name:N")
    missing = names.transform_filter("!isValid(datum.ratio)").encode(text=alt.value("not compared"))
    interval = base.transform_filter("isValid(datum.ratio_low)").mark_rule(strokeWidth=2, yOffset=MARK_OFFSET)
    layers = [
        alt.Chart(pd.DataFrame({"ratio": [1.0]})).mark_rule(color=INK).encode(x=x),
        interval.encode(x=make_x("ratio_low:Q"), x2="ratio_high:Q", color=colour),
        base.mark_point(filled=True, size=80, opacity=1, yOffset=MARK_OFFSET).encode(x=x, color=colour),
        cross_out(x, y, yOffset=MARK_OFFSET),
        missing.mark_text(yOffset=MARK_OFFSET, color=GREY, dx=12),
        names.mark_text(yOffset=NAME_OFFSET, stroke="white", strokeWidth=4),  # keeps the name readable across lines
        names.mark_text(yOffset=NAME_OFFSET, color=INK),
    ]
    return alt.LayerChart(data=rows, layer=layers, width="container", height=RATIO_PIXELS * len(rows))


X_TITLES = {"batch_size": "batch", "tenants": "tenants", "num_gpus": "GPUs"}
LINE_GAP_PIXELS, LINE_MOST_PIXELS = 7, 30
"""How far apart the series of a panel stand at each place, and how wide all of them are at most."""


def plot_lines(
    rows: pd.DataFrame, *, x: str, value: str, make_y: MakeAxis, beneath: Sequence[alt.Chart] = ()
) -> alt.LayerChart:
    """Draw a line for each series along `x`, on a log axis to the base 2, with its intervals, over `beneath`.

    `rows`: panel, series, x (of X_TITLES), value, low, high (an interval, may be missing), is_sound, and framework (for
    people) where that says the colour. A line breaks at a row without `value` and at an unsound one, which is crossed.
    """
    series = rows["series"].astype("category")
    points = rows.assign(series=series.astype("str"), line=rows[value].where(rows["is_sound"].astype(bool)))
    shift = spread_sideways(points, "panel", "series", gap=LINE_GAP_PIXELS, most=LINE_MOST_PIXELS)
    scale = alt.Scale(type="log", base=2, nice=False, padding=LINE_MOST_PIXELS / 2 + 4)
    # With more ticks wanted, some would stand between powers of 2.
    axis = alt.Axis(format="~r", labelOverlap="greedy", tickCount=4)
    place, y = alt.X(f"{x}:Q", title=f"{X_TITLES[x]}, log scale", scale=scale, axis=axis), make_y(f"{value}:Q")
    colour, shape, dash = _encode_series(points[points[value].notna()], list(series.cat.categories))
    base = alt.Chart().encode(x=place, color=colour)
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, xOffset=SHIFT)
    line = base.mark_line(strokeWidth=1.5, opacity=0.7, xOffset=SHIFT)
    layers = [
        *beneath,
        interval.encode(y=make_y("low:Q"), y2="high:Q"),
        line.encode(y=make_y("line:Q"), strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1, xOffset=SHIFT).encode(y=y, shape=shape),
        cross_out(place, y, xOffset=SHIFT),
    ]
    return alt.LayerChart(data=points.assign(shift=shift), layer=layers, width="container", height=HEIGHT_PIXELS)


def _encode_series(points: pd.DataFrame, names: list[str]) -> tuple[alt.Color, alt.Shape, alt.StrokeDash]:
    """Return the colour of each series, that of its framework if it has one, its shape and its dashes.

    `names`: of all panels, in which a series has the same look.
    """
    frameworks = dict(zip(points["series"], points["framework"], strict=True)) if "framework" in points else {}
    looks = zip(SERIES_COLOURS * len(names), SERIES_SHAPES * len(names), SERIES_DASHES * len(names), strict=False)
    found = dict(zip(names, looks, strict=False))
    colours = {name: COLOURS_BY_LABEL.get(frameworks.get(name, ""), look[0]) for name, look in found.items()}
    shapes, dashes = ({name: look[at] for name, look in found.items()} for at in (1, 2))
    own = sorted(set(points["series"]))
    legend = alt.Legend(title=None, orient="top", columns=1, values=own, labelLimit=LABEL_PIXELS, symbolStrokeWidth=0)
    return (
        alt.Color("series:N", scale=make_scale(names, colours), legend=legend),
        alt.Shape("series:N", scale=make_scale(names, shapes), legend=legend),
        alt.StrokeDash("series:N", scale=make_scale(names, dashes), legend=legend),
    )


def plot_tokens(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw tokens/s over the time per output token, both on log axes, a line for each series along the batch.

    `rows`: panel, series, framework (for people), batch_size, ms, low, high (the interval of `ms`, may be missing),
    tokens, is_sound and is_front. The points of the Pareto front have a ring, and a line connects them.
    """
    series = rows["series"].astype("category")
    points = rows.assign(series=series.astype("str"), line=rows["tokens"].where(rows["is_sound"].astype(bool)))
    colour, shape, dash = _encode_series(points, list(series.cat.categories))
    axis = alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=6)
    scale = alt.Scale(type="log", nice=False, padding=24)
    make_x = partial(alt.X, title="ms per output token, log scale", scale=scale, axis=axis)
    make_y = partial(alt.Y, title="tokens/s, log scale", scale=scale, axis=axis)
    x, y, line = make_x("ms:Q"), make_y("tokens:Q"), make_y("line:Q")
    base = alt.Chart().encode(x=x, y=y)
    front = base.transform_filter("datum.is_front")
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    halo, names = (
        base.mark_text(align="center", dy=-14, **look).encode(text="batch_size:Q")
        for look in ({"stroke": "white", "strokeWidth": 4}, {"color": INK})
    )
    layers = [
        front.mark_line(color=INK, strokeWidth=5, opacity=0.15).encode(order="ms:Q"),
        base.mark_line(strokeWidth=1.5, opacity=0.7).encode(
            y=line, color=colour, strokeDash=dash, order="batch_size:Q"
        ),
        interval.encode(x=make_x("low:Q"), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(color=colour, shape=shape),
        front.mark_point(shape="circle", size=190, color=INK, strokeWidth=1.2),
        halo,
        names,
        cross_out(x, y),
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=ROOFLINE_PIXELS)


def draw_level(value: str, level: float, make_y: MakeAxis) -> alt.Chart:
    line: alt.Chart = alt.Chart(pd.DataFrame({value: [level]})).mark_rule(color=INK, strokeDash=[3, 3])
    return line.encode(y=make_y(f"{value}:Q"))


def draw_cards(cards: pd.DataFrame, make_y: MakeAxis) -> list[alt.Chart]:
    """Return a dashed line for each of `cards` (card, gib), with its name."""
    base = alt.Chart(cards).encode(y=make_y("gib:Q"))
    names = base.mark_text(color=INK, fontSize=9, dy=-5, dx=2).encode(x=alt.value(0), text="card:N")
    return [base.mark_rule(color=GREY, strokeDash=[4, 3]), names]


ROOFLINE_PIXELS = 300
SPANS = (4.0, 25.0)
"""How far the roofs go beyond the cells and the ridges to the left and to the right, as factors: the names of the works
at the ends have room there, also in one column of a paper."""
PRECISION_SHAPES = dict(zip(get_args(Precision), SERIES_SHAPES, strict=False))
PRECISION_DASHES = dict(zip(get_args(Precision), SERIES_DASHES, strict=False))
MAX_NAMED_WORKS = 12
LINE_BREAK = "\n"
NAME_HEIGHT, Y_PADDING = 22, 12
"""Pixels of a name in two lines, and of the room above the roofs and below the points."""
NAME_PIXELS = 8
"""How far the names of works stand beside their points."""
CELL_GAP_PIXELS, CELL_MOST_PIXELS = 8, 40
"""How far apart the programs of a work stand, whose intensity is the same, and how wide all of them are at most."""


def plot_roofline(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the rate of each cell over its intensity, on log axes, and the roof of each precision.

    `rows`: name, work (model, phase and batch, with LINE_BREAK where the name goes on below), framework (for people),
    precision, intensity (FLOP/byte), tera (TFLOP/s), peak (FLOP/s), bandwidth (bytes/s) and is_sound, of one device. A
    roof without a known bandwidth is flat, one without a known peak is not drawn. S. Williams, A. Waterman,
    D. Patterson, Roofline, CACM 52(4), 2009.
    """
    points = rows.drop(columns=["peak", "bandwidth"])
    shift = spread_sideways(points, "work", "name", gap=CELL_GAP_PIXELS, most=CELL_MOST_PIXELS)
    points, roofs = points.assign(shift=shift), _list_corners(rows)
    axis = alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=6)
    x_scale, y_scale = (alt.Scale(type="log", nice=False, padding=padding) for padding in (8, Y_PADDING))
    x = alt.X("intensity:Q", title="FLOP/byte, log scale", scale=x_scale, axis=axis)
    y = alt.Y("tera:Q", title="TFLOP/s, log scale", scale=y_scale, axis=axis)
    legend = alt.Legend(title=None, orient="top")
    precisions = [name for name in PRECISION_SHAPES if name in set(points["precision"])]
    shape = alt.Shape("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_SHAPES))
    dash = alt.StrokeDash("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_DASHES))
    frameworks = alt.Legend(title=None, orient="top", values=sorted(set(points["framework"])))
    colour = alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=frameworks)
    cells = alt.Chart().mark_point(filled=True, size=70, opacity=0.9, xOffset=SHIFT)
    layers = [
        alt.Chart(roofs).mark_line(color=GREY, strokeWidth=1.5).encode(x=x, y=y, strokeDash=dash, detail="roof:N"),
        cells.encode(x=x, y=y, color=colour, shape=shape),
        cross_out(x, y, xOffset=SHIFT),
        *_name_works(points, max(points["tera"].max(), roofs["tera"].max()), x, y),
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=ROOFLINE_PIXELS)


def _list_corners(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the corners of each roof over the cells of one device: precision, roof (its number), intensity, tera."""
    kinds = rows[["precision", "peak", "bandwidth"]].drop_duplicates().dropna(subset=["peak"])
    ridges = kinds["peak"] / kinds["bandwidth"]
    spots = pd.concat([rows["intensity"], ridges]).dropna()
    ends = [float(spots.min()) / SPANS[0], float(spots.max()) * SPANS[1]]
    corners = [
        (kind["precision"], number, place, min(kind["peak"], slope * place) / TFLOPS.size)
        for number, (kind, ridge) in enumerate(zip(list_rows(kinds), ridges, strict=True))
        for slope in [np.inf if kind["bandwidth"] is None else kind["bandwidth"]]
        for place in sorted({*ends, float(ridge)} if slope < np.inf else ends)
    ]
    return pd.DataFrame(corners, columns=["precision", "roof", "intensity", "tera"])


def _name_works(points: pd.DataFrame, highest: float, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return layers with the name of each kind of work at its fastest point, beside all programs of the work.

    The lower half of the works by intensity is named on the left, the others on the right; names of one side are pushed
    apart. Of more than MAX_NAMED_WORKS, which would cover each other, none is named.
    """
    fastest = points.groupby("work", sort=False)["tera"].idxmax()
    reach = points["shift"].abs().groupby(points["work"]).transform("max")
    works = points.assign(reach=reach).loc[fastest, ["work", "intensity", "tera", "reach"]]
    if len(works) > MAX_NAMED_WORKS:
        return []
    span = np.log(max(2.0, highest / points["tera"].min()))
    pixels = -works["tera"].map(np.log) / span * (ROOFLINE_PIXELS - 2 * Y_PADDING)
    is_right = works["intensity"] > works["intensity"].median()
    sides: tuple[tuple[int, Literal["left", "right"]], ...] = ((-1, "right"), (1, "left"))
    layers = []
    for way, align in sides:
        own = works[is_right == (way == 1)]
        lifted = alt.Chart(own.assign(lift=(_push_apart(pixels[own.index]) - pixels[own.index]).round(1)))
        place: dict[str, Any] = {
            "xOffset": alt.ExprRef(f"{way} * (datum.reach + {NAME_PIXELS})"),
            "yOffset": alt.ExprRef("datum.lift"),
        }
        broken: dict[str, Any] = {"lineBreak": LINE_BREAK, "lineHeight": NAME_HEIGHT / 2, "fontSize": 10, "color": INK}
        halo: dict[str, Any] = {"stroke": "white", "strokeWidth": 3}
        for look in (halo, {}):  # keeps a name readable across a roof
            names = lifted.mark_text(align=align, baseline="middle", **place, **broken, **look)
            layers.append(names.encode(x=x, y=y, text="work:N"))
    return layers


def _push_apart(places: "pd.Series[float]") -> "pd.Series[float]":
    """Return places from the top that are NAME_HEIGHT or more apart, in the same order; the topmost one stays."""
    ordered = places.sort_values(kind="stable")
    steps = np.arange(len(ordered)) * NAME_HEIGHT
    pushed = np.maximum.accumulate(ordered.to_numpy() - steps) + steps
    return pd.Series(pushed, index=ordered.index).reindex(places.index)


MAX_POWERS_OF_TWO = 16
"""An axis that spans more of them is marked in powers of ten."""


def show_forecast(forecast: Forecast) -> Figure:
    words = f"{forecast.series.subject} by year, with the candidates and the winner's interval up to {forecast.year}"
    return Figure(title=forecast.series.subject, spec=to_spec(plot_forecast(forecast)), description=words)


def plot_forecast(forecast: Forecast) -> alt.LayerChart:
    """Draw values by year on a log axis: observations, candidates, the winner's intervals from the last one on.

    Eight bands would hide one another; refused years are gaps, at which a line breaks. Below stands whom to name for
    the data.
    """
    winner, observations, names = forecast.ranking.winner, forecast.series.observations, list(CANDIDATES)
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolType="stroke", symbolSize=600, symbolOpacity=1)
    colour = alt.Color("candidate:N", scale=alt.Scale(domain=names, range=[ORANGE, BLUE, GREY]), legend=legend)
    dash = alt.StrokeDash("candidate:N", scale=alt.Scale(domain=names, range=[[2, 2], [1, 0], [1, 3]]))
    years = alt.Scale(zero=False, nice=False, padding=8)
    x = alt.X("date:Q", title=None, scale=years, axis=alt.Axis(format="d", tickCount=6))
    # The axis spans the observations and every bound of the asked year.
    asked = forecast.predictions[forecast.predictions["year"] == forecast.year]
    values = pd.concat([observations["value"], asked["lower"], asked["upper"]])
    bounds = [float(values.min()), float(values.max())]
    base = 2 if math.log2(bounds[1] / bounds[0]) <= MAX_POWERS_OF_TWO else 10
    axis = alt.Axis(tickCount=12, format=",~r" if base == 2 else ".0e")
    scale = alt.Scale(type="log", base=base, domain=bounds, nice=True)
    y = alt.Y("value:Q", title=f"{forecast.series.unit}, log scale", scale=scale, axis=axis)
    lines = forecast.predictions.drop(columns="refusal").assign(date=forecast.predictions["year"] + 0.5)
    lines["weight"] = (lines["candidate"] == winner).map({True: 3.0, False: 1.4})
    ahead = lines[(lines["year"] > forecast.series.last_year) & (lines["candidate"] == winner)].dropna(subset="upper")
    points = alt.Chart(observations).mark_point(
        filled=True, size=45 if len(observations) <= 60 else 14, opacity=0.8, color=INK
    )
    width = alt.StrokeWidth("weight:Q", scale=None, legend=None)
    layers = [
        alt.Chart(ahead.assign(value=ahead["lower"]))
        .mark_area(opacity=0.18, clip=True)
        .encode(x=x, y=y, y2="upper:Q", color=colour),
        alt.Chart(lines).mark_line(clip=True).encode(x=x, y=y, color=colour, strokeWidth=width, strokeDash=dash),
        points.encode(x=x, y=y),
    ]
    chart = alt.LayerChart(layer=layers, width="container", height=380)
    if not forecast.series.attribution:
        return chart
    credit = f"Data: {forecast.series.attribution}"
    title = alt.TitleParams(credit, orient="bottom", anchor="start", fontSize=10, fontWeight="normal", color=GREY)
    return chart.properties(title=title)


Columns = Literal[1, 2]
WIDTH_MILLIMETRES: dict[Columns, float] = {1: 88.9, 2: 182.0}
"""IEEE's widths of figures: https://ieeeauthorcenter.ieee.org, "Size Requirements for Graphics" (read in November
2026)."""
POINTS_PER_MILLIMETRE = 72 / 25.4
FONT_POINTS = 8.0
FONT_PIXELS = 11.0
"""Of the labels as the report draws them; a file is scaled so that they have FONT_POINTS."""
PICTURE_DPI = 300.0
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts with equal widths of letters. A PDF embeds the first, which vl-convert brings along; an SVG names them."""
FORMATS = (".svg", ".png", ".pdf")
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def check_figure_path(path: Path, option: str = "--output") -> None:
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{option} {path}: the ending says the format; it takes {', '.join(FORMATS)}")


def number_paths(path: Path, number: int) -> list[Path]:
    """Return the paths of so many files: the path itself for one, `name-1.svg`, `name-2.svg`, ... for several."""
    if number == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{index}{path.suffix}") for index in range(1, number + 1)]


def save_figure(figure: Figure, path: Path, *, columns: Columns, has_title: bool) -> None:
    """Write a figure to an .svg, .png or .pdf, on white, with its content in words as the description of an SVG."""
    check_figure_path(path)
    scale = FONT_POINTS / FONT_PIXELS
    spec = size_spec(figure, WIDTH_MILLIMETRES[columns] * POINTS_PER_MILLIMETRE / scale, has_title=has_title)
    kind, width = path.suffix.lower(), WIDTH_MILLIMETRES[columns]
    if kind == ".png":
        data = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale * PICTURE_DPI / 72, ppi=72)
    else:
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
        if kind == ".svg":
            replace_text(path, set_width(svg, width, "mm"))
            return
        # A page of a PDF is as large as the SVG says without a unit, in points.
        data = vl_convert.svg_to_pdf(set_width(svg, width * POINTS_PER_MILLIMETRE, ""))
    with replace_file(path) as file:
        file.write(data)


def size_spec(figure: Figure, width_pixels: float, *, has_title: bool) -> dict[str, Any]:
    config = figure.spec.get("config", {}) | {"font": FONT}
    sized: dict[str, Any] = figure.spec | {
        "width": round(width_pixels),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "white",
        "description": figure.description,
        "config": config,
    }
    if has_title and figure.title and "title" not in sized:
        sized["title"] = {"text": figure.title, "anchor": "start", "fontSize": FONT_PIXELS, "fontWeight": "bold"}
    return sized


def set_width(svg: str, width: float, unit: Literal["mm", ""]) -> str:
    """Scale an SVG to a width in the given unit, its height in proportion; its view box is kept."""
    found = re.search(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)
    if found is None:
        return svg
    height = width * float(found[2]) / float(found[1])
    size = f'width="{found[1]}" height="{found[2]}"'
    return svg.replace(size, f'width="{width:g}{unit}" height="{height:.4g}{unit}"', 1)
