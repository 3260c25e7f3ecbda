"""Plot the roofline: arithmetic intensity against the rate of each cell, under the roofs of its device by precision.

S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009.
"""

import altair as alt
import numpy as np
import pandas as pd

from collector.report.plots.marks import cross_out
from collector.report.plots.style import FRAMEWORK_COLOURS, GREY, make_scale
from collector.units import TFLOPS

HEIGHT_PIXELS = 300
SPAN = 3.0
"""How far the roofs go beyond the cells and the ridges to either side, as a factor."""
PRECISION_SHAPES = {"fp32": "circle", "tf32": "square", "fp16": "triangle-up", "bf16": "diamond"}
PRECISION_DASHES = {"fp32": [1, 0], "tf32": [6, 3], "fp16": [2, 2], "bf16": [8, 3, 2, 3]}
AXIS = alt.Axis(format="~g", labelOverlap="greedy")


def plot_roofline(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the rate of each cell over its intensity, on log axes, and the roof of each precision.

    `rows`: name, framework (for people), precision, intensity (FLOP/byte), rate, peak (FLOP/s), bandwidth (bytes/s),
    is_sound, and panel, the device. A roof without a known bandwidth is flat, one without a known peak is not drawn.
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
    ]
    return alt.LayerChart(data=points, layer=layers, width="container", height=HEIGHT_PIXELS)


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
