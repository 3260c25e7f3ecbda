"""The look of all plots: colours, rows with their names, and the Vega-Lite document of a chart."""

from typing import Any

import altair as alt
import pandas as pd

from bench.registry import FRAMEWORKS, Framework

# Okabe and Ito's colours, which stay apart for colour-blind readers (jfly.uni-koeln.de/color).
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#ececec"
COLOURS_BY_FRAMEWORK: dict[Framework, str] = {"pytorch": VERMILLION, "tensorflow": BLUE, "jax": GREEN}
FRAMEWORK_COLOURS = alt.Scale(
    domain=[FRAMEWORKS[name].label for name in COLOURS_BY_FRAMEWORK], range=list(COLOURS_BY_FRAMEWORK.values())
)

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


def stack_rows(names: pd.Series, layers: list[alt.Chart], *, row_pixels: int) -> alt.LayerChart:
    """Return the layers as one chart, in which the name of each row stands above the row and not in a margin.

    `names`: of the rows from the top. `layers`: charts whose data have the number of a row, from 0, as `row`.
    """
    rows = pd.DataFrame({"row": range(len(names)), "name": names.to_numpy()})
    return stack_panel_rows(rows, layers, row_pixels=row_pixels)


def stack_panel_rows(rows: pd.DataFrame, layers: list[alt.Chart], *, row_pixels: int) -> alt.LayerChart:
    """Return the layers as one chart, as `stack_rows` does, for a page that shows the rows of one panel at a time.

    `rows`: name, row (from 0 in each panel), panel, and the columns that the page filters by. The chart is as high as
    its largest panel.
    """
    base = alt.Chart(rows).encode(x=alt.value(0), y=row_position(), text="name:N", tooltip="name:N")
    halo = base.mark_text(yOffset=NAME_OFFSET, stroke="white", strokeWidth=4)  # keeps the name readable across lines
    named = [*layers, halo, base.mark_text(yOffset=NAME_OFFSET, color=INK)]
    return alt.LayerChart(layer=named, width="container", height=row_pixels * int(rows["row"].max() + 1))


def row_position() -> alt.Y:
    """Return the vertical place of a row by its number."""
    return alt.Y("row:O", axis=None)
