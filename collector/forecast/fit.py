"""Forecast a series: every candidate's prediction with its interval, a backtest, the winner and the growth."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.errors import UserError
from collector.forecast.amounts import format_amount
from collector.forecast.backtest import replay_origins
from collector.forecast.calibration import Calibration, calibrate
from collector.forecast.candidates import Candidate, know_until, list_candidates
from collector.forecast.growth import Growth, measure_growth
from collector.forecast.least_squares import FloatArray
from collector.forecast.scoring import Ranking, rank_candidates
from collector.forecast.series import Series

DEFAULT_LEVEL = 0.95
DEFAULT_MAX_FACTOR = 100.0
"""Widest interval of a forecast, upper over lower bound: beyond two powers of ten it says nothing that could guide a
purchase."""
MAX_YEARS_AHEAD = 25


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Holds the fitted forecast.

    predictions: candidate, year, value, lower, upper, interval, refusal; one row per candidate and calendar year, from
    the first observation (of candidates that are no curve from the year after the last) to the year asked for, each for
    the middle of its year. Years up to the last observation have
    no interval: they are no forecast. `interval` says what the bounds are: `calibrated` on the errors of the backtest
    at that many years ahead, `own` for what the candidate's fit gives, or None. `refusal` is None or says why there is
    no forecast, and then the numbers are NaN.
    backtest: see `replay_origins`.
    """

    series: Series
    year: int
    level: float
    """Of the calibrated intervals and of the growth's, such as 0.95."""
    max_factor: float
    """Intervals whose upper bound is more than this times the lower are refused."""
    predictions: pd.DataFrame
    backtest: pd.DataFrame
    ranking: Ranking
    growth: Growth

    @property
    def horizon(self) -> int:
        """Years from the last observation's to the year asked for."""
        return self.year - self.series.last_year

    @property
    def asked(self) -> pd.DataFrame:
        """The predictions of the year asked for with the scores of their candidates, one row per candidate."""
        rows = self.predictions[self.predictions["year"] == self.year]
        return rows.merge(self.ranking.scores, on="candidate", validate="one_to_one")

    def find_calibration(self, candidate: str) -> Calibration | None:
        """Return what the candidate's interval for the year asked for is calibrated on; None where it is not."""
        return calibrate_until(self.backtest, candidate, self.horizon)[-1]


def fit_forecast(
    series: Series, *, year: int, level: float = DEFAULT_LEVEL, max_factor: float = DEFAULT_MAX_FACTOR
) -> Forecast:
    """Fit every candidate on a series and predict each year up to `year`.

    Raises UserError where `year` does not lie 1 to 25 years after the last observation, or `level` or `max_factor` make
    no interval.
    """
    _check_year(year, series.last_year)
    check_interval_options(level, max_factor)
    horizon = year - series.last_year
    backtest = replay_origins(series, max_horizon=horizon, level=level)
    candidates = list_candidates(series.kind)
    parts = [_predict_years(candidate, series, year, backtest, level, max_factor) for candidate in candidates]
    names = [candidate.name for candidate in candidates]
    return Forecast(
        series=series,
        year=year,
        level=level,
        max_factor=max_factor,
        predictions=pd.concat(parts, ignore_index=True),
        backtest=backtest,
        ranking=rank_candidates(backtest, names, horizon=horizon, level=level),
        growth=measure_growth(series.observations, level),
    )


def check_interval_options(level: float, max_factor: float) -> None:
    """Raise UserError where the options of intervals make none."""
    if not 0 < level < 1:
        raise UserError(f"--level {100 * level:g}: expected a percentage between 0 and 100, as in 95.")
    if not max_factor > 1:
        raise UserError(f"--max-factor {max_factor:g}: expected a factor above 1, as in {DEFAULT_MAX_FACTOR:g}.")


def _check_year(year: int, last: int) -> None:
    if year <= last:
        problem = "lies before or inside the data"
    elif year > last + MAX_YEARS_AHEAD:
        problem = f"lies more than {MAX_YEARS_AHEAD} years past the data, too far for any of these fits"
    else:
        return
    allowed = f"give a year from {last + 1} to {last + MAX_YEARS_AHEAD}"
    raise UserError(f"--year {year}: {problem}, which end in {last}; {allowed}.")


def calibrate_until(backtest: pd.DataFrame, candidate: str, max_horizon: int) -> list[Calibration | None]:
    """Return a candidate's calibration 1, 2, ... years ahead; None where it has none."""
    cases = backtest[backtest["candidate"] == candidate]
    origins, horizons = cases["origin"].to_numpy(), cases["horizon"].to_numpy()
    errors = cases["error_log2"].to_numpy()
    return [
        calibrate(origins[horizons == horizon], errors[horizons == horizon], horizon)
        for horizon in range(1, max_horizon + 1)
    ]


def find_half_widths(calibrations: list[Calibration | None], level: float) -> FloatArray:
    """Return half widths in log2 by horizon; NaN without a calibration.

    They never shrink with the horizon: what cannot be known in three years is not known better in four, and a narrower
    interval there comes from having fewer cases.
    """
    widths = [math.nan if each is None else each.find_half_width(level) for each in calibrations]
    widest = np.fmax.accumulate(np.array(widths, dtype=float))
    return np.where(np.isnan(widths), math.nan, widest)


def _predict_years(
    candidate: Candidate, series: Series, year: int, backtest: pd.DataFrame, level: float, max_factor: float
) -> pd.DataFrame:
    years = np.arange(series.first_year if candidate.is_curve else series.last_year + 1, year + 1)
    raw = candidate.predict(know_until(series, series.last_year), years.astype(float) + 0.5, level)
    ahead = years - series.last_year
    widths = find_half_widths(calibrate_until(backtest, candidate.name, int(ahead[-1])), level)
    rows = []
    for each, horizon, (value, *own) in zip(years.tolist(), ahead.tolist(), raw.tolist(), strict=True):
        half_width = widths[horizon - 1] if horizon > 0 else math.nan
        lower, upper, interval = _choose_interval(value, own, half_width) if horizon > 0 else (math.nan, math.nan, None)
        refusal = _explain_zero(candidate, series, each, value)
        if refusal is None and horizon > 0:
            refusal = _explain_width(candidate, each, lower, upper, max_factor)
        if refusal is not None:
            value = lower = upper = math.nan
        rows.append((candidate.name, each, value, lower, upper, None if refusal else interval, refusal))
    columns = ["candidate", "year", "value", "lower", "upper", "interval", "refusal"]
    # As objects, so that None stays None.
    frame = pd.DataFrame(rows, columns=columns, dtype=object)
    return frame.astype({"year": "int64", "value": "float64", "lower": "float64", "upper": "float64"})


def _choose_interval(value: float, own: list[float], half_width: float) -> tuple[float, float, str | None]:
    """Return the calibrated bounds, else the fit's own, else none."""
    if value > 0 and not math.isnan(half_width):
        return value / 2**half_width, value * 2**half_width, "calibrated"
    lower, upper = own
    return lower, upper, None if math.isnan(upper) else "own"


def _explain_zero(candidate: Candidate, series: Series, year: int, value: float) -> str | None:
    """Return why a prediction of zero or less is no forecast; None where it is above."""
    if value > 0:
        return None
    given = format_amount(value, series.values.unit)
    return f"{candidate.name} would give {given} for {year}, and {series.values.quantity} is never zero or less"


def _explain_width(candidate: Candidate, year: int, lower: float, upper: float, max_factor: float) -> str | None:
    """Return why a prediction without a useful interval is no forecast; None where its interval is narrow enough."""
    start = f"{candidate.name} gives no interval for {year}"
    if math.isnan(upper):
        return f"{start}: too few cases of a backtest to calibrate one, and none of its own"
    if lower <= 0:
        return f"{start} that ends above zero, so it says no more than `less than some amount`"
    if upper / lower > max_factor:
        wide = f"its bounds are a factor of {upper / lower:,.3g} apart, more than {max_factor:,g}"
        return f"{start} that says anything: {wide}"
    return None
