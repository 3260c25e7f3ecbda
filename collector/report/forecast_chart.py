"""Draw a forecast: observations, candidates, and the winner's interval up to the year asked for."""

import math

import altair as alt
import pandas as pd

from collector.forecast.fit import CANDIDATES, Forecast
from collector.report.charts import BLUE, GREY, INK, ORANGE, Figure, to_spec

NAMES = list(CANDIDATES)
MAX_POWERS_OF_TWO = 16
"""An axis that spans more of them is marked in powers of ten."""
LEGEND = alt.Legend(title=None, orient="bottom", columns=3, symbolType="stroke", symbolSize=600, symbolOpacity=1)
COLOUR = alt.Color("candidate:N", scale=alt.Scale(domain=NAMES, range=[ORANGE, BLUE, GREY]), legend=LEGEND)
DASH = alt.StrokeDash("candidate:N", scale=alt.Scale(domain=NAMES, range=[[2, 2], [1, 0], [1, 3]]))
X = alt.X(
    "date:Q",
    title=None,
    scale=alt.Scale(zero=False, nice=False, padding=8),
    axis=alt.Axis(format="d", tickCount=6),
)
"""Decimal years."""


def show_forecast(forecast: Forecast) -> Figure:
    """Return the plot as a figure, with what it shows in words."""
    words = f"{forecast.series.subject} by year, with the candidates and the winner's interval up to {forecast.year}"
    return Figure(title=forecast.series.subject, spec=to_spec(plot_forecast(forecast)), description=words)


def plot_forecast(forecast: Forecast) -> alt.LayerChart:
    """Draw values by year on a log axis: observations, candidates, the winner's intervals from the last one on.

    Eight bands would hide one another; refused years are gaps, at which a line breaks. Below stands whom to name for
    the data.
    """
    winner, observations = forecast.ranking.winner, forecast.series.observations
    y = make_value_axis(find_bounds(forecast), forecast.series.unit)
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
        .encode(x=X, y=y, y2="upper:Q", color=COLOUR),
        alt.Chart(lines).mark_line(clip=True).encode(x=X, y=y, color=COLOUR, strokeWidth=width, strokeDash=DASH),
        points.encode(x=X, y=y),
    ]
    chart = alt.LayerChart(layer=layers, width="container", height=380)
    if not forecast.series.attribution:
        return chart
    credit = f"Data: {forecast.series.attribution}"
    title = alt.TitleParams(credit, orient="bottom", anchor="start", fontSize=10, fontWeight="normal", color=GREY)
    return chart.properties(title=title)


def find_bounds(forecast: Forecast) -> tuple[float, float]:
    """Return what the axis has to span: the observations and every bound of the asked year."""
    asked = forecast.predictions[forecast.predictions["year"] == forecast.year]
    values = pd.concat([forecast.series.observations["value"], asked["lower"], asked["upper"]])
    return float(values.min()), float(values.max())


def make_value_axis(bounds: tuple[float, float], unit: str) -> alt.Y:
    """Return a log axis from a power of 2 below the bounds to one above, or of 10 where they are far apart."""
    base = 2 if math.log2(bounds[1] / bounds[0]) <= MAX_POWERS_OF_TWO else 10
    scale = alt.Scale(type="log", base=base, domain=list(bounds), nice=True)
    axis = alt.Axis(tickCount=12, format=",~r" if base == 2 else ".0e")
    return alt.Y("value:Q", title=f"{unit}, log scale", scale=scale, axis=axis)
