"""Fit trends of GPU memory over time: predictions with their intervals, and the doubling time."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.api as sm

SIGNIFICANCE = 0.05

Dates = npt.NDArray[np.floating[Any]]
"""Decimal years."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A polynomial in the date: of the memory itself or, where `in_log2`, of its logarithm to base 2."""

    name: str
    degree: int
    in_log2: bool


LOG_LINEAR = Candidate(name="log-linear", degree=1, in_log2=True)
CANDIDATES = (
    *(Candidate(name=f"polynomial {degree}", degree=degree, in_log2=False) for degree in (2, 3, 4)),
    LOG_LINEAR,
)


@dataclass(frozen=True, kw_only=True)
class DoublingTime:
    """Years in which memory doubles by the log-linear fit, and its 95 % confidence interval; infinite: no growth."""

    years: float
    lower_years: float
    upper_years: float


def predict_memory(candidate: Candidate, observations: pd.DataFrame, dates: Dates) -> pd.DataFrame:
    """Fit a candidate by least squares on columns date (decimal year) and memory_gb, and predict it at `dates`.

    Returns memory_gb, lower_gb, upper_gb, one row per date, as the fit gives them, zero or less included. The bounds
    are the 95 % prediction interval of one new observation, for independent normal errors of equal spread (statsmodels,
    obs_ci). A candidate in log2 is transformed back: its prediction is then a median, and its bounds keep their 95 %.
    """
    prediction = _fit(candidate, observations).get_prediction(_design(candidate, observations, dates))
    frame = prediction.summary_frame(SIGNIFICANCE)
    values = frame[["mean", "obs_ci_lower", "obs_ci_upper"]].to_numpy(dtype=float)
    columns = ["memory_gb", "lower_gb", "upper_gb"]
    return pd.DataFrame(np.exp2(values) if candidate.in_log2 else values, columns=columns)


def measure_doubling(observations: pd.DataFrame) -> DoublingTime:
    """Invert the slope of log2 memory over years and the bounds of its confidence interval."""
    fit = _fit(LOG_LINEAR, observations)
    half_span = _span(observations)[1]
    lower_slope, upper_slope = fit.conf_int(SIGNIFICANCE)[1]
    years, lower, upper = (
        half_span / slope if slope > 0 else math.inf for slope in (fit.params[1], upper_slope, lower_slope)
    )
    return DoublingTime(years=years, lower_years=lower, upper_years=upper)


def _fit(candidate: Candidate, observations: pd.DataFrame) -> Any:
    memory_gb = observations["memory_gb"].to_numpy(dtype=float)
    response = np.log2(memory_gb) if candidate.in_log2 else memory_gb
    return sm.OLS(response, _design(candidate, observations, observations["date"].to_numpy(dtype=float))).fit()


def _design(candidate: Candidate, observations: pd.DataFrame, dates: Dates) -> Dates:
    """Return powers of the date, shifted and scaled so that the observations span -1 to 1: plain ones do not solve."""
    centre, half_span = _span(observations)
    return np.vander((dates - centre) / half_span, candidate.degree + 1, increasing=True)


def _span(observations: pd.DataFrame) -> tuple[float, float]:
    first, last = float(observations["date"].min()), float(observations["date"].max())
    return (first + last) / 2, (last - first) / 2
