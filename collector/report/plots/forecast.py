"""Plot a memory forecast: observations, fitted curves and intervals."""

import math
from pathlib import Path

import altair as alt
import pandas as pd
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text
from collector.forecast.fit import Forecast
from collector.forecast.trend import CANDIDATES

# Okabe and Ito's colours, which stay apart for colour-blind readers; each with its own dashes.
_COLOURS = ["#E69F00", "#009E73", "#CC79A7", "#0072B2"]
_DASHES = [[2, 2], [8, 3], [8, 3, 2, 3], [1, 0]]
_NAMES = [candidate.name for candidate in CANDIDATES]
_OBSERVATION_COLOUR = "#333333"
_MAX_GRID_LINES = 12
PICTURE_WIDTH_PIXELS = 800
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def plot_forecast(forecast: Forecast) -> alt.LayerChart:
    """Draw memory by year on a log2 axis: the observations, one line per candidate, its 95 % prediction interval.

    The intervals begin at the last observation. Refused years are not drawn. A band whose lower bound is zero or less
    runs down to the edge of the plot. As wide as its container; readable from 360 px.
    """
    floor_power, ceiling_power = _find_powers(forecast)
    memory = _memory_axis(floor_power, ceiling_power)
    layers = [
        _draw_bands(forecast, memory, floor_gb=2.0**floor_power),
        _draw_lines(forecast, memory),
        _draw_observations(forecast, memory),
    ]
    return alt.LayerChart(layer=layers, width="container", height=380)


def check_plot_path(path: Path) -> None:
    """Raise UserError where the file's ending names no format that a plot can be written in."""
    if path.suffix not in (".html", ".png", ".svg"):
        raise UserError(f"--plot {path}: the ending says the format; it takes .html, .png or .svg")


def save_forecast_plot(forecast: Forecast, path: Path) -> None:
    """Write the plot to an .html file that opens offline, or to a .png or .svg. UserError for another ending."""
    check_plot_path(path)
    chart = plot_forecast(forecast)
    if path.suffix == ".html":
        replace_text(path, chart.to_html(inline=True))
        return
    spec = chart.properties(width=PICTURE_WIDTH_PIXELS).to_dict()  # a picture has no container to be as wide as
    if path.suffix == ".svg":
        replace_text(path, vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE))
        return
    picture = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE)
    with replace_file(path) as file:
        file.write(picture)


def _find_powers(forecast: Forecast) -> tuple[int, int]:
    """Return the powers of 2 that bound the axis: below the least observation, above every bound of the asked year."""
    asked = forecast.predictions[forecast.predictions["year"] == forecast.year]
    observed = forecast.observations["memory_gb"]
    highest = max(observed.max(), asked["upper_gb"].max()) if asked["upper_gb"].notna().any() else observed.max()
    return math.floor(math.log2(observed.min())) - 1, math.ceil(math.log2(highest))


def _memory_axis(floor_power: int, ceiling_power: int) -> alt.Y:
    step = math.ceil((ceiling_power - floor_power) / _MAX_GRID_LINES)
    return alt.Y(
        "memory_gb:Q",
        title="GB of memory, log scale",
        scale=alt.Scale(type="log", base=2, domain=[2.0**floor_power, 2.0**ceiling_power], nice=False),
        axis=alt.Axis(values=[2.0**power for power in range(floor_power, ceiling_power + 1, step)], format=",~r"),
    )


def _date_axis() -> alt.X:
    return alt.X("date:Q", title=None, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(format="d", tickCount=6))


def _draw_bands(forecast: Forecast, memory: alt.Y, *, floor_gb: float) -> alt.Chart:
    """Draw the intervals from the last observation on: over the data, four bands would hide the points."""
    ahead = forecast.predictions[forecast.predictions["year"] >= forecast.observations["year"].max()]
    reaching_zero = ahead["lower_gb"].isna() & ahead["refusal"].isna()
    bands = _date(ahead.assign(memory_gb=ahead["lower_gb"].mask(reaching_zero, floor_gb)))
    chart: alt.Chart = alt.Chart(bands).mark_area(opacity=0.15, clip=True)
    return chart.encode(x=_date_axis(), y=memory, y2="upper_gb:Q", color=_candidate_colour())


def _draw_lines(forecast: Forecast, memory: alt.Y) -> alt.Chart:
    chart: alt.Chart = alt.Chart(_date(forecast.predictions)).mark_line(clip=True, strokeWidth=2)
    return chart.encode(
        x=_date_axis(),
        y=memory,
        color=_candidate_colour(),
        strokeDash=alt.StrokeDash("candidate:N", scale=alt.Scale(domain=_NAMES, range=_DASHES)),
        tooltip=[
            alt.Tooltip("candidate:N"),
            alt.Tooltip("year:Q", format="d"),
            alt.Tooltip("memory_gb:Q", title="forecast, GB", format=",.3r"),
            alt.Tooltip("lower_gb:Q", title="95 % from, GB", format=",.3r"),
            alt.Tooltip("upper_gb:Q", title="95 % to, GB", format=",.3r"),
        ],
    )


def _draw_observations(forecast: Forecast, memory: alt.Y) -> alt.Chart:
    points = alt.Chart(forecast.observations)
    chart: alt.Chart = points.mark_point(filled=True, size=45, opacity=0.9, color=_OBSERVATION_COLOUR)
    return chart.encode(
        x=_date_axis(),
        y=memory,
        tooltip=[
            alt.Tooltip("name:N", title="GPU"),
            alt.Tooltip("year:Q", format="d"),
            alt.Tooltip("memory_gb:Q", title="memory, GB", format="~r"),
        ],
    )


def _date(predictions: pd.DataFrame) -> pd.DataFrame:
    """Add the date that each prediction is for; refused years stay as gaps, at which a line breaks."""
    return predictions.drop(columns="refusal").assign(date=predictions["year"] + 0.5)


def _candidate_colour() -> alt.Color:
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolType="stroke", symbolSize=600, symbolOpacity=1)
    return alt.Color("candidate:N", scale=alt.Scale(domain=_NAMES, range=_COLOURS), legend=legend)
