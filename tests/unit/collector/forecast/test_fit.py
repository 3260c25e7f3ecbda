"""What a forecast says, what its intervals are, and what it refuses."""

import math

import numpy as np
import pytest

from bench.errors import UserError
from collector.forecast.calibration import Calibration
from collector.forecast.fit import calibrate_until, find_half_widths, fit_forecast, widen_winner
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from memory_tables import make_bending_series, make_doubling_table, make_noisy_table, make_yearly, read_row

DOUBLING = make_gpu_series(make_doubling_table())


def test_exact_doubling_is_found_and_continued() -> None:
    forecast = fit_forecast(DOUBLING, year=2023)
    log_linear = read_row(forecast.asked.set_index("candidate"), "log-linear")
    assert log_linear["value"] == pytest.approx(2.0**7.5)
    assert forecast.growth.rate.doubling_years[0] == pytest.approx(2.0)


def test_interval_is_the_factor_that_the_backtest_calibrates() -> None:
    forecast = fit_forecast(make_gpu_series(make_noisy_table()), year=2025)
    assert forecast.ranking.winner != "piecewise log-linear"
    row = read_row(forecast.asked.set_index("candidate"), "piecewise log-linear")
    assert row["interval"] == "calibrated"
    calibration = calibrate_until(forecast.backtest, "piecewise log-linear", forecast.horizon)[-1]
    assert calibration is not None
    cases = forecast.backtest[
        (forecast.backtest["candidate"] == "piecewise log-linear") & (forecast.backtest["horizon"] == 2)
    ]
    assert calibration.num_cases == len(cases) == 7  # from the ends of 2015 to 2021
    assert calibration.spread_log2 == pytest.approx(math.sqrt((cases["error_log2"] ** 2).mean()))
    factor = 2 ** calibration.find_half_width(0.95)
    assert [row["lower"], row["upper"]] == pytest.approx([row["value"] / factor, row["value"] * factor])


def test_winner_is_at_least_as_wide_as_the_runner_up() -> None:
    nan = math.nan
    widths = {"a": np.array([1.0, 4.0, nan]), "b": np.array([2.0, 3.0, 1.0]), "c": np.array([3.0, nan, 2.0])}
    widened = widen_winner(widths, "a")
    assert widened["a"].tolist()[:2] == [2.0, 4.0]
    assert math.isnan(widened["a"][2])
    assert widened["b"] is widths["b"]
    assert widen_winner(widths, None) == widths
    forecast = fit_forecast(make_gpu_series(make_noisy_table()), year=2025)
    calibrated = forecast.asked[forecast.asked["interval"] == "calibrated"].set_index("candidate")
    factors = (calibrated["upper"] / calibrated["lower"]).sort_values()
    assert factors[str(forecast.ranking.winner)] == pytest.approx(factors.iloc[0])
    assert factors.iloc[0] == pytest.approx(factors.iloc[1])
    assert forecast.winner_widening > 1


def test_intervals_never_shrink_with_the_years_ahead() -> None:
    def make_calibration(horizon: int, spread: float) -> Calibration:
        return Calibration(horizon=horizon, num_origins=9, num_cases=9, num_independent=9.0, spread_log2=spread)

    half_width = make_calibration(1, 1.0).find_half_width(0.95)
    calibrations = [make_calibration(1, 1.0), make_calibration(2, 0.5), None, make_calibration(4, 2.0)]
    widths = find_half_widths(calibrations, 0.95)
    assert widths[[0, 1, 3]].tolist() == pytest.approx([half_width, half_width, 2 * half_width])
    assert math.isnan(widths[2])


def test_forecast_of_zero_or_less_is_refused_in_words_and_without_a_number() -> None:
    forecast = fit_forecast(make_bending_series(), year=2026)
    asked = forecast.asked.set_index("candidate")
    for degree in (2, 3, 4):
        row = read_row(asked, f"polynomial {degree}")
        assert row["refusal"] == (
            f"polynomial {degree} would give -95 GB for 2026, and memory of one GPU is never zero or less"
        )
        assert row[["value", "lower", "upper"]].isna().all()
    predictions = forecast.predictions.set_index(["candidate", "year"])
    assert predictions.at[("polynomial 2", 2021), "value"] == pytest.approx(20.0)
    assert predictions.at[("polynomial 2", 2021), "refusal"] is None
    assert predictions.at[("polynomial 2", 2023), "refusal"] is not None


def test_interval_wider_than_the_stated_factor_is_refused() -> None:
    series = make_gpu_series(make_noisy_table())
    wide = read_row(fit_forecast(series, year=2025).asked.set_index("candidate"), "log-linear")
    factor = wide["upper"] / wide["lower"]
    narrow = fit_forecast(series, year=2025, max_factor=factor / 1.01).asked.set_index("candidate")
    row = read_row(narrow, "log-linear")
    assert math.isnan(row["value"])
    assert row["refusal"].startswith("log-linear gives no interval for 2025 that says anything: its bounds are a fac")
    assert f"a factor of {float(f'{factor:.3g}'):,.10g} apart" in row["refusal"]
    kept = fit_forecast(series, year=2025, max_factor=factor * 1.01).asked.set_index("candidate")
    assert read_row(kept, "log-linear")["value"] == pytest.approx(wide["value"])


def test_without_a_backtest_a_fit_has_only_its_own_interval_and_what_has_none_is_refused() -> None:
    memory_gb = [1, 2.1, 4.2, 7.9, 16.4, 31, 66, 127]
    asked = fit_forecast(make_yearly(2010, memory_gb), year=2020).asked.set_index("candidate")
    assert read_row(asked, "log-linear")["interval"] == "own"
    assert read_row(asked, "log-linear")["cases"] == 0
    refused = read_row(asked, "last value")
    assert refused["interval"] is None
    assert refused["refusal"].endswith("too few cases of a backtest to calibrate one, and none of its own")


def test_what_gave_zero_or_less_in_the_backtest_is_refused_though_its_own_interval_is_narrow() -> None:
    # Up to 2011 a parabola that falls below zero in 2014; what came out was 5 GB and then rose again.
    falling = [30.0 - (year - 2006) ** 2 for year in range(2004, 2012)]
    forecast = fit_forecast(make_yearly(2004, [*falling, 5.0, 6.0, 8.0, 12.0]), year=2018)
    row = read_row(forecast.asked.set_index("candidate"), "polynomial 2")
    assert int(row["refused"]) > 0
    assert row["refusal"].endswith("so nothing bounds its error")
    assert math.isnan(row["value"])


def test_own_interval_that_reaches_zero_is_refused() -> None:
    # Worse and worse around 100 GB: no trend, and an interval of the parabola that reaches below zero.
    memory_gb = [100 + (-1) ** year * 12.0 * year for year in range(8)]
    asked = fit_forecast(make_yearly(2010, memory_gb), year=2019).asked.set_index("candidate")
    row = read_row(asked, "polynomial 2")
    assert row["refusal"].startswith("polynomial 2 gives no interval for 2019 that ends above zero")


def test_higher_level_makes_wider_intervals() -> None:
    series = make_gpu_series(make_noisy_table())
    widths = [
        float(np.log2(row["upper"] / row["lower"]))
        for level in (0.8, 0.95)
        for row in [read_row(fit_forecast(series, year=2024, level=level).asked.set_index("candidate"), "log-linear")]
    ]
    assert widths[0] < widths[1]


def test_candidates_that_are_no_curve_say_nothing_of_the_past() -> None:
    first = fit_forecast(DOUBLING, year=2022).predictions.groupby("candidate")["year"].min()
    assert first["log-linear"] == 2008
    assert first["last value"] == first["record highs"] == 2021


def test_memory_of_gpus_is_forecast_by_every_candidate_and_the_polynomials_do_not_win() -> None:
    forecast = fit_forecast(make_gpu_series(load_gpu_table()), year=2030)
    assert len(forecast.asked) == 8
    assert forecast.ranking.winner in ("record highs", "log-linear", "quantile regression")
    scores = forecast.ranking.scores.set_index("candidate")
    assert int(read_row(scores, "polynomial 4")["refused"]) > 0
    polynomials = [f"polynomial {degree}" for degree in (2, 3, 4)]
    assert scores.loc[polynomials, "rms_error_log2"].min() > scores.at["log-linear", "rms_error_log2"]
    held = scores.loc[polynomials, "own_inside"] / scores.loc[polynomials, "own_cases"]
    assert held.max() < 0.8  # of their "95 %"


@pytest.mark.parametrize(
    ("year", "words"),
    [(1999, "before or inside"), (2012, "before or inside"), (2020, "before or inside"), (2046, "25 years past")],
)
def test_year_before_inside_or_far_past_the_data_is_refused(year: int, words: str) -> None:
    with pytest.raises(UserError, match=f"--year {year}: .*{words}.* give a year from 2021 to 2045"):
        fit_forecast(DOUBLING, year=year)


@pytest.mark.parametrize("year", [2021, 2045])
def test_first_and_last_year_allowed_are_answered(year: int) -> None:
    assert fit_forecast(DOUBLING, year=year).predictions["year"].max() == year


@pytest.mark.parametrize(("level", "max_factor"), [(0.0, 100.0), (1.0, 100.0), (0.95, 1.0), (0.95, math.nan)])
def test_intervals_that_are_none_are_refused(level: float, max_factor: float) -> None:
    with pytest.raises(UserError, match="expected a"):
        fit_forecast(DOUBLING, year=2022, level=level, max_factor=max_factor)


def test_frame_of_predictions_has_one_row_per_candidate_and_year() -> None:
    predictions = fit_forecast(DOUBLING, year=2023).predictions
    assert not predictions.duplicated(["candidate", "year"]).any()
    future = predictions[predictions["year"] > 2020]
    assert (future["refusal"].notna() == future["value"].isna()).all()
    past = predictions[predictions["year"] <= 2020]
    assert past[["lower", "upper"]].isna().all(axis=None)


def test_a_level_next_to_1_overflows_nothing() -> None:
    """Its intervals are wider than a float: raw warnings of numpy stood before the answer."""
    found = fit_forecast(DOUBLING, year=2022, level=1 - 1e-12, max_factor=math.inf)
    assert found.asked["upper"].notna().any()
