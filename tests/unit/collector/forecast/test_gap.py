"""The gap between supply and demand: by hand, its interval, and what is refused."""

import math

import numpy as np
import pytest

from bench.errors import UserError
from collector.forecast.fit import Forecast, calibrate_until, fit_forecast
from collector.forecast.gap import measure_gap
from collector.forecast.gap_words import describe_gap
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.forecast.replay import replay_study
from collector.report.plots.gap import plot_gap
from memory_tables import make_releases


def forecast_growth(doubling_years: float, *, noise: float = 0.0, year: int = 2022, seed: int = 5) -> Forecast:
    """Return the forecast of 20 years of growth, one release a year, with noise in log2."""
    errors = np.random.default_rng(seed).normal(0, noise, 20)
    rows = [(2000.5 + number, 2 ** (number / doubling_years + float(errors[number]))) for number in range(20)]
    return fit_forecast(make_releases(rows, "frontier"), year=year)


def test_gap_of_exact_growth_is_demand_times_its_factor_over_supply() -> None:
    gap = measure_gap(forecast_growth(2.0), forecast_growth(1.0), factor=0.5)
    # 22 years after 2000: 0.5 x 2^22 over 2^11.
    assert gap.years["year"].tolist() == [2020, 2021, 2022]
    assert gap.years["value"].iloc[-1] == pytest.approx(2.0**10)
    assert gap.observed["year"].tolist() == list(range(2000, 2020))
    assert gap.observed["value"].iloc[-1] == pytest.approx(0.5 * 2 ** (19 - 9.5))
    assert gap.refusal is None


def test_interval_rests_on_the_errors_of_the_ratio_not_on_those_of_the_sides() -> None:
    # The same noise on both sides: each is off, and their ratio never is.
    supply, demand = forecast_growth(2.0, noise=0.4), forecast_growth(1.0, noise=0.4)
    assert supply.ranking.winner == demand.ranking.winner == "log-linear"
    gap = measure_gap(supply, demand, factor=1.0)
    assert gap.calibration is not None
    assert gap.calibration.spread_log2 == pytest.approx(0.0, abs=1e-9)
    calibration = calibrate_until(supply.backtest, "log-linear", supply.horizon)[-1]
    assert calibration is not None
    assert calibration.spread_log2 > 0.1
    apart = measure_gap(supply, forecast_growth(1.0, noise=0.4, seed=6), factor=1.0)
    row = apart.years.iloc[-1]
    assert apart.calibration is not None
    widening = max(apart.supply.winner_widening, apart.demand.winner_widening)
    half_width = math.log2(row["upper"] / row["value"])
    assert half_width >= widening * apart.calibration.find_half_width(0.95) * (1 - 1e-9)


def test_gap_with_an_interval_wider_than_the_factor_or_without_a_side_is_refused() -> None:
    noisy = forecast_growth(1.0, noise=0.3, seed=6)
    narrow = measure_gap(forecast_growth(2.0, noise=0.3), noisy, factor=1.0)
    span = float(narrow.years["upper"].iloc[-1] / narrow.years["lower"].iloc[-1])
    assert narrow.refusal is None
    small = fit_forecast(narrow.supply.series, year=2022, max_factor=span * 0.9)
    refused = measure_gap(small, noisy, factor=1.0)
    assert refused.refusal is not None
    assert any("2022: demand over supply: no forecast; " in line for line in describe_gap(refused))
    short = fit_forecast(make_releases([(2010.5 + year, 2.0**year) for year in range(10)], "frontier"), year=2022)
    assert measure_gap(short, noisy, factor=1.0).refusal == "no candidate wins the backtest of the supply"


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_factor_that_is_no_amount_is_refused(factor: float) -> None:
    growth = forecast_growth(2.0)
    with pytest.raises(UserError, match="--demand-factor .*: expected a number above 0"):
        measure_gap(growth, growth, factor=factor)


def test_study_is_replayed_on_the_largest_gpus_only() -> None:
    projections = replay_study(make_gpu_series(load_gpu_table()))
    assert {each.truth for each in projections} == {288.0}
    assert sum(each.candidate.is_of_study for each in projections) == 12  # three degrees, data up to 2021 to 2024
    assert replay_study(make_gpu_series(load_gpu_table(), "all")) == []
    assert replay_study(forecast_growth(2.0).series) == []  # ends before 2025


def test_words_and_picture_show_the_gap_and_the_study_beside_what_came_true() -> None:
    supply = fit_forecast(make_gpu_series(load_gpu_table()), year=2028)
    rows = [(2008.5 + year, 100 * 2.0**year) for year in range(18)]
    gap = measure_gap(supply, fit_forecast(make_releases(rows, "frontier", unit="parameters"), year=2028), factor=0.01)
    lines = describe_gap(gap)
    assert any(line.startswith("2028: demand over supply is forecast to be ") for line in lines)
    assert any("Replayed, degrees 2 to 4 give on data up to 2021 197 to 682 GB" in line for line in lines)
    assert any(line.endswith("what came true is 288 GB.") for line in lines)
    spec = plot_gap(gap).to_dict()
    kinds = {row["kind"] for rows_ in spec["datasets"].values() for row in rows_}
    assert len(kinds) == 5
    assert 288.0 in [row["value"] for rows_ in spec["datasets"].values() for row in rows_ if "brought" in row["kind"]]
