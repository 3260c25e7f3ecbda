"""Define the candidates of a forecast: each predicts later values of a series from what was known by then."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from collector.forecast.least_squares import FloatArray, make_powers, predict_curve, predict_joined_lines
from collector.forecast.series import Series, SeriesKind, find_records


@dataclass(frozen=True, kw_only=True)
class Known:
    """What was known at some time: dates (decimal years) and values of a series' observations and of all releases."""

    kind: SeriesKind
    dates: FloatArray
    values: FloatArray
    releases: pd.DataFrame
    """name, year, date, value."""


Predict = Callable[[Known, FloatArray, float], FloatArray]
"""From what was known, later dates and the level of intervals to values, lower and upper bounds, shape (dates, 3).

The bounds are NaN where a candidate has no interval of its own."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A way to forecast a series."""

    name: str
    predict: Predict
    kinds: tuple[SeriesKind, ...] = ("frontier", "median", "all", "records")
    """The series that it can forecast."""
    is_of_study: bool = False
    """Whether it is the method of the study."""
    is_curve: bool = True
    """Whether what it gives for years up to the last observation is a fit to them; else it means nothing there."""


def know_until(series: Series, year: int) -> Known:
    """Return what was out by the end of a calendar year."""
    observations = series.observations[series.observations["year"] <= year]
    return Known(
        kind=series.kind,
        dates=observations["date"].to_numpy(dtype=float),
        values=observations["value"].to_numpy(dtype=float),
        releases=series.releases[series.releases["year"] <= year],
    )


def list_candidates(kind: SeriesKind) -> list[Candidate]:
    """Return the candidates that can forecast a series of this kind."""
    return [candidate for candidate in CANDIDATES if kind in candidate.kinds]


def _predict_polynomial(known: Known, ahead: FloatArray, level: float, *, degree: int) -> FloatArray:
    return predict_curve(known.dates, known.values, ahead, degree=degree, level=level)


def _predict_log_linear(known: Known, ahead: FloatArray, level: float) -> FloatArray:
    return np.exp2(predict_curve(known.dates, np.log2(known.values), ahead, degree=1, level=level))


def _predict_piecewise(known: Known, ahead: FloatArray, level: float) -> FloatArray:
    return np.exp2(predict_joined_lines(known.dates, np.log2(known.values), ahead, level=level))


def _predict_quantile(known: Known, ahead: FloatArray, level: float) -> FloatArray:
    """Draw a line in the logarithm through a quantile of the releases.

    For the largest of a year that quantile is m / (m + 1), where m is the mean number of releases in a year: the
    expected place of the largest of m. For a series of all releases it is the median.
    """
    dates = known.releases["date"].to_numpy(dtype=float)
    values = np.log2(known.releases["value"].to_numpy(dtype=float))
    quantile = 0.5
    if known.kind == "frontier":
        mean_releases = len(dates) / known.releases["year"].nunique()
        quantile = mean_releases / (mean_releases + 1)
    coefficients = fit_quantile(make_powers(dates, dates, 1), values, quantile)
    return _without_bounds(np.exp2(make_powers(dates, ahead, 1) @ coefficients))


def fit_quantile(design: FloatArray, response: FloatArray, quantile: float) -> FloatArray:
    """Return the coefficients of a quantile regression, by its dual linear program.

    Koenker and Bassett, Regression Quantiles, Econometrica 46 (1978), section 3: the dual has a bounded variable for
    each row and one equation for each coefficient, whose multiplier that coefficient is. statsmodels' QuantReg iterates
    and warns where it does not converge, as it does on few points.
    """
    from scipy.optimize import linprog  # as in make_model: only a forecast needs it

    solved = linprog(
        -response, A_eq=design.T, b_eq=(1 - quantile) * design.sum(axis=0), bounds=(0.0, 1.0), method="highs"
    )
    if not solved.success:
        raise ArithmeticError(f"the quantile regression was not solved: {solved.message}")
    return np.asarray(-solved.eqlin.marginals)


def _predict_records(known: Known, ahead: FloatArray, level: float) -> FloatArray:
    """Continue the line through the record highs in the logarithm; never below the record that stands."""
    records = find_records(known.releases)
    dates, values = records["date"].to_numpy(dtype=float), records["value"].to_numpy(dtype=float)
    if len(dates) < 3:  # nothing to draw a line through
        return _without_bounds(np.full(len(ahead), values[-1]))
    continued = np.exp2(predict_curve(dates, np.log2(values), ahead, degree=1, level=level)[:, 0])
    return _without_bounds(np.maximum(continued, values[-1]))


def _predict_last(known: Known, ahead: FloatArray, level: float) -> FloatArray:
    """Repeat the last value: of a series of all releases, the median of those in the year up to the last."""
    recent = known.values[-1:]
    if known.kind == "all":
        recent = known.values[known.dates > known.dates.max() - 1]
    return _without_bounds(np.full(len(ahead), np.median(recent)))


def _without_bounds(values: FloatArray) -> FloatArray:
    unknown = np.full(len(values), np.nan)
    return np.column_stack([values, unknown, unknown])


POLYNOMIALS = tuple(
    Candidate(name=f"polynomial {degree}", predict=partial(_predict_polynomial, degree=degree), is_of_study=True)
    for degree in (2, 3, 4)
)
LOG_LINEAR = Candidate(name="log-linear", predict=_predict_log_linear)
CANDIDATES = (
    *POLYNOMIALS,
    LOG_LINEAR,
    Candidate(name="piecewise log-linear", predict=_predict_piecewise),
    Candidate(name="quantile regression", predict=_predict_quantile, kinds=("frontier", "median", "all")),
    Candidate(name="record highs", predict=_predict_records, kinds=("frontier",), is_curve=False),
    Candidate(name="last value", predict=_predict_last, is_curve=False),
)
