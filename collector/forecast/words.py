"""Say in words what a forecast gives, what it refuses, how it was checked and how far to trust it."""

import math
from typing import Any

from collector.forecast.amounts import format_amount, format_plain
from collector.forecast.fit import Forecast
from collector.forecast.growth import Growth, Rate
from collector.forecast.scoring import Ranking
from collector.forecast.series import Series


def describe_forecast(forecast: Forecast) -> list[str]:
    """Return sentences: the subject, the winner, each candidate with its interval or refusal, growth and source."""
    series = forecast.series
    subject = (
        f"{series.subject[0].upper()}{series.subject[1:]}, in {forecast.year}, from {len(series.observations):,} "
        f"observations, {series.first_year} to {series.last_year}:"
    )
    asked = forecast.asked
    return [
        subject,
        _describe_winner(forecast),
        *(_describe_candidate(row, forecast) for row in asked.itertuples()),
        _describe_spread(asked["value"].dropna().tolist(), series.values.unit),
        *describe_growth(forecast.growth),
        *describe_source(forecast),
    ]


def describe_source(forecast: Forecast) -> list[str]:
    """Return whom to name for the values, and what of the table was left out."""
    values = forecast.series.values
    credit = [f"Data: {values.attribution}."] if values.attribution else []
    return [*credit, *(f"{values.source}: {remark}." for remark in values.remarks)]


def _describe_winner(forecast: Forecast) -> str:
    ranking = forecast.ranking
    if ranking.horizon is None:
        return "No candidate wins: the data span too few years for a backtest, so nothing here was checked."
    cases = describe_cases(forecast)
    if ranking.winner is None:
        return f"No candidate wins the backtest ({cases}): none gave a forecast in every case."
    row = find_winner(forecast)
    given = f"no forecast for {forecast.year}" if row.refusal is not None else _format_prediction(row, forecast)
    if row.interval == "calibrated" and forecast.winner_widening > 1:
        given += ", as wide as the runner-up's because the winner was chosen on the same cases"
    rivals = _describe_rivals(ranking)
    return f"The winner of the backtest is {ranking.winner}: {given}. {rivals} The backtest: {cases}."


def find_winner(forecast: Forecast) -> Any:
    """Return the winner's row of `Forecast.asked`, as a named tuple; there has to be a winner."""
    return next(row for row in forecast.asked.itertuples() if row.candidate == forecast.ranking.winner)


def describe_cases(forecast: Forecast) -> str:
    """Return from where and how far the backtest looked, and what its cases are worth."""
    ranking, horizon = forecast.ranking, forecast.ranking.horizon or 0
    origins = int(ranking.scores["origins"].max())
    shorter = "" if ranking.horizon == forecast.horizon else f" rather than {forecast.horizon}, for want of cases"
    return (
        f"{horizon} {_plural('year', horizon)} ahead{shorter}, from the ends of {origins} years, worth "
        f"{ranking.num_independent:.1f} independent cases because their years overlap"
    )


def _describe_rivals(ranking: Ranking) -> str:
    if not ranking.rivals:
        return "Its errors are smaller than those of the others by more than chance."
    names = ", ".join(ranking.rivals)
    return f"So few cases do not tell it apart from {names}: to have the least error among them may be luck."


def _describe_candidate(row: Any, forecast: Forecast) -> str:
    given = f"no forecast; {row.refusal}" if row.refusal is not None else _format_prediction(row, forecast)
    return f"{row.candidate}: {given}. {_describe_backtest(row, forecast)}"


def _format_prediction(row: Any, forecast: Forecast) -> str:
    unit = forecast.series.values.unit
    bounds = f"{format_plain(row.lower)} to {format_amount(row.upper, unit)}"
    level = f"{100 * forecast.level:g} %"
    if row.interval == "calibrated":
        interval = f"{level} prediction interval {bounds}, calibrated on the backtest"
    else:
        interval = f"{bounds} by the fit's own assumptions, not calibrated: do not take it for {level}"
    return f"{format_amount(row.value, unit)}, {interval}"


def _describe_backtest(row: Any, forecast: Forecast) -> str:
    horizon = forecast.ranking.horizon
    if horizon is None or row.cases == 0:
        return "Backtest: the data span too few years for one."
    title = f"Backtest {horizon} {_plural('year', horizon)} ahead"
    if row.refused == row.cases:
        return f"{title}: no forecast in any of {row.cases} cases."
    parts = [f"off by a factor of {2**row.rms_error_log2:.2f}"]
    if row.refused:
        parts.append(f"no forecast in {row.refused} of {row.cases} cases")
    if row.own_cases:
        parts.append(f"the fit's own interval held the truth in {row.own_inside} of {row.own_cases} cases")
    if row.calibrated_cases:
        parts.append(f"one calibrated on earlier cases in {row.calibrated_inside} of {row.calibrated_cases}")
    return f"{title}: {', '.join(parts)}."


def _describe_spread(values: list[float], unit: str) -> str:
    if len(values) < 2:
        return "Fewer than two candidates give a forecast: there is nothing to compare."
    low, high = min(values), max(values)
    factor = high / low
    return (
        f"The choice of candidate alone spans {format_amount(low, unit)} to {format_amount(high, unit)}, "
        f"a factor of {factor:.1f}."
    )


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
    level = f"{100 * growth.level:g} %"
    sentence = f"Growth (log-linear, {growth.num_observations:,} observations): {_format_rate(growth.rate, level)}."
    if growth.by_year is None:
        return [f"{sentence} The interval takes the years' errors for independent."]
    return [
        f"{sentence} The interval takes all errors for independent; if those of one year go together, it is "
        f"{_format_factors(growth.by_year)} a year, doubling {_format_doubling(growth.by_year)}."
    ]


def _format_rate(rate: Rate, level: str) -> str:
    factor, years = rate.factors[0], rate.doubling_years[0]
    doubling = "no doubling" if math.isinf(years) else f"doubling in {years:.2f} years"
    return (
        f"a factor of {factor:.2f} a year ({level} confidence interval {_format_factors(rate)}), {doubling} "
        f"({_format_doubling(rate)})"
    )


def _format_factors(rate: Rate) -> str:
    _, lower, upper = rate.factors
    return f"{lower:.2f} to {upper:.2f}"


def _format_doubling(rate: Rate) -> str:
    _, shortest, longest = rate.doubling_years
    if math.isinf(shortest):
        return "no growth"
    return f"{shortest:.2f} to {'none at all' if math.isinf(longest) else f'{longest:.2f}'}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
