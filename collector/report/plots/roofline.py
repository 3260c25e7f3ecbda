"""Plot the roofline: arithmetic intensity against the rate of each cell, under the roofs of its device by precision.

S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009.
"""

from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from collector.report.plots.marks import GREY, INK, SHIFT, cross_out, encode_frameworks, make_scale, spread_sideways
from collector.units import TFLOPS

HEIGHT_PIXELS = 300
SPANS = (4.0, 25.0)
"""How far the roofs go beyond the cells and the ridges to the left and to the right, as factors: the names of the works
at the ends have room there, also in one column of a paper."""
PRECISION_SHAPES = {"fp32": "circle", "tf32": "square", "fp16": "triangle-up", "bf16": "diamond"}
PRECISION_DASHES = {"fp32": [1, 0], "tf32": [6, 3], "fp16": [2, 2], "bf16": [8, 3, 2, 3]}
MAX_NAMED_WORKS = 12
LINE_BREAK = "\n"
NAME_HEIGHT, Y_PADDING = 22, 12
"""Pixels of a name in two lines, and of the room above the roofs and below the points."""
NAME_PIXELS = 8
"""How far the names of works stand beside their points."""
GAP_PIXELS, MOST_PIXELS = 8, 40
"""How far apart the programs of a work stand, whose intensity is the same, and how wide all of them are at most."""
AXIS = alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=6)


def plot_roofline(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the rate of each cell over its intensity, on log axes, and the roof of each precision.

    `rows`: name, work (model, phase and batch, with LINE_BREAK where the name goes on below), framework (for people),
    precision, intensity (FLOP/byte), rate, peak (FLOP/s), bandwidth (bytes/s) and is_sound, of one device. A roof
    without a known bandwidth is flat, one without a known peak is not drawn.
    """
    points = rows.assign(tera=rows["rate"] / TFLOPS.size, peak_tera=rows["peak"] / TFLOPS.size)
    points = points.drop(columns=["rate", "peak", "bandwidth"])
    points = points.assign(shift=spread_sideways(points, ["work"], "name", gap=GAP_PIXELS, most=MOST_PIXELS))
    x = alt.X(
        "intensity:Q", title="FLOP/byte, log scale", scale=alt.Scale(type="log", nice=False, padding=8), axis=AXIS
    )
    y = alt.Y(
        "tera:Q", title="TFLOP/s, log scale", scale=alt.Scale(type="log", nice=False, padding=Y_PADDING), axis=AXIS
    )
    legend = alt.Legend(title=None, orient="top")
    precisions = [name for name in PRECISION_SHAPES if name in set(points["precision"])]
    shape = alt.Shape("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_SHAPES))
    dash = alt.StrokeDash("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_DASHES))
    colour = encode_frameworks(points)
    tooltip = ["name:N", alt.Tooltip("intensity:Q", format=",.3r"), alt.Tooltip("tera:Q", format=",.3r")]
    roofs = alt.Chart(_draw_roofs(rows)).mark_line(color=GREY, strokeWidth=1.5)
    cells = alt.Chart().mark_point(filled=True, size=70, opacity=0.9, xOffset=SHIFT)
    layers = [
        roofs.encode(x=x, y=y, strokeDash=dash, detail="roof:N", tooltip=["roof:N"]),
        cells.encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        *cross_out(points, x, y, ["name:N"]),
        *_name_works(points, x, y),
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


def _push_apart(places: "pd.Series[float]") -> "pd.Series[float]":
    """Return places from the top that are NAME_HEIGHT or more apart, in the same order; the topmost one stays."""
    ordered = places.sort_values(kind="stable")
    steps = np.arange(len(ordered)) * NAME_HEIGHT
    return pd.Series(np.maximum.accumulate(ordered.to_numpy() - steps) + steps, index=ordered.index).reindex(
        places.index
    )


def _name_works(points: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return layers with the name of each kind of work at its fastest point, beside all programs of the work.

    The lower half of the works by intensity is named on the left, the others on the right; names of one side are pushed
    apart. Of more than MAX_NAMED_WORKS, which would cover each other, none is named: the points say it to the pointer.
    """
    fastest = points.groupby("work", sort=False)["tera"].idxmax()
    reach = points["shift"].abs().groupby(points["work"]).transform("max")
    works = points.assign(reach=reach).loc[fastest, ["work", "intensity", "tera", "reach"]]
    if len(works) > MAX_NAMED_WORKS:
        return []
    highest = np.nanmax([points["tera"].max(), points["peak_tera"].max()])
    span = np.log(max(2.0, highest / points["tera"].min()))
    pixels = -works["tera"].map(np.log) / span * (HEIGHT_PIXELS - 2 * Y_PADDING)
    is_right = works["intensity"] > works["intensity"].median()
    sides: tuple[tuple[int, Literal["left", "right"]], ...] = ((-1, "right"), (1, "left"))
    halo: dict[str, Any] = {"stroke": "white", "strokeWidth": 3}  # keeps a name readable across a roof
    layers = []
    for way, align in sides:
        own = works[is_right == (way == 1)]
        if len(own):
            lifted = alt.Chart(own.assign(lift=(_push_apart(pixels[own.index]) - pixels[own.index]).round(1)))
            for look in (halo, {}):
                names = lifted.mark_text(
                    align=align,
                    baseline="middle",
                    lineBreak=LINE_BREAK,
                    lineHeight=NAME_HEIGHT / 2,
                    xOffset=alt.ExprRef(f"{way} * (datum.reach + {NAME_PIXELS})"),
                    yOffset=alt.ExprRef("datum.lift"),
                    fontSize=10,
                    color=INK,
                    **look,
                )
                layers.append(names.encode(x=x, y=y, text="work:N"))
    return layers


def _draw_roofs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the corners of each roof over the cells of one device: precision, roof (in words), intensity, tera."""
    kinds = rows[["precision", "peak", "bandwidth"]].drop_duplicates().dropna(subset=["peak"])
    ridges = kinds["peak"] / kinds["bandwidth"]
    spots = pd.concat([rows["intensity"], ridges]).dropna()
    low, high = float(spots.min()) / SPANS[0], float(spots.max()) * SPANS[1]
    corners = []
    for kind, ridge in zip(kinds.to_dict("records"), ridges, strict=True):
        is_flat = bool(np.isnan(ridge))
        words = f"{kind['precision']}: {kind['peak'] / TFLOPS.size:,.3g} TFLOP/s"
        words += "" if is_flat else f", {kind['bandwidth'] / 1e9:,.4g} GB/s"
        for intensity in sorted({low, high, *([] if is_flat else [float(ridge)])}):
            rate = kind["peak"] if is_flat else min(kind["peak"], kind["bandwidth"] * intensity)
            corners.append((kind["precision"], words, intensity, rate / TFLOPS.size))
    return pd.DataFrame(corners, columns=["precision", "roof", "intensity", "tera"])
