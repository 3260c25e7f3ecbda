"""The look of all plots: colours, rows with their names, and the Vega-Lite document of a chart."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from bench.registry import FRAMEWORKS, Framework

# Okabe and Ito's colours, which stay apart for colour-blind readers (jfly.uni-koeln.de/color).
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#ececec"
COLOURS_BY_FRAMEWORK: dict[Framework, str] = {"pytorch": VERMILLION, "tensorflow": BLUE, "jax": GREEN}
COLOURS_BY_LABEL = {FRAMEWORKS[name].label: colour for name, colour in COLOURS_BY_FRAMEWORK.items()}
FRAMEWORK_COLOURS = alt.Scale(domain=list(COLOURS_BY_LABEL), range=list(COLOURS_BY_LABEL.values()))

# In a plot of rows, from the middle of a row downwards in pixels: its name, what it shows, what lies below that.
NAME_OFFSET, MARK_OFFSET, BELOW_OFFSET = -10, 5, 14
MAX_NAME_PIXELS = 330

AnyChart = alt.Chart | alt.LayerChart | alt.ConcatChart


def to_spec(chart: AnyChart) -> dict[str, Any]:
    """Return `chart` as a Vega-Lite document in the house style. It names no URL, its schema's neither."""
    axis = {"labelColor": INK, "titleColor": INK, "gridColor": PALE, "domainColor": GREY, "tickColor": GREY}
    styled = chart.configure(font="system-ui, sans-serif", background="transparent", padding=4)
    styled = styled.configure_view(stroke=None).configure_axis(labelFontSize=11, titleFontWeight="normal", **axis)
    styled = styled.configure_legend(labelColor=INK, labelFontSize=11, symbolSize=90, symbolOpacity=1, offset=8)
    styled = styled.configure_text(align="left", baseline="middle", fontSize=11, limit=MAX_NAME_PIXELS)
    spec: dict[str, Any] = styled.to_dict()
    del spec["$schema"]
    return spec


def stack_rows(rows: pd.DataFrame, layers: list[alt.Chart], *, row_pixels: int) -> alt.LayerChart:
    """Return `layers` over the same rows, with the name of each row above it and not in a margin.

    `rows`: name, panel, row (from 0 in each panel), what the layers show, and the columns that the page filters by. The
    chart is as high as its largest panel.
    """
    base = alt.Chart().encode(x=alt.value(0), y=row_position(), text="name:N", tooltip="name:N")
    halo = base.mark_text(yOffset=NAME_OFFSET, stroke="white", strokeWidth=4)  # keeps the name readable across lines
    named = [*layers, halo, base.mark_text(yOffset=NAME_OFFSET, color=INK)]
    height = row_pixels * int(rows["row"].max() + 1)
    return alt.LayerChart(data=rows, layer=named, width="container", height=height)


def make_scale(names: list[str], values: Mapping[str, str] | Mapping[str, list[int]]) -> alt.Scale:
    """Return the scale that draws each of `names` as its colour, shape or dashes in `values`, in this order."""
    return alt.Scale(domain=names, range=[values[name] for name in names])


def row_position() -> alt.Y:
    """Return the vertical place of a row by its number."""
    return alt.Y("row:O", axis=None)
