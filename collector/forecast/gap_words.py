"""Say in words what devices will have, what models will need, and the gap between them."""

import math

from collector.forecast.amounts import format_amount, format_plain
from collector.forecast.fit import Forecast
from collector.forecast.gap import Gap
from collector.forecast.replay import STUDY_YEAR, Projection
from collector.forecast.words import describe_cases, describe_source, find_winner


def describe_gap(gap: Gap) -> list[str]:
    """Return sentences: supply, demand, the gap of today and of the year asked for, the study's projection, sources."""
    demand_unit = gap.demand.series.values.unit
    return [
        _describe_side("Supply", gap.supply),
        _describe_side("Demand", gap.demand),
        f"One of the demand's {demand_unit} counts as {format_amount(gap.factor, gap.supply.series.values.unit)}.",
        *_describe_observed(gap),
        _describe_answer(gap),
        *describe_projections(gap),
        *dict.fromkeys([*describe_source(gap.supply), *describe_source(gap.demand)]),
    ]


def _describe_side(name: str, forecast: Forecast) -> str:
    series, ranking = forecast.series, forecast.ranking
    years = f"{series.first_year} to {series.last_year}"
    start = f"{name}: {series.subject}, {len(series.observations):,} observations, {years}"
    if ranking.winner is None:
        return f"{start}. No candidate wins a backtest of it."
    row = find_winner(forecast)
    if row.refusal is not None:
        return f"{start}. {forecast.year}: no forecast; {row.refusal}."
    bounds = f"{format_plain(row.lower)} to {format_amount(row.upper, series.values.unit)}"
    kind = f"{100 * forecast.level:g} % prediction interval" if row.interval == "calibrated" else "not calibrated:"
    value = format_amount(row.value, series.values.unit)
    return (
        f"{start}. {forecast.year}, by {ranking.winner}: {value} ({kind} {bounds}; "
        f"backtest: {describe_cases(forecast)})."
    )


def _describe_observed(gap: Gap) -> list[str]:
    if gap.observed.empty:
        return ["No year has both a supply and a demand."]
    last = gap.observed.iloc[-1]
    return [f"{int(last['year'])}: demand over supply was {format_plain(last['value'])}."]


def _describe_answer(gap: Gap) -> str:
    start = f"{gap.year}: demand over supply"
    if gap.refusal is not None or gap.calibration is None:
        return f"{start}: no forecast; {gap.refusal}."
    row = gap.years.iloc[-1]
    devices = f"{format_plain(row['value'])} devices' worth"
    bounds = f"{format_plain(row['lower'])} to {format_plain(row['upper'])}"
    return (
        f"{start} is forecast to be {format_plain(row['value'])}: {devices} for one model ("
        f"{100 * gap.supply.level:g} % prediction interval {bounds}, "
        f"calibrated on {gap.calibration.num_origins} cases of the gap's own backtest, worth "
        f"{gap.calibration.num_independent:.1f} independent ones)."
    )


def describe_projections(gap: Gap) -> list[str]:
    """Return what the study's polynomials gave for 2025 beside what came true; nothing for another supply."""
    if not gap.projections:
        return []
    unit = gap.supply.series.values.unit
    spans = [
        f"on data up to {year} {_span([each for each in gap.projections if each.last_year == year], unit)}"
        for year in dict.fromkeys(each.last_year for each in gap.projections)
    ]
    return [
        f"The study projected {STUDY_YEAR} by polynomials; its figures are not known. Replayed, degrees 2 to 4 give "
        f"{', '.join(spans)}; what came true is {format_amount(gap.projections[0].truth, unit)}."
    ]


def _span(projections: list[Projection], unit: str) -> str:
    values = [each.value for each in projections if each.candidate.is_of_study and each.value > 0]
    refused = sum(each.candidate.is_of_study and not each.value > 0 for each in projections)
    none = f", and none where it is zero or less ({refused})" if refused else ""
    low, high = min(values, default=math.nan), max(values, default=math.nan)
    return f"{format_plain(low)} to {format_amount(high, unit)}{none}"
