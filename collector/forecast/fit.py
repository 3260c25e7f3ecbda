"""Forecast a series: every candidate's prediction with its interval, a backtest, the winner and the growth."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.errors import UserError
from collector.forecast.amounts import format_amount, format_plain
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
MAX_HALF_WIDTH_LOG2 = 500.0
"""Of an interval in powers of two: a factor of 1e150 to either side says nothing, and its square is still a float."""


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
    winner_widening: float
    """How many times as wide, in the logarithm, the winner's interval of the year asked for is as its own errors make
    it, because it was chosen by them; see `widen_winner`."""

    @property
    def horizon(self) -> int:
        """Years from the last observation's to the year asked for."""
        return self.year - self.series.last_year

    @property
    def asked(self) -> pd.DataFrame:
        """The predictions of the year asked for with the scores of their candidates, one row per candidate."""
        rows = self.predictions[self.predictions["year"] == self.year]
        return rows.merge(self.ranking.scores, on="candidate", validate="one_to_one")


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
    names = [candidate.name for candidate in candidates]
    ranking = rank_candidates(backtest, names, horizon=horizon, level=level)
    calibrated = {name: find_half_widths(calibrate_until(backtest, name, horizon), level) for name in names}
    widths = widen_winner(calibrated, ranking.winner)
    parts = [_predict_years(candidate, series, year, widths[candidate.name], level) for candidate in candidates]
    predictions = _refuse(pd.concat(parts, ignore_index=True), series, backtest, max_factor)
    return Forecast(
        series=series,
        year=year,
        level=level,
        max_factor=max_factor,
        predictions=predictions,
        backtest=backtest,
        ranking=ranking,
        winner_widening=_find_widening(calibrated, widths, ranking.winner),
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


def widen_winner(widths: Mapping[str, FloatArray], winner: str | None) -> dict[str, FloatArray]:
    """Return half widths by candidate; the winner's at each horizon are at least the second smallest of all.

    The least error of several candidates looks better than it is. With its own width, the winner's 95 % interval held
    the truth in 85 to 99 % of simulated series; see docs/forecast.md (benchmarks/forecast_coverage.py).
    """
    widened = dict(widths)
    if winner is not None:
        ordered = np.sort(np.array(list(widths.values())), axis=0)  # NaN comes last
        runner_up = ordered[1] if len(ordered) > 1 else ordered[0]
        widened[winner] = np.where(np.isnan(widths[winner]), math.nan, np.fmax(widths[winner], runner_up))
    return widened


def _find_widening(
    calibrated: Mapping[str, FloatArray], widened: Mapping[str, FloatArray], winner: str | None
) -> float:
    if winner is None or math.isnan(calibrated[winner][-1]) or calibrated[winner][-1] == 0:
        return 1.0
    return float(widened[winner][-1] / calibrated[winner][-1])


def _predict_years(candidate: Candidate, series: Series, year: int, widths: FloatArray, level: float) -> pd.DataFrame:
    """Return the candidate's predictions with their intervals as they come, zero or less included."""
    years = np.arange(series.first_year if candidate.is_curve else series.last_year + 1, year + 1)
    raw = candidate.predict(know_until(series, series.last_year), years.astype(float) + 0.5, level)
    rows = []
    for each, (value, *own) in zip(years.tolist(), raw.tolist(), strict=True):
        horizon = each - series.last_year
        bounds: tuple[float, float, str | None] = (math.nan, math.nan, None)
        if horizon > 0:
            bounds = _choose_interval(value, own, widths[horizon - 1])
        rows.append((candidate.name, each, value, *bounds))
    # As objects, so that None stays None.
    frame = pd.DataFrame(rows, columns=["candidate", "year", "value", "lower", "upper", "interval"], dtype=object)
    return frame.astype({"year": "int64", "value": "float64", "lower": "float64", "upper": "float64"})


def _refuse(predictions: pd.DataFrame, series: Series, backtest: pd.DataFrame, max_factor: float) -> pd.DataFrame:
    """Replace the numbers of what is no forecast by the reason."""
    failures = backtest.groupby(["candidate", "horizon"])["refused"].agg(["sum", "size"]).to_dict("index")
    refusals = []
    for row in predictions.to_dict("records"):
        refusal = _explain_zero(row["candidate"], series, row["year"], row["value"])
        failed = failures.get((row["candidate"], row["year"] - series.last_year))
        if refusal is None and row["interval"] == "own" and failed is not None and failed["sum"]:
            given = format_amount(row["value"], series.values.unit)
            refusal = (
                f"{row['candidate']} would give {given} for {row['year']}, but as far ahead it gave zero or less in "
                f"{failed['sum']} of {failed['size']} cases, so nothing bounds its error"
            )
        if refusal is None and row["year"] > series.last_year:
            refusal = _explain_width(row["candidate"], row["year"], row["lower"], row["upper"], max_factor)
        refusals.append(refusal)
    refused = pd.Series(refusals, dtype=object, index=predictions.index)
    kept = predictions.copy()
    kept.loc[refused.notna(), ["value", "lower", "upper"]] = math.nan
    kept.loc[refused.notna(), "interval"] = None
    return kept.assign(refusal=refused)


def _choose_interval(value: float, own: list[float], half_width: float) -> tuple[float, float, str | None]:
    """Return the calibrated bounds, else the fit's own, else none."""
    if value > 0 and not math.isnan(half_width):
        factor = 2.0 ** min(half_width, MAX_HALF_WIDTH_LOG2)
        return value / factor, value * factor, "calibrated"
    lower, upper = own
    return lower, upper, None if math.isnan(upper) else "own"


def _explain_zero(candidate: str, series: Series, year: int, value: float) -> str | None:
    """Return why a prediction of zero or less is no forecast; None where it is above."""
    if value > 0:
        return None
    given = format_amount(value, series.values.unit)
    return f"{candidate} would give {given} for {year}, and {series.values.quantity} is never zero or less"


def _explain_width(candidate: str, year: int, lower: float, upper: float, max_factor: float) -> str | None:
    """Return why a prediction without a useful interval is no forecast; None where its interval is narrow enough."""
    start = f"{candidate} gives no interval for {year}"
    if math.isnan(upper):
        return f"{start}: too few cases of a backtest to calibrate one, and none of its own"
    if lower <= 0:
        return f"{start} that ends above zero, so it says no more than `less than some amount`"
    if upper / lower > max_factor:
        wide = f"its bounds are a factor of {format_plain(upper / lower)} apart, more than {max_factor:,g}"
        return f"{start} that says anything: {wide}"
    return None
