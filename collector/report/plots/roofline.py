"""Plot the roofline: each cell's share of the peak and of its bound."""

import altair as alt
import numpy as np
import pandas as pd

from collector.report.plots.style import BLUE, INK, MARK_OFFSET, ORANGE, row_position, stack_rows
from collector.units import PERCENT

BOUNDS = ["arithmetic", "memory"]
PEAK_PERCENT = 100.0
AXIS_TITLE = "% of peak, log scale"


def plot_roofline(rows: pd.DataFrame) -> alt.LayerChart:
    """Draw the share of peak (dot) and of the roofline (diamond) of each row, in percent on a log axis, around 100 %.

    `rows`: name, share_of_peak and share_of_roofline (> 0), bound.
    """
    shares = pd.DataFrame(
        {
            "name": rows["name"].to_numpy(),
            "peak": rows["share_of_peak"].to_numpy() / PERCENT.size,
            "bound": (rows["share_of_roofline"] / PERCENT.size).to_numpy(),
            "by": rows["bound"].to_numpy(),
            "row": range(len(rows)),
        }
    )
    scale = alt.Scale(type="log", domain=_span(shares), nice=False)
    values = [tick * 10.0**power for power in range(-5, 4) for tick in (1, 3)]
    x = alt.X("peak:Q", title=AXIS_TITLE, scale=scale, axis=alt.Axis(values=values, format="~g"))
    colours = alt.Scale(domain=BOUNDS, range=[BLUE, ORANGE])
    colour = alt.Color("by:N", scale=colours, legend=alt.Legend(title="bound by", orient="top", titleOrient="left"))
    percents = [alt.Tooltip(f"{field}:Q", format=",.3r") for field in ("peak", "bound")]
    tooltip = [alt.Tooltip("name:N"), *percents, alt.Tooltip("by:N")]
    base = alt.Chart(shares).encode(y=row_position(), color=colour, tooltip=tooltip)
    layers = [
        alt.Chart(pd.DataFrame({"peak": [PEAK_PERCENT]})).mark_rule(color=INK, strokeDash=[3, 3]).encode(x=x),
        base.mark_point(shape="diamond", size=130, opacity=1, yOffset=MARK_OFFSET).encode(
            x=alt.X("bound:Q", title=AXIS_TITLE)
        ),
        base.mark_point(filled=True, size=50, opacity=1, yOffset=MARK_OFFSET).encode(x=x),
    ]
    return stack_rows(shares["name"], layers, row_pixels=38)


def _span(shares: pd.DataFrame) -> list[float]:
    found = shares[["peak", "bound"]].to_numpy(dtype=float)
    return [min(PEAK_PERCENT, float(np.nanmin(found))) / 1.5, max(PEAK_PERCENT, float(np.nanmax(found))) * 1.5]
