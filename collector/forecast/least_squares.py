"""Fit curves to dated values by least squares: polynomials, lines in the logarithm, and two joined lines."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

MIN_DATES_PER_SIDE = 4
"""Different dates on each side of a break: two for a line, and two to tell a bend from a single odd value."""
MAX_BREAKS = 40
"""Breaks that are tried: of more dates than that every n-th, so that a long series takes no longer than a short one."""


def predict_curve(
    dates: FloatArray, response: FloatArray, ahead: FloatArray, *, degree: int, level: float
) -> FloatArray:
    """Return prediction, lower and upper bound at the dates `ahead`, shape (len(ahead), 3).

    The bounds are the prediction interval of one new observation, for independent normal errors of equal spread.
    """
    fit = make_model(response, make_powers(dates, dates, degree)).fit()
    return _predict(fit, make_powers(dates, ahead, degree), level)


def predict_joined_lines(dates: FloatArray, response: FloatArray, ahead: FloatArray, *, level: float) -> FloatArray:
    """Return prediction, lower and upper bound at `ahead` of two lines that meet where they fit best.

    Without enough dates for a break, of one line. The bounds take the break for known, so they are too narrow.
    """
    breaks = list_breaks(dates)
    if not len(breaks):
        return predict_curve(dates, response, ahead, degree=1, level=level)
    designs = [_make_joined_lines(dates, dates, at) for at in breaks]
    remains = [_sum_squares(design, response) for design in designs]
    best = int(np.argmin(remains))
    fit = make_model(response, designs[best]).fit()
    return _predict(fit, _make_joined_lines(dates, ahead, breaks[best]), level)


def make_model(response: FloatArray, design: FloatArray) -> Any:
    """Return statsmodels' model of the response as a sum of the columns of the design."""
    import statsmodels.api as sm  # takes as long as all else that the end of a run imports, for forecasts alone

    return sm.OLS(response, design)


def list_breaks(dates: FloatArray) -> FloatArray:
    """Return the dates at which a second line may begin."""
    different = np.unique(dates)
    inner = different[MIN_DATES_PER_SIDE - 1 : len(different) - MIN_DATES_PER_SIDE + 1]
    return inner[:: -(-len(inner) // MAX_BREAKS) or 1]


def make_powers(dates: FloatArray, ahead: FloatArray, degree: int) -> FloatArray:
    """Return powers of `ahead`, shifted and scaled so that `dates` span -1 to 1: plain years do not solve."""
    centre, half_span = find_span(dates)
    return np.vander((ahead - centre) / half_span, degree + 1, increasing=True)


def find_span(dates: FloatArray) -> tuple[float, float]:
    """Return the middle of the dates and half of what they span, in years."""
    first, last = float(dates.min()), float(dates.max())
    return (first + last) / 2, (last - first) / 2


def _make_joined_lines(dates: FloatArray, ahead: FloatArray, at: float) -> FloatArray:
    return np.column_stack([make_powers(dates, ahead, 1), np.maximum(ahead - at, 0.0)])


def _sum_squares(design: FloatArray, response: FloatArray) -> float:
    coefficients = np.linalg.lstsq(design, response, rcond=None)[0]
    return float(((response - design @ coefficients) ** 2).sum())


def _predict(fit: Any, design: FloatArray, level: float) -> FloatArray:
    prediction = fit.get_prediction(design)
    bounds = prediction.conf_int(obs=True, alpha=1 - level)
    return np.column_stack([prediction.predicted_mean, bounds])
