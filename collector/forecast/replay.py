"""Replay the study's projection of GPU memory for 2025: its polynomials on GPUs up to each year its data may end in."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from collector.forecast.candidates import LOG_LINEAR, POLYNOMIALS, Candidate, know_until
from collector.forecast.fit import DEFAULT_LEVEL
from collector.forecast.series import MIN_DATES, Series

STUDY_YEAR = 2025
# The study does not say what its last year of data is: from one to four years ahead.
LAST_YEARS = (2021, 2022, 2023, 2024)


@dataclass(frozen=True, kw_only=True)
class Projection:
    """What a candidate fitted on data up to a year gives for STUDY_YEAR; zero or less is no forecast."""

    candidate: Candidate
    last_year: int
    value: float
    truth: float


def replay_study(series: Series) -> list[Projection]:
    """Return the projections of the study's polynomials, and of the log-linear fit beside them.

    Empty where the series has no value of STUDY_YEAR or is not that of the largest of each year.
    """
    observations = series.observations
    truth = observations.loc[observations["year"] == STUDY_YEAR, "value"]
    if series.kind != "frontier" or truth.empty:
        return []
    return [
        Projection(candidate=candidate, last_year=year, value=_project(candidate, series, year), truth=truth.iloc[0])
        for year in LAST_YEARS
        if _count_dates(observations, year) >= MIN_DATES
        for candidate in (*POLYNOMIALS, LOG_LINEAR)
    ]


def _count_dates(observations: pd.DataFrame, year: int) -> int:
    return int(observations.loc[observations["year"] <= year, "date"].nunique())


def _project(candidate: Candidate, series: Series, last_year: int) -> float:
    ahead = np.array([STUDY_YEAR + 0.5])
    return float(candidate.predict(know_until(series, last_year), ahead, DEFAULT_LEVEL)[0, 0])
