"""Calibrate prediction intervals on the errors of a backtest, and say on how many independent cases they rest."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

MIN_INDEPENDENT = 2.0
"""Fewest independent cases for an interval with a level: of one alone, 95 % would be 12.7 times its error."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The errors of one candidate at one horizon: a forecast's interval is a factor up and down from it."""

    horizon: int
    num_origins: int
    """Years from which was forecast."""
    num_cases: int
    num_independent: float
    """What the origins are worth: the errors of windows that overlap go together."""
    spread_log2: float
    """Root mean square of log2(forecast / truth), bias and all; each origin counts once."""

    def find_half_width(self, level: float) -> float:
        """Return half of the interval's width, in log2.

        Student's t with as many degrees of freedom as there are independent cases, times the spread: a new error over
        the root mean square of earlier ones has that distribution if all of them are normal around zero. A bias of the
        candidate is in the spread.
        """
        return float(special.stdtrit(self.num_independent, (1 + level) / 2)) * self.spread_log2


def calibrate(origins: npt.NDArray[Any], errors_log2: npt.NDArray[Any], horizon: int) -> Calibration | None:
    """Return the calibration from one candidate's errors at a horizon, each with the year of its origin.

    None where there is no honest one: fewer than MIN_INDEPENDENT independent cases, or one without a forecast (NaN).
    """
    if len(errors_log2) == 0 or np.isnan(errors_log2).any():
        return None
    years, mean_squares = average_squares(origins, errors_log2)
    num_independent = count_independent(years, horizon)
    if num_independent < MIN_INDEPENDENT:
        return None
    return Calibration(
        horizon=horizon,
        num_origins=len(years),
        num_cases=len(errors_log2),
        num_independent=num_independent,
        spread_log2=math.sqrt(mean_squares.mean()),
    )


def average_squares(
    origins: npt.NDArray[Any], errors_log2: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the different origins and the mean squared error of each: cases from one origin go together."""
    years, places = np.unique(origins, return_inverse=True)
    return years, np.bincount(places, weights=errors_log2**2) / np.bincount(places)


def count_independent(origins: npt.ArrayLike, horizon: int) -> float:
    """Return how many independent squared errors the mean over these origins is worth.

    Errors `horizon` years ahead from origins k years apart share all but k of their years, as sums of yearly shocks
    they are correlated by 1 - k / horizon, and their squares by the square of that. The degrees of freedom of the mean
    of n correlated squares are n^2 over the sum of these (Satterthwaite's approximation).
    """
    years = np.asarray(origins)
    gaps = np.abs(np.subtract.outer(years, years))
    overlap = np.clip(1 - gaps / horizon, 0.0, None)
    return float(len(years) ** 2 / (overlap**2).sum())
