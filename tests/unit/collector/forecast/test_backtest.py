"""The backtest of the forecast: numbers worked out by hand."""

import math

import pandas as pd
import pytest

from collector.forecast.fit import describe_forecast, fit_forecast, tabulate_forecast
from collector.forecast.gpu_table import load_gpu_table
from memory_tables import make_doubling_table, make_noisy_table, make_table, read_row


def test_backtest_of_exact_doubling_has_three_cases_without_error() -> None:
    backtest = fit_forecast(make_doubling_table(), year=2022).backtest
    log_linear = backtest[backtest["candidate"] == "log-linear"]
    assert log_linear["origin"].tolist() == [2015, 2016, 2017]  # eight years are known at the end of 2015
    assert log_linear["year"].tolist() == [2018, 2019, 2020]
    assert log_linear["error_log2"].tolist() == pytest.approx([0.0] * 3, abs=1e-9)


def test_backtest_never_sees_what_came_after_its_origin() -> None:
    table = make_noisy_table()
    changed = table.assign(memory_gb=table["memory_gb"].where(table["year"] < 2021, table["memory_gb"] * 100))
    before, after = (
        backtest[backtest["origin"] <= 2020].reset_index(drop=True)
        for backtest in (fit_forecast(each, year=2030).backtest for each in (table, changed))
    )
    pd.testing.assert_series_equal(before["predicted_gb"], after["predicted_gb"])
    assert (before["error_log2"] - after["error_log2"])[before["year"] >= 2021].max() == pytest.approx(math.log2(100))


def test_backtest_counts_refusals_and_leaves_them_out_of_the_error() -> None:
    # 2004 to 2011 lie on the parabola 30 - (year - 2006)^2: in 2014, where 5 GB came out, it is at 30 - 64 = -34 GB.
    memory_gb = [30.0 - (year - 2006) ** 2 for year in range(2004, 2012)] + [5.0] * 4
    forecast = fit_forecast(make_table(list(range(2004, 2016)), memory_gb), year=2017)
    backtest = forecast.backtest
    first = backtest[(backtest["candidate"] == "polynomial 2") & (backtest["origin"] == 2011)].iloc[0]
    assert first["year"] == 2014
    assert first["refused"]
    assert not first["inside"]
    assert math.isnan(first["error_log2"])
    scores = read_row(tabulate_forecast(forecast).set_index("candidate"), "polynomial 2")
    rest = backtest[(backtest["candidate"] == "polynomial 2") & ~backtest["refused"]]
    assert (2, len(rest)) == (scores["cases"], scores["cases"] - scores["refused"])


def test_root_mean_square_error_of_the_summary_is_that_of_the_cases() -> None:
    forecast = fit_forecast(make_noisy_table(), year=2030)
    is_log_linear = forecast.backtest["candidate"] == "log-linear"
    errors = forecast.backtest.loc[is_log_linear, "error_log2"].tolist()
    expected = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert tabulate_forecast(forecast).set_index("candidate").at["log-linear", "rms_error_log2"] == pytest.approx(
        expected
    )


def test_log_linear_beats_the_polynomials_on_the_shipped_table() -> None:
    scores = tabulate_forecast(fit_forecast(load_gpu_table(), year=2030)).set_index("candidate")
    assert scores["rms_error_log2"].idxmin() == "log-linear"
    assert read_row(scores, "log-linear")["refused"] == 0
    assert read_row(scores, "polynomial 4")["refused"] > 0


def test_short_table_says_that_it_was_not_backtested() -> None:
    forecast = fit_forecast(make_table(list(range(2010, 2018)), [1, 2, 3, 4, 6, 8, 11, 16]), year=2020)
    assert forecast.backtest.empty
    assert "Backtest 3 years ahead: the data span too few years for one." in describe_forecast(forecast)[4]
