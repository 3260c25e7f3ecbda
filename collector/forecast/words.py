"""Say in words what a forecast gives, what it refuses and how it was checked."""

import math
from typing import Any

from collector.forecast.fit import Forecast, Gap, Growth, Ranking, Rate, format_amount, format_plain
from collector.forecast.series import Series


def describe_forecast(forecast: Forecast) -> list[str]:
    """Return sentences: the subject, the winner, each candidate with its interval or refusal, growth and source."""
    series, asked = forecast.series, forecast.asked
    return [
        f"{series.subject[0].upper()}{series.subject[1:]}, in {forecast.year}, from {len(series.observations):,} "
        f"observations, {series.first_year} to {series.last_year}:",
        _describe_winner(forecast),
        *(_describe_candidate(row, forecast) for row in asked.itertuples()),
        *describe_growth(forecast.growth),
        *_describe_source(series),
    ]


def _describe_source(series: Series) -> list[str]:
    credit = [f"Data: {series.attribution}."] if series.attribution else []
    return [*credit, *(f"{series.source}: {remark}." for remark in series.remarks)]


def _describe_winner(forecast: Forecast) -> str:
    ranking = forecast.ranking
    if ranking.horizon is None:
        return "No candidate wins: the data span too few years for a backtest, so nothing here was checked."
    cases = _describe_cases(forecast)
    if ranking.winner is None:
        return f"No candidate wins the backtest ({cases}): none gave a forecast in every case."
    row = forecast.asked.set_index("candidate").loc[ranking.winner]
    given = f"no forecast for {forecast.year}" if row["refusal"] else _format_prediction(row, forecast)
    return (
        f"The winner of the backtest is {ranking.winner}: {given}. {_describe_rivals(ranking)} The backtest: {cases}."
    )


def _describe_cases(forecast: Forecast) -> str:
    ranking, horizon = forecast.ranking, forecast.ranking.horizon or 0
    shorter = "" if horizon == forecast.horizon else f" rather than {forecast.horizon}, for want of cases"
    return (
        f"{_count_years(horizon)} ahead{shorter}, from the ends of {int(ranking.scores['origins'].max())} years, worth "
        f"{ranking.num_independent:.1f} independent cases because their years overlap"
    )


def _describe_rivals(ranking: Ranking) -> str:
    if not ranking.rivals:
        return "Its errors are smaller than those of the others by more than chance."
    names = ", ".join(ranking.rivals)
    return f"So few cases do not tell it apart from {names}: to have the least error among them may be luck."


def _describe_candidate(row: Any, forecast: Forecast) -> str:
    given = f"no forecast; {row.refusal}" if row.refusal else _format_prediction(row._asdict(), forecast)
    horizon = forecast.ranking.horizon
    if horizon is None or row.cases == 0:
        return f"{row.candidate}: {given}. Backtest: the data span too few years for one."
    title = f"Backtest {_count_years(horizon)} ahead"
    if row.refused == row.cases:
        return f"{row.candidate}: {given}. {title}: no forecast in any of {row.cases} cases."
    refused = f", no forecast in {row.refused} of {row.cases} cases" if row.refused else ""
    return f"{row.candidate}: {given}. {title}: off by a factor of {2**row.rms_error_log2:.2f}{refused}."


def _format_prediction(row: Any, forecast: Forecast) -> str:
    unit = forecast.series.unit
    bounds = f"{format_plain(row['lower'])} to {format_amount(row['upper'], unit)}"
    level = f"{100 * forecast.level:g} % prediction interval"
    return f"{format_amount(row['value'], unit)} ({level} {bounds}, calibrated on the backtest)"


def describe_future(series: Series, year: int) -> str:
    """Return how many releases of a series are dated later than `year`, the present one; empty where none is."""
    future = series.releases[series.releases["year"] > year]
    if future.empty:
        return ""
    number, last = len(future), future["year"].max()
    what = "is dated after this year and counts" if number == 1 else "are dated after this year and count"
    return (
        f"{number:,} of {len(series.releases):,} rows {what} as what was observed (the latest in {last}): leave out "
        "what is a plan, or a wrong date"
    )


def describe_growth(growth: Growth) -> list[str]:
    """Return the growth a year and the doubling time with their intervals."""
    rate, years = growth.rate, growth.rate.doubling_years[0]
    doubling = "no doubling" if math.isinf(years) else f"doubling in {years:.2f} years"
    sentence = (
        f"Growth (log-linear, {growth.num_observations:,} observations): a factor of {rate.factors[0]:.2f} a year "
        f"({100 * growth.level:g} % confidence interval {_format_factors(rate)}), {doubling} "
        f"({_format_doubling(rate)})."
    )
    if growth.by_year is None:
        return [f"{sentence} The interval takes the years' errors for independent."]
    return [
        f"{sentence} The interval takes all errors for independent; if those of one year go together, it is "
        f"{_format_factors(growth.by_year)} a year, doubling {_format_doubling(growth.by_year)}."
    ]


def _format_factors(rate: Rate) -> str:
    return f"{rate.factors[1]:.2f} to {rate.factors[2]:.2f}"


def _format_doubling(rate: Rate) -> str:
    _, shortest, longest = rate.doubling_years
    if math.isinf(shortest):
        return "no growth"
    return f"{shortest:.2f} to {'none at all' if math.isinf(longest) else f'{longest:.2f}'}"


def _count_years(number: int) -> str:
    return "1 year" if number == 1 else f"{number} years"


def describe_gap(gap: Gap) -> list[str]:
    """Return sentences: the demand, the gap today and in the year asked for, whom to name."""
    unit, demand = gap.supply.series.unit, gap.demand
    lines = [f"Demand: {line}" if not number else line for number, line in enumerate(describe_forecast(demand))]
    lines.append(f"One of the demand's {demand.series.unit} counts as {format_amount(gap.factor, unit)}.")
    if gap.observed is not None:
        lines.append(f"{gap.observed[0]}: demand over supply was {format_plain(gap.observed[1])}.")
    if gap.refusal is not None or gap.calibration is None:
        return [*lines, f"{gap.supply.year}: demand over supply: no forecast; {gap.refusal}."]
    return [
        *lines,
        f"{gap.supply.year}: demand over supply is forecast to be {format_plain(gap.value)}: so many devices for one "
        f"model ({100 * gap.supply.level:g} % prediction interval {format_plain(gap.lower)} to "
        f"{format_plain(gap.upper)}, calibrated on {gap.calibration.num_origins} cases of the gap's own backtest, "
        f"worth {gap.calibration.num_independent:.1f} independent ones).",
    ]
