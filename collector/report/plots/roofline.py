"""Plot the roofline: arithmetic intensity against the rate of each cell, under the roofs of its device by precision.

S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009.
"""

from typing import Literal

import altair as alt
import numpy as np
import pandas as pd

from collector.report.plots.marks import cross_out
from collector.report.plots.style import FRAMEWORK_COLOURS, GREY, INK, make_scale
from collector.units import TFLOPS

HEIGHT_PIXELS = 300
SPAN = 3.0
"""How far the roofs go beyond the cells and the ridges to either side, as a factor."""
PRECISION_SHAPES = {"fp32": "circle", "tf32": "square", "fp16": "triangle-up", "bf16": "diamond"}
PRECISION_DASHES = {"fp32": [1, 0], "tf32": [6, 3], "fp16": [2, 2], "bf16": [8, 3, 2, 3]}
MAX_NAMED_WORKS = 12
NAME_PIXELS = 8
"""How far the names of works stand beside their points."""
AXIS = alt.Axis(format="~g", labelOverlap="greedy", labelSeparation=6)


def plot_roofline(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the rate of each cell over its intensity, on log axes, and the roof of each precision.

    `rows`: name, work (model, phase and batch), framework (for people), precision, intensity (FLOP/byte), rate, peak
    (FLOP/s), bandwidth (bytes/s), is_sound, and panel, the device. A roof without a known bandwidth is flat, one
    without a known peak is not drawn.
    """
    points = rows.assign(tera=rows["rate"] / TFLOPS.size, peak_tera=rows["peak"] / TFLOPS.size)
    points = points.drop(columns=["rate", "peak", "bandwidth"])
    x = alt.X(
        "intensity:Q", title="FLOP/byte, log scale", scale=alt.Scale(type="log", nice=False, padding=8), axis=AXIS
    )
    y = alt.Y("tera:Q", title="TFLOP/s, log scale", scale=alt.Scale(type="log", nice=False, padding=12), axis=AXIS)
    legend = alt.Legend(title=None, orient="top")
    precisions = [name for name in PRECISION_SHAPES if name in set(points["precision"])]
    shape = alt.Shape("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_SHAPES))
    dash = alt.StrokeDash("precision:N", legend=legend, scale=make_scale(precisions, PRECISION_DASHES))
    colour = alt.Color("framework:N", scale=FRAMEWORK_COLOURS, legend=legend)
    tooltip = ["name:N", alt.Tooltip("intensity:Q", format=",.3r"), alt.Tooltip("tera:Q", format=",.3r")]
    corners = [_draw_roofs(own).assign(panel=panel) for panel, own in rows.groupby("panel", sort=False)]
    roofs = alt.Chart(pd.concat(corners)).mark_line(color=GREY, strokeWidth=1.5)
    cells = alt.Chart().mark_point(filled=True, size=70, opacity=0.9)
    layers = [
        roofs.encode(x=x, y=y, strokeDash=dash, detail="roof:N", tooltip=["roof:N"]),
        cells.encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        *cross_out(points, x, y, ["name:N"]),
        *_name_works(x, y),
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


def _name_works(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return two layers with the name of each kind of work beside its fastest point, left of the lower half of them.

    The programs of a work stand below each other, as its intensity is theirs. Of more than MAX_NAMED_WORKS, which would
    cover each other, none is named: the points say it to the pointer. Points without a name have an empty one, as a
    layer without rows has no extent.
    """
    ranked = (
        alt.Chart()
        .transform_joinaggregate(fastest="max(tera)", groupby=["work"])
        .transform_joinaggregate(num_works="distinct(work)", middle="median(intensity)")
    )
    is_named = f"datum.num_works <= {MAX_NAMED_WORKS} && datum.tera === datum.fastest"
    sides: tuple[tuple[str, Literal["left", "right"], int], ...] = (
        ("<=", "right", -NAME_PIXELS),
        (">", "left", NAME_PIXELS),
    )
    return [
        ranked.transform_calculate(shown=f"{is_named} && datum.intensity {half} datum.middle ? datum.work : ''")
        .mark_text(align=align, baseline="middle", dx=pixels, fontSize=10, color=INK)
        .encode(x=x, y=y, text="shown:N")
        for half, align, pixels in sides
    ]


def _draw_roofs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the corners of each roof over the cells of one device: precision, roof (in words), intensity, tera."""
    kinds = rows[["precision", "peak", "bandwidth"]].drop_duplicates().dropna(subset=["peak"])
    ridges = kinds["peak"] / kinds["bandwidth"]
    spots = pd.concat([rows["intensity"], ridges]).dropna()
    low, high = float(spots.min()) / SPAN, float(spots.max()) * SPAN
    corners = []
    for kind, ridge in zip(kinds.to_dict("records"), ridges, strict=True):
        is_flat = bool(np.isnan(ridge))
        words = f"{kind['precision']}: {kind['peak'] / TFLOPS.size:,.3g} TFLOP/s"
        words += "" if is_flat else f", {kind['bandwidth'] / 1e9:,.4g} GB/s"
        for intensity in sorted({low, high, *([] if is_flat else [float(ridge)])}):
            rate = kind["peak"] if is_flat else min(kind["peak"], kind["bandwidth"] * intensity)
            corners.append((kind["precision"], words, intensity, rate / TFLOPS.size))
    return pd.DataFrame(corners, columns=["precision", "roof", "intensity", "tera"])
