"""Forecast GPU memory from a table of GPUs: predictions, a backtest, and both in words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.errors import UserError
from collector.forecast.trend import CANDIDATES, Candidate, DoublingTime, measure_doubling, predict_memory

Series = Literal["frontier", "all"]

MIN_DATES = 8
"""Fewest different dates to fit on: five coefficients of the polynomial of degree 4, and three for the spread."""
MAX_YEARS_AHEAD = 25
BACKTEST_HORIZON_YEARS = 3


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Holds the fitted forecast: observations, predictions with intervals, doubling time and backtest.

    observations: name, year, date (decimal year), memory_gb; what the candidates were fitted on.
    predictions: candidate, year, memory_gb, lower_gb, upper_gb, refusal; one row per candidate and calendar year, from
    the first observation to the year asked for, each for the middle of its year. The bounds are a 95 % prediction
    interval for one new observation. `refusal` is None or says why there is no forecast, and then the numbers are NaN;
    where only the lower bound is zero or less, `lower_gb` alone is NaN.
    backtest: candidate, origin, year, actual_gb, predicted_gb, error_log2, inside, refused; one row per candidate and
    observation three years after an origin, predicted from what was out by the end of the origin.
    """

    series: Series
    year: int
    observations: pd.DataFrame
    predictions: pd.DataFrame
    doubling: DoublingTime
    backtest: pd.DataFrame


def fit_forecast(table: pd.DataFrame, *, year: int, series: Series = "frontier") -> Forecast:
    """Fit every candidate on a table of `load_gpu_table` and predict each year up to `year`.

    "frontier": the largest memory of one GPU among the releases of each calendar year, every segment; a year without a
    release in the table has no observation. "all": each datacenter GPU is one observation.
    Raises UserError where the table has too few dates, or `year` does not lie 1 to 25 years after the last of them.
    """
    observations = _select_observations(table, series)
    _check_observations(observations, series, table.attrs.get("path", "GPU table"))
    _check_year(year, int(observations["year"].max()))
    return Forecast(
        series=series,
        year=year,
        observations=observations,
        predictions=_predict_years(observations, year),
        doubling=measure_doubling(observations),
        backtest=pd.DataFrame(list(_replay_origins(observations)), columns=_BACKTEST_COLUMNS),
    )


def _select_observations(table: pd.DataFrame, series: Series) -> pd.DataFrame:
    if series == "all":
        chosen = table[table["segment"] == "datacenter"]
        return chosen[["name", "year", "date", "memory_gb"]].sort_values("date", ignore_index=True)
    largest = table[table["memory_gb"] == table.groupby("year")["memory_gb"].transform("max")]
    frontier = largest.groupby("year", as_index=False).agg(name=("name", ", ".join), memory_gb=("memory_gb", "first"))
    return frontier.assign(date=frontier["year"] + 0.5)[["name", "year", "date", "memory_gb"]]


def _check_observations(observations: pd.DataFrame, series: Series, path: str) -> None:
    dates = observations["date"].nunique()
    if dates < MIN_DATES:
        unit = "years with a release" if series == "frontier" else "months with a release of a datacenter GPU"
        raise UserError(f"{path}: {unit}: {dates}, and a forecast needs at least {MIN_DATES}. Add rows.")


def _check_year(year: int, last: int) -> None:
    if year <= last:
        problem = "lies before or inside the data"
    elif year > last + MAX_YEARS_AHEAD:
        problem = f"lies more than {MAX_YEARS_AHEAD} years past the data, too far for any of these fits"
    else:
        return
    allowed = f"give a year from {last + 1} to {last + MAX_YEARS_AHEAD}"
    raise UserError(f"--year {year}: {problem}, which end in {last}; {allowed}.")


def _predict_years(observations: pd.DataFrame, year: int) -> pd.DataFrame:
    years = np.arange(observations["year"].min(), year + 1)
    parts = [_predict_candidate(candidate, observations, years) for candidate in CANDIDATES]
    return pd.concat(parts, ignore_index=True)


def _predict_candidate(candidate: Candidate, observations: pd.DataFrame, years: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Predict each year; memory of zero or less is replaced by the reason why it is no forecast."""
    raw = predict_memory(candidate, observations, years + 0.5)
    impossible = raw["memory_gb"] <= 0
    predictions = raw.mask(impossible)
    predictions["lower_gb"] = predictions["lower_gb"].where(predictions["lower_gb"] > 0)
    predictions.insert(0, "candidate", candidate.name)
    predictions.insert(1, "year", years)
    refusals = [
        _explain_no_forecast(candidate, year, memory_gb)
        for year, memory_gb in zip(years.tolist(), raw["memory_gb"].tolist(), strict=True)
    ]
    return predictions.assign(refusal=pd.Series(refusals, dtype=object))


def _explain_no_forecast(candidate: Candidate, year: int, memory_gb: float) -> str | None:
    """Return why a prediction is no forecast; None where it is one."""
    if memory_gb > 0:
        return None
    return f"{candidate.name} would give {format_gb(memory_gb)} for {year}, and no GPU has zero or less memory"


_BACKTEST_COLUMNS = ["candidate", "origin", "year", "actual_gb", "predicted_gb", "error_log2", "inside", "refused"]


def _replay_origins(observations: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Forecast, from the end of each year with enough dates behind it, what came out three years later."""
    for origin in range(int(observations["year"].min()), int(observations["year"].max())):
        known = observations[observations["year"] <= origin]
        later = observations[observations["year"] == origin + BACKTEST_HORIZON_YEARS]
        if known["date"].nunique() < MIN_DATES or later.empty:
            continue
        for candidate in CANDIDATES:
            predictions = predict_memory(candidate, known, later["date"].to_numpy(dtype=float))
            for actual_gb, prediction in zip(later["memory_gb"], predictions.itertuples(), strict=True):
                yield {
                    "candidate": candidate.name,
                    "origin": origin,
                    **_score_prediction(prediction, actual_gb, origin),
                }


def _score_prediction(prediction: Any, actual_gb: float, origin: int) -> dict[str, Any]:
    refused = prediction.memory_gb <= 0
    return {
        "year": origin + BACKTEST_HORIZON_YEARS,
        "actual_gb": actual_gb,
        "predicted_gb": math.nan if refused else prediction.memory_gb,
        "error_log2": math.nan if refused else math.log2(prediction.memory_gb / actual_gb),
        "inside": not refused and prediction.lower_gb <= actual_gb <= prediction.upper_gb,
        "refused": refused,
    }


def tabulate_forecast(forecast: Forecast) -> pd.DataFrame:
    """Summarise the year asked for: one row per candidate.

    Columns: candidate, year, memory_gb, lower_gb, upper_gb, refusal as in `Forecast.predictions`; of the backtest:
    cases, refused, inside (cases whose 95 % interval held the truth), rms_error_log2 (root mean square over the cases
    that were not refused; 1 means off by a factor of 2; NaN without such a case).
    """
    asked = forecast.predictions[forecast.predictions["year"] == forecast.year]
    return asked.merge(_score_backtest(forecast.backtest), on="candidate", validate="one_to_one")


def _score_backtest(backtest: pd.DataFrame) -> pd.DataFrame:
    scores = []
    for candidate in CANDIDATES:
        cases = backtest[backtest["candidate"] == candidate.name]
        scores.append(
            {
                "candidate": candidate.name,
                "cases": len(cases),
                "refused": int(cases["refused"].sum()),
                "inside": int(cases["inside"].sum()),
                "rms_error_log2": math.sqrt((cases["error_log2"] ** 2).mean()),
            }
        )
    return pd.DataFrame(scores)


def describe_forecast(forecast: Forecast) -> list[str]:
    """Say in words what each candidate gives for the year asked for, what is refused, and how far to trust it."""
    table = tabulate_forecast(forecast)
    subject = "the largest GPU of the year" if forecast.series == "frontier" else "a datacenter GPU"
    first, last = forecast.observations["year"].min(), forecast.observations["year"].max()
    return [
        f"Memory of {subject} in {forecast.year}, from {len(forecast.observations)} observations, {first} to {last}:",
        *(_describe_candidate(row) for row in table.itertuples()),
        _describe_spread(table["memory_gb"].dropna()),
        _describe_doubling(forecast.doubling),
    ]


def _describe_candidate(row: Any) -> str:
    if row.refusal is not None:
        return f"{row.candidate}: no forecast; {row.refusal}. {_describe_backtest(row)}"
    lower = "zero or less, which no GPU has," if math.isnan(row.lower_gb) else format_gb(row.lower_gb)
    interval = f"95 % prediction interval from {lower} to {format_gb(row.upper_gb)}"
    return f"{row.candidate}: {format_gb(row.memory_gb)}, {interval}. {_describe_backtest(row)}"


def _describe_backtest(row: Any) -> str:
    title = f"Backtest {BACKTEST_HORIZON_YEARS} years ahead"
    if row.cases == 0:
        return f"{title}: the data span too few years for one."
    if row.refused == row.cases:
        return f"{title}: no forecast in any of {row.cases} cases."
    answered = row.cases - row.refused
    factor = f"off by a factor of {2**row.rms_error_log2:.2f} (root mean square of {answered})"
    return f"{title}: {factor}, no forecast in {row.refused} of {row.cases} cases, interval right in {row.inside}."


def _describe_spread(memory_gb: pd.Series) -> str:
    if len(memory_gb) < 2:
        return "Fewer than two candidates give a forecast: there is nothing to compare."
    low, high = memory_gb.min(), memory_gb.max()
    return f"The choice of candidate alone spans {format_gb(low)} to {format_gb(high)}, a factor of {high / low:.1f}."


def _describe_doubling(doubling: DoublingTime) -> str:
    if math.isinf(doubling.years):
        return "Doubling time (log-linear): memory does not grow in these data."
    upper = "no doubling at all" if math.isinf(doubling.upper_years) else f"{doubling.upper_years:.1f}"
    interval = f"95 % confidence interval {doubling.lower_years:.1f} to {upper}"
    return f"Doubling time (log-linear): {doubling.years:.1f} years, {interval}."


def format_gb(memory_gb: float) -> str:
    """Write an amount of memory with three significant digits, as in 1,230 GB."""
    return f"{float(f'{memory_gb:.3g}'):,.10g} GB"
