"""Plot a forecast: observations, candidates, the winner's interval, and everybody's at the year asked for."""

import math

import altair as alt
import pandas as pd

from collector.forecast.fit import CANDIDATES, Forecast
from collector.report.figure import Figure
from collector.report.plots.marks import BLUE, GREY, INK, ORANGE, to_spec

_COLOURS = [ORANGE, BLUE, GREY]
_DASHES = [[2, 2], [1, 0], [1, 3]]
NAMES = list(CANDIDATES)
_MAX_GRID_LINES = 12
_MAX_POWERS_OF_TWO = 16
"""An axis that spans more of them is marked in powers of ten."""
BAR_STEP = 0.035
"""How far apart the candidates' intervals stand behind the year asked for, as a share of all years: 11 pixels of the
narrowest plot, so that their names do not touch."""


def show_forecast(forecast: Forecast) -> Figure:
    """Return the plot as a figure, with what it shows in words."""
    words = f"{forecast.series.subject} by year, with the candidates and their intervals up to {forecast.year}"
    return Figure(title=forecast.series.subject, spec=to_spec(plot_forecast(forecast)), description=words)


def plot_forecast(forecast: Forecast) -> alt.LayerChart:
    """Draw values by year on a log axis: observations, candidates, intervals at the year asked for, the winner's band.

    The band begins at the last observation. Refused years are not drawn. Behind the year asked for, each candidate's
    interval stands as a bar. Under the picture is whom to name for the data. As wide as its container; readable from
    360 px.
    """
    value = make_value_axis(find_bounds(forecast), forecast.series.unit)
    layers = [
        _draw_band(forecast, value),
        _draw_lines(forecast, value),
        *_draw_bars(forecast, value),
        _draw_observations(forecast, value),
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
    observed = forecast.series.observations["value"]
    lows, highs = [observed.min(), asked["lower"].min()], [observed.max(), asked["upper"].max()]
    return min(low for low in lows if not math.isnan(low)), max(high for high in highs if not math.isnan(high))


def make_value_axis(bounds: tuple[float, float], unit: str) -> alt.Y:
    """Return a log axis from a power of 2 below the bounds to one above, or of 10 where they are far apart."""
    low, high = bounds
    base = 2 if math.log2(high / low) <= _MAX_POWERS_OF_TWO else 10
    floor, ceiling = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
    ceiling = max(ceiling, floor + 1)
    step = math.ceil((ceiling - floor) / _MAX_GRID_LINES)
    return alt.Y(
        "value:Q",
        title=f"{unit}, log scale",
        scale=alt.Scale(type="log", base=base, domain=[float(base) ** floor, float(base) ** ceiling], nice=False),
        axis=alt.Axis(
            values=[float(base) ** power for power in range(floor, ceiling + 1, step)],
            format=",~r" if base == 2 else ".0e",
        ),
    )


def make_date_axis() -> alt.X:
    """Return the axis of decimal years."""
    scale = alt.Scale(zero=False, nice=False, padding=8)
    return alt.X("date:Q", title=None, scale=scale, axis=alt.Axis(format="d", tickCount=6))


def _draw_band(forecast: Forecast, value: alt.Y) -> alt.Chart:
    """Draw the winner's intervals from the last observation on: eight bands would hide one another."""
    ahead = _date(forecast.predictions[forecast.predictions["year"] > forecast.series.last_year])
    band = ahead[ahead["candidate"] == forecast.ranking.winner].dropna(subset=["lower", "upper"])
    chart: alt.Chart = alt.Chart(band.assign(value=band["lower"])).mark_area(opacity=0.18, clip=True)
    return chart.encode(x=make_date_axis(), y=value, y2="upper:Q", color=_candidate_colour())


def _draw_lines(forecast: Forecast, value: alt.Y) -> alt.Chart:
    lines = _date(forecast.predictions)
    lines = lines.assign(weight=(lines["candidate"] == forecast.ranking.winner).map({True: 3.0, False: 1.4}))
    chart: alt.Chart = alt.Chart(lines).mark_line(clip=True)
    return chart.encode(
        x=make_date_axis(),
        y=value,
        color=_candidate_colour(),
        strokeWidth=alt.StrokeWidth("weight:Q", scale=None, legend=None),
        strokeDash=alt.StrokeDash("candidate:N", scale=alt.Scale(domain=NAMES, range=_DASHES)),
        tooltip=_make_tooltip(forecast),
    )


def _draw_bars(forecast: Forecast, value: alt.Y) -> list[alt.Chart]:
    """Draw each interval of the year asked for behind that year, and below it whose it is, upwards."""
    asked = _date(forecast.predictions[forecast.predictions["year"] == forecast.year]).dropna(subset=["upper"])
    step = BAR_STEP * (forecast.year - float(forecast.series.observations["date"].min()))
    places = asked["date"] + step * asked["candidate"].map(NAMES.index).rank()
    bars = alt.Chart(asked.assign(date=places, value=asked["lower"]))
    names: alt.Chart = bars.mark_text(angle=270, align="right", baseline="middle", dx=-4, fontSize=9, color=INK)
    rules: alt.Chart = bars.mark_rule(clip=True, strokeWidth=4)
    tooltip = _make_tooltip(forecast)[:1] + _make_tooltip(forecast)[3:]
    return [
        rules.encode(x=make_date_axis(), y=value, y2="upper:Q", color=_candidate_colour(), tooltip=tooltip),
        names.encode(x=make_date_axis(), y=value, text="candidate:N"),
    ]


def _make_tooltip(forecast: Forecast) -> list[alt.Tooltip]:
    unit = forecast.series.unit
    return [
        alt.Tooltip("candidate:N"),
        alt.Tooltip("year:Q", format="d"),
        alt.Tooltip("value:Q", title=f"forecast, {unit}", format=",.3r"),
        alt.Tooltip("lower:Q", title=f"from, {unit}", format=",.3r"),
        alt.Tooltip("upper:Q", title=f"to, {unit}", format=",.3r"),
    ]


def _draw_observations(forecast: Forecast, value: alt.Y) -> alt.Chart:
    observations = forecast.series.observations
    size = 45 if len(observations) <= 60 else 14
    chart: alt.Chart = alt.Chart(observations).mark_point(filled=True, size=size, opacity=0.8, color=INK)
    tooltip = [
        alt.Tooltip("name:N"),
        alt.Tooltip("year:Q", format="d"),
        alt.Tooltip("value:Q", title=forecast.series.unit, format="~r"),
    ]
    return chart.encode(x=make_date_axis(), y=value, tooltip=tooltip)


def _date(predictions: pd.DataFrame) -> pd.DataFrame:
    """Add the date that each prediction is for; refused years stay as gaps, at which a line breaks."""
    return predictions.drop(columns="refusal").assign(date=predictions["year"] + 0.5)


def _candidate_colour() -> alt.Color:
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolType="stroke", symbolSize=600, symbolOpacity=1)
    return alt.Color("candidate:N", scale=alt.Scale(domain=NAMES, range=_COLOURS), legend=legend)
