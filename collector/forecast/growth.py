"""Measure growth: the factor a year and the doubling time of a series, by a line in the logarithm, with intervals."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from collector.forecast.least_squares import find_span, make_model, make_powers

LEAST_LOG2 = 1e-9
"""A slower growth, of one doubling in a billion years, is the rounding of a series that does not change."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """log2 of the growth factor a year, and its confidence interval."""

    log2: float
    lower_log2: float
    upper_log2: float

    @property
    def factors(self) -> tuple[float, float, float]:
        """The growth factor a year, its lower and its upper bound."""
        return 2**self.log2, 2**self.lower_log2, 2**self.upper_log2

    @property
    def doubling_years(self) -> tuple[float, float, float]:
        """The years in which the value doubles, the shortest and the longest; infinite: it may not grow."""
        shortest, longest = (_invert(slope) for slope in (self.upper_log2, self.lower_log2))
        return _invert(self.log2), shortest, longest


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The growth of a series, with intervals under two assumptions."""

    level: float
    num_observations: int
    rate: Rate
    """Least squares; the interval takes every observation's error for independent, normal and equally spread."""
    by_year: Rate | None
    """The same line; the interval takes errors within a calendar year for dependent. None: one observation a year."""


def measure_growth(observations: pd.DataFrame, level: float) -> Growth:
    """Fit a line to log2 of the values over the dates.

    Errors that depend on each other within a year are allowed for by the sandwich estimator for clusters with
    Student's t for the number of years less 1 (statsmodels, cov_type `cluster`); it is too narrow for few years.
    """
    dates = observations["date"].to_numpy(dtype=float)
    model = make_model(np.log2(observations["value"].to_numpy(dtype=float)), make_powers(dates, dates, 1))
    half_span, plain = find_span(dates)[1], model.fit()
    years = observations["year"].to_numpy()
    by_year = None
    if len(np.unique(years)) < len(years):
        clustered = model.fit(cov_type="cluster", cov_kwds={"groups": years}, use_t=True)
        by_year = _read_rate(clustered, half_span, level)
    return Growth(level=level, num_observations=len(dates), rate=_read_rate(plain, half_span, level), by_year=by_year)


def _read_rate(fit: object, half_span: float, level: float) -> Rate:
    slope = float(fit.params[1])  # type: ignore[attr-defined]  # statsmodels has no types
    lower, upper = fit.conf_int(1 - level)[1]  # type: ignore[attr-defined]
    return Rate(log2=slope / half_span, lower_log2=float(lower) / half_span, upper_log2=float(upper) / half_span)


def _invert(slope: float) -> float:
    return 1 / slope if slope > LEAST_LOG2 else math.inf
