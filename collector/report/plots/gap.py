"""Plot supply, demand and the gap between them in one picture, with the study's projection beside what came true."""

import altair as alt
import numpy as np
import pandas as pd

from collector.forecast.amounts import format_plain
from collector.forecast.fit import Forecast
from collector.forecast.gap import Gap
from collector.forecast.replay import STUDY_YEAR
from collector.report.plots.forecast import add_credit, make_date_axis, make_value_axis
from collector.report.plots.style import BLUE, GREEN, INK, ORANGE, VERMILLION

SUPPLY, DEMAND, GAP = "supply: one device", "demand: one model", "demand over supply"
PROJECTED, TRUE = f"the study's polynomials for {STUDY_YEAR}", f"what {STUDY_YEAR} brought"
_KINDS = [SUPPLY, DEMAND, GAP, PROJECTED, TRUE]
_COLOURS = [BLUE, VERMILLION, GREEN, ORANGE, INK]
BAR_STEP_YEARS = 0.2
"""How far apart the bars of the study's projections stand, one for each year that its data may have ended in."""


def plot_gap(gap: Gap) -> alt.LayerChart:
    """Draw supply and demand by year on one log axis in the supply's unit, and the gap at the year asked for.

    Points are observed, lines are the winners' forecasts, bands their intervals. The gap is an arrow from supply to
    demand with its number and interval; there is none where it is refused. Bars at 2025 span what the study's
    polynomials give, by the year that its data may have ended in; the diamond is what came true.
    """
    levels = pd.concat(
        [_collect_side(gap.supply, SUPPLY, 1.0), _collect_side(gap.demand, DEMAND, gap.factor)], ignore_index=True
    )
    amounts = levels[["value", "lower", "upper"]].to_numpy(dtype=float)
    bounds = float(np.nanmin(amounts)), float(np.nanmax(amounts))
    value = make_value_axis(bounds, gap.supply.series.values.unit)
    layers = [*_draw_levels(levels, value), *_draw_study(gap, value), *_draw_gap(gap, value)]
    chart = alt.LayerChart(layer=layers, width="container", height=420)
    return add_credit(chart, [each.series.values.attribution for each in (gap.supply, gap.demand)])


def _collect_side(forecast: Forecast, kind: str, factor: float) -> pd.DataFrame:
    observed = forecast.series.observations[["name", "date", "value"]].assign(what="observed")
    rows = forecast.predictions
    chosen = (rows["candidate"] == forecast.ranking.winner) & (rows["year"] > forecast.series.last_year)
    ahead = rows.loc[chosen].dropna(subset=["value"])
    ahead = ahead.assign(what="forecast", date=ahead["year"] + 0.5, name=ahead["candidate"])
    frame = pd.concat([observed, ahead], ignore_index=True).assign(kind=kind)
    frame[["value", "lower", "upper"]] *= factor
    return frame[["name", "date", "value", "lower", "upper", "what", "kind"]]


def _draw_levels(levels: pd.DataFrame, value: alt.Y) -> list[alt.Chart]:
    observed, ahead = (levels[levels["what"] == what] for what in ("observed", "forecast"))
    tooltip = ["name:N", "kind:N", alt.Tooltip("value:Q", format=",.3r")]
    low = alt.Chart(ahead.assign(value=ahead["lower"]))
    band = low.mark_area(opacity=0.2, clip=True).encode(y=value, y2="upper:Q")
    bounds = low.mark_rule(strokeWidth=1).encode(y=value, y2="upper:Q")
    line = alt.Chart(ahead).mark_line(strokeWidth=2.5, point=True, clip=True).encode(y=value, tooltip=tooltip)
    points = alt.Chart(observed).mark_point(filled=True, size=40, opacity=0.8).encode(y=value, tooltip=tooltip)
    return [each.encode(x=make_date_axis(), color=_kind_colour()) for each in (band, bounds, line, points)]


def _draw_study(gap: Gap, value: alt.Y) -> list[alt.Chart]:
    given = [each for each in gap.projections if each.candidate.is_of_study and each.value > 0]
    if not given:
        return []
    frame = pd.DataFrame([{"last": each.last_year, "value": each.value} for each in given])
    bars = frame.groupby("last")["value"].agg(["min", "max"]).reset_index()
    places = STUDY_YEAR + 0.5 - BAR_STEP_YEARS * (bars["last"].max() + 1 - bars["last"])
    bars = bars.assign(date=places, value=bars["min"], upper=bars["max"], kind=PROJECTED)
    true = pd.DataFrame({"date": [STUDY_YEAR + 0.5], "value": [given[0].truth], "kind": [TRUE]})
    tooltip = [alt.Tooltip("last:Q", title="fitted on data up to", format="d"), "value:Q", "upper:Q"]
    rules = alt.Chart(bars).mark_rule(strokeWidth=4).encode(y=value, y2="upper:Q", tooltip=tooltip)
    diamond = alt.Chart(true).mark_point(shape="diamond", filled=True, size=110).encode(y=value)
    return [each.encode(x=make_date_axis(), color=_kind_colour()) for each in (rules, diamond)]


def _draw_gap(gap: Gap, value: alt.Y) -> list[alt.Chart]:
    if gap.refusal is not None:
        return []
    row = gap.years.iloc[-1]
    supplied = float(gap.supply.asked.set_index("candidate")["value"][str(gap.supply.ranking.winner)])
    text = f"x {format_plain(row['value'])} ({format_plain(row['lower'])} to {format_plain(row['upper'])})"
    frame = pd.DataFrame(
        {
            "date": [gap.year + 0.5],
            "value": [supplied],
            "upper": [supplied * row["value"]],
            "text": [text],
            "kind": [GAP],
        }
    )
    rule = alt.Chart(frame).mark_rule(strokeWidth=3).encode(y=value, y2="upper:Q")
    middle = frame.assign(value=supplied * row["value"] ** 0.5)
    label = alt.Chart(middle).mark_text(align="right", dx=-8, fontWeight="bold").encode(y=value, text="text:N")
    return [each.encode(x=make_date_axis(), color=_kind_colour()) for each in (rule, label)]


def _kind_colour() -> alt.Color:
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolType="circle", symbolOpacity=1)
    return alt.Color("kind:N", scale=alt.Scale(domain=_KINDS, range=_COLOURS), legend=legend)
