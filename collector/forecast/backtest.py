"""Forecast, from earlier years, years that are already known, and measure how far off that is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from collector.forecast.candidates import Candidate, Known, know_until, list_candidates
from collector.forecast.series import MIN_DATES, Series

BACKTEST_COLUMNS = [
    "candidate", "origin", "horizon", "year", "actual", "predicted", "error_log2", "inside", "refused",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Origin:
    """The end of a year from which the later ones are forecast."""

    year: int
    known: Known
    later: pd.DataFrame


def replay_origins(series: Series, *, max_horizon: int, level: float) -> pd.DataFrame:
    """Forecast, from the end of each year with enough behind it, what came out up to `max_horizon` years later.

    An origin needs MIN_DATES dates, and no candidate is asked to look further ahead than these reach back. Columns:
    candidate, origin, horizon (years), year, actual, predicted (NaN where refused), error_log2 (log2 of predicted over
    actual), inside (whether the candidate's own interval held the actual value; missing without such an interval),
    refused (zero or less was predicted).
    """
    rows = [
        row
        for origin in _list_origins(series, max_horizon)
        for candidate in list_candidates(series.kind)
        for row in _replay(origin, candidate, level)
    ]
    frame = pd.DataFrame(rows, columns=BACKTEST_COLUMNS)
    return frame.astype({"inside": "boolean", "refused": "bool", "error_log2": "float64", "predicted": "float64"})


def _list_origins(series: Series, max_horizon: int) -> Iterator[_Origin]:
    observations = series.observations
    for year in range(series.first_year, series.last_year):
        known = know_until(series, year)
        if len(np.unique(known.dates)) < MIN_DATES:
            continue
        horizons = observations["year"] - year
        later = observations[(horizons >= 1) & (horizons <= min(max_horizon, np.ceil(np.ptp(known.dates))))]
        if len(later):
            yield _Origin(year=year, known=known, later=later)


def _replay(origin: _Origin, candidate: Candidate, level: float) -> Iterator[dict[str, Any]]:
    later = origin.later
    predictions = candidate.predict(origin.known, later["date"].to_numpy(dtype=float), level)
    years, actuals = later["year"].tolist(), later["value"].tolist()
    for year, actual, (predicted, lower, upper) in zip(years, actuals, predictions.tolist(), strict=True):
        refused = predicted <= 0
        yield {
            "candidate": candidate.name,
            "origin": origin.year,
            "horizon": year - origin.year,
            "year": year,
            "actual": actual,
            "predicted": math.nan if refused else predicted,
            "error_log2": math.nan if refused else math.log2(predicted / actual),
            "inside": None if math.isnan(upper) else not refused and lower <= actual <= upper,
            "refused": refused,
        }
