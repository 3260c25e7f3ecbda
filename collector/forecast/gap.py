"""Compute the gap between supply and demand: how many devices one model needs, by year, with an interval."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.errors import UserError
from collector.forecast.calibration import Calibration, calibrate
from collector.forecast.fit import Forecast
from collector.forecast.replay import Projection, replay_study

MAX_FACTOR = 1e30
"""Of the demand: beyond any unit, and far from where floating-point numbers overflow."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Demand over supply by the winners of both backtests.

    years: year, value, lower, upper; one row for each year after the last observation of both. The bounds are NaN where
    the backtest has too few cases of that many years ahead. `value` and the bounds are NaN where a winner gives none.
    observed: year, value; years of which both largest values, or means of the logarithm, are known.
    """

    supply: Forecast
    demand: Forecast
    factor: float
    """What the demand's value is multiplied by to be in the supply's unit."""
    years: pd.DataFrame
    observed: pd.DataFrame
    calibration: Calibration | None
    """What the interval of the year asked for rests on."""
    refusal: str | None
    """Why there is no gap for the year asked for; None where there is one."""
    projections: tuple[Projection, ...]
    """The study's projections of the supply for 2025."""

    @property
    def year(self) -> int:
        """The year asked for."""
        return self.supply.year


def measure_gap(supply: Forecast, demand: Forecast, *, factor: float) -> Gap:
    """Divide the demand's forecasts, times `factor`, by the supply's.

    The interval is calibrated on the errors of the gap itself: in the backtest both winners forecast the same years as
    they would have had to, and the error of their ratio is the difference of their errors, whatever these have to do
    with each other. It is widened as that of the side whose winner was widened more, for the winners were chosen on
    these cases. Raises UserError where `factor` is not above zero or is above MAX_FACTOR, or the forecasts are of
    different years.
    """
    if not 0 < factor <= MAX_FACTOR:
        raise UserError(f"--demand-factor {factor:g}: expected a number above 0, at most {MAX_FACTOR:g}, as in 2e-9.")
    if supply.year != demand.year:
        raise ValueError("the two forecasts are of different years")
    first = max(supply.series.last_year, demand.series.last_year) + 1
    years = np.arange(first, supply.year + 1)
    calibrations = [_calibrate_gap(supply, demand, int(year)) for year in years]
    frame = _divide(supply, demand, factor, years, calibrations)
    return Gap(
        supply=supply,
        demand=demand,
        factor=factor,
        years=frame,
        observed=_observe(supply, demand, factor),
        calibration=calibrations[-1],
        refusal=_explain_refusal(frame.iloc[-1], supply, demand),
        projections=tuple(replay_study(supply.series)),
    )


def _divide(
    supply: Forecast, demand: Forecast, factor: float, years: np.ndarray, calibrations: list[Calibration | None]
) -> pd.DataFrame:
    level, widening = supply.level, max(supply.winner_widening, demand.winner_widening)
    values = np.array([factor * _predict(demand, int(year)) / _predict(supply, int(year)) for year in years])
    widths = widening * np.array([math.nan if each is None else each.find_half_width(level) for each in calibrations])
    widths = np.where(np.isnan(widths), math.nan, np.fmax.accumulate(widths))
    return pd.DataFrame({"year": years, "value": values, "lower": values / 2**widths, "upper": values * 2**widths})


def _predict(forecast: Forecast, year: int) -> float:
    """Return the winner's forecast of a year; NaN where nobody wins or the winner gives none."""
    rows = forecast.predictions
    found = rows.loc[(rows["candidate"] == forecast.ranking.winner) & (rows["year"] == year), "value"]
    return float(found.iloc[0]) if len(found) else math.nan


def _calibrate_gap(supply: Forecast, demand: Forecast, year: int) -> Calibration | None:
    """Pair the two winners' cases by the year they forecast, each as far ahead as from its own last observation."""
    ahead = {"supply": year - supply.series.last_year, "demand": year - demand.series.last_year}
    cases = {name: _list_errors(forecast, ahead[name]) for name, forecast in (("supply", supply), ("demand", demand))}
    paired = cases["demand"].merge(cases["supply"], on="year", suffixes=("", "_supply"))
    errors = (paired["error_log2"] - paired["error_log2_supply"]).to_numpy()
    return calibrate(paired["origin"].to_numpy(), errors, max(ahead.values()))


def _list_errors(forecast: Forecast, horizon: int) -> pd.DataFrame:
    cases = forecast.backtest
    chosen = (cases["candidate"] == forecast.ranking.winner) & (cases["horizon"] == horizon)
    return cases.loc[chosen, ["origin", "year", "error_log2"]]


def _observe(supply: Forecast, demand: Forecast, factor: float) -> pd.DataFrame:
    levels = [
        np.log2(forecast.series.observations.set_index("year")["value"]).groupby(level=0).mean()
        for forecast in (supply, demand)
    ]
    gap = (levels[1] - levels[0]).dropna()
    return pd.DataFrame({"year": gap.index.to_numpy(), "value": factor * np.exp2(gap.to_numpy())})


def _explain_refusal(row: pd.Series, supply: Forecast, demand: Forecast) -> str | None:
    for name, forecast in (("supply", supply), ("demand", demand)):
        if forecast.ranking.winner is None:
            return f"no candidate wins the backtest of the {name}"
        if math.isnan(_predict(forecast, supply.year)):
            asked = forecast.asked
            refusals = asked.loc[asked["candidate"] == forecast.ranking.winner, "refusal"].tolist()
            return f"the {name} has no forecast: {refusals[0]}"
    if math.isnan(row["upper"]):
        return "the backtests have too few cases in common to calibrate an interval"
    if not row["upper"] / row["lower"] <= supply.max_factor:  # nor where it is no number
        apart = row["upper"] / row["lower"]
        return f"the bounds of the gap are a factor of {apart:,.3g} apart, more than {supply.max_factor:,g}"
    return None
